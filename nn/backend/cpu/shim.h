/* nn/backend/cpu/shim.h - the only interface to oneDNN: the primitives used here, with types that
 * are the same for oneDNN 2 and 3. Only shim*.c include oneDNN's headers.
 *
 * Images are nhwc or nChw16c as the spec says, biases plain; convolution kernels may have any
 * layout that oneDNN chooses. The caller provides all memory and scratchpads; execution allocates
 * nothing here. */
#ifndef HPCT_NN_BACKEND_CPU_SHIM_H
#define HPCT_NN_BACKEND_CPU_SHIM_H

#include "nn/backend/cpu/known_bad.h"
#include "nn/graph/op.h"

/* Whether oneDNN has native bf16 on this processor, and may use it (DNNL_MAX_CPU_ISA). */
bool hpct_cpu_shim_has_bf16(void);

/* Layout and data type of a convolution's kernel. */
typedef struct hpct_cpu_kernel_layout hpct_cpu_kernel_layout;

hpct_status hpct_cpu_kernel_layout_plain(hpct_cpu_kernel_layout **out,
                                         const hpct_graph_window *w); /* Keras' */
void hpct_cpu_kernel_layout_free(hpct_cpu_kernel_layout *layout);     /* NULL is allowed */
bool hpct_cpu_kernel_layout_equal(const hpct_cpu_kernel_layout *a, const hpct_cpu_kernel_layout *b);
size_t hpct_cpu_kernel_layout_bytes(const hpct_cpu_kernel_layout *layout); /* padding included */
uint64_t hpct_cpu_kernel_layout_fingerprint(const hpct_cpu_kernel_layout *layout); /* equal iff
                                                                              layouts are */

/* A oneDNN primitive with its memory objects. */
typedef struct hpct_cpu_prim hpct_cpu_prim;

/* The comment of each lists the arguments of hpct_cpu_prim_execute in order. `forward` is the
 * forward primitive of the same window and batch, oneDNN's hint. In bf16 a convolution reads bf16,
 * except its bias, and writes fp32. */

/* src, kernel, dst and, unless no_bias, bias; with `relu` dst = max(0, x) */
hpct_status hpct_cpu_shim_conv_forward(hpct_cpu_prim **out, const hpct_op_spec *spec,
                                       hpct_precision type, int n, bool training);
/* diff_dst, kernel, diff_src */
hpct_status hpct_cpu_shim_conv_backward_data(hpct_cpu_prim **out, const hpct_op_spec *spec,
                                             hpct_precision type, int n,
                                             const hpct_cpu_prim *forward);
/* src, diff_dst, diff_kernel and, unless no_bias, diff_bias */
hpct_status hpct_cpu_shim_conv_backward_weights(hpct_cpu_prim **out, const hpct_op_spec *spec,
                                                hpct_precision type, int n,
                                                const hpct_cpu_prim *forward);
/* average pooling: src, dst */
hpct_status hpct_cpu_shim_pool_forward(hpct_cpu_prim **out, const hpct_op_spec *spec, int n,
                                       bool training);
/* diff_dst, diff_src */
hpct_status hpct_cpu_shim_pool_backward(hpct_cpu_prim **out, const hpct_op_spec *spec, int n,
                                        const hpct_cpu_prim *forward);
/* Whether oneDNN has this activation (nn/graph/elements.h). */
bool hpct_cpu_shim_has_eltwise(const hpct_op_spec *spec);
/* src, dst: `count` values */
hpct_status hpct_cpu_shim_eltwise_forward(hpct_cpu_prim **out, const hpct_op_spec *spec,
                                          size_t count, bool training);
/* diff_dst, dst (hpct_op_gradient_from_src: src), diff_src */
hpct_status hpct_cpu_shim_eltwise_backward(hpct_cpu_prim **out, const hpct_op_spec *spec,
                                           size_t count, const hpct_cpu_prim *forward);
/* from, to; zeroes the padding of `to`. */
hpct_status hpct_cpu_shim_reorder(hpct_cpu_prim **out, const hpct_cpu_kernel_layout *from,
                                  const hpct_cpu_kernel_layout *to);

/* C = op(A) op(B) of matrices of one type, C fp32; row-major and dense: C [m][n], op(A) [m][k],
 * op(B) [k][n]. */
typedef struct hpct_cpu_product {
    hpct_precision type; /* of A and B */
    size_t m, n, k;
    bool trans_a, trans_b; /* stored transposed */
    bool bias;             /* [n], fp32, added to each row */
    bool relu;             /* C = max(0, x) */
    bool add;              /* C += op(A) op(B); without bias and relu */
} hpct_cpu_product;
/* A, B, C and, with `bias`, bias */
hpct_status hpct_cpu_shim_product(hpct_cpu_prim **out, const hpct_cpu_product *product);

#define HPCT_CPU_PRIM_MAX_ARGS 4
void hpct_cpu_prim_free(hpct_cpu_prim *prim); /* NULL is allowed */
size_t hpct_cpu_prim_scratch_bytes(const hpct_cpu_prim *prim);
/* The layout that it chose for its kernel (or diff_kernel); the caller owns *out. */
hpct_status hpct_cpu_prim_kernel_layout(const hpct_cpu_prim *prim, hpct_cpu_kernel_layout **out);
/* Synchronous. */
hpct_status hpct_cpu_prim_execute(hpct_cpu_prim *prim, void *scratch, void *const args[]);

/* C = alpha op(A) op(B) + beta C, row-major: C [m][n], op(A) [m][k], op(B) [k][n]; `trans` 'T': the
 * operand is stored transposed. */
typedef struct hpct_cpu_gemm {
    char trans_a, trans_b;
    size_t m, n, k;
    float alpha, beta;
    const float *a, *b;
    size_t lda, ldb, ldc;
    float *c;
} hpct_cpu_gemm;
hpct_status hpct_cpu_shim_gemm(const hpct_cpu_gemm *gemm);

/* Floats per register of the instruction set that oneDNN uses: 16, 8 or 4 (limited by
 * ONEDNN_MAX_CPU_ISA). */
int hpct_cpu_shim_lanes(void);
/* Whether convolutions with kernels of `cells` cells are faster with HPCT_GRAPH_CHANNEL_BLOCK
 * layouts, by measurement (doc/results.md). */
bool hpct_cpu_shim_prefers_blocks(int cells);

/* What is loaded, and used on this processor (limited by ONEDNN_MAX_CPU_ISA). */
hpct_cpu_onednn hpct_cpu_shim_library(void);
/* "oneDNN 2.6.3" */
const char *hpct_cpu_shim_version(void);

#endif
