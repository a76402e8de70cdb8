/* nn/cpu/shim.h - the only door to oneDNN: the primitives we use, behind types that look the same
 * with oneDNN 2 and 3. Only shim.c includes oneDNN's headers.
 *
 * Pictures are NHWC or in blocks of channels as the spec says, biases plain; convolution kernels
 * may have any layout that oneDNN likes. Every memory and scratchpad is the caller's; executing
 * allocates nothing of ours. */
#ifndef HPCT_NN_CPU_SHIM_H
#define HPCT_NN_CPU_SHIM_H

#include "nn/op.h"

/* Whether oneDNN computes with bf16 numbers on this processor, and may (DNNL_MAX_CPU_ISA). */
bool hpct_shim_has_bf16(void);

/* How the kernel of one convolution lies in memory, and of what type its numbers are. */
typedef struct hpct_kernel_layout hpct_kernel_layout;

hpct_status hpct_kernel_layout_plain(hpct_kernel_layout **out, const hpct_window *w); /* Keras' */
void hpct_kernel_layout_free(hpct_kernel_layout *layout); /* NULL is allowed */
bool hpct_kernel_layout_equal(const hpct_kernel_layout *a, const hpct_kernel_layout *b);
size_t hpct_kernel_layout_bytes(const hpct_kernel_layout *layout); /* padding included */
uint64_t
hpct_kernel_layout_fingerprint(const hpct_kernel_layout *layout); /* equal iff the layouts are */

/* One oneDNN primitive with its memory objects. */
typedef struct hpct_prim hpct_prim;

/* Each gives the arguments of hpct_prim_execute in order. `forward` is the forward primitive of the
 * same window and batch, which oneDNN wants as a hint. In bf16 what a convolution reads, but the
 * bias, is bf16, and what it writes fp32. */

/* src, kernel, dst and, unless no_bias, bias; dst = max(0, ·) with `relu`. */
hpct_status hpct_shim_conv_forward(hpct_prim **out, const hpct_op_spec *spec, hpct_precision type,
                                   int n, bool training);
/* diff_dst, kernel, diff_src */
hpct_status hpct_shim_conv_backward_data(hpct_prim **out, const hpct_op_spec *spec,
                                         hpct_precision type, int n, const hpct_prim *forward);
/* src, diff_dst, diff_kernel and, unless no_bias, diff_bias */
hpct_status hpct_shim_conv_backward_weights(hpct_prim **out, const hpct_op_spec *spec,
                                            hpct_precision type, int n, const hpct_prim *forward);
/* An average: src, dst */
hpct_status hpct_shim_pool_forward(hpct_prim **out, const hpct_op_spec *spec, int n, bool training);
/* diff_dst, diff_src */
hpct_status hpct_shim_pool_backward(hpct_prim **out, const hpct_op_spec *spec, int n,
                                    const hpct_prim *forward);
/* src, dst: `count` numbers through RELU6, SIGMOID, TANH or GELU */
hpct_status hpct_shim_eltwise_forward(hpct_prim **out, hpct_op_kind kind, size_t count,
                                      bool training);
/* diff_dst, dst (GELU: src), diff_src */
hpct_status hpct_shim_eltwise_backward(hpct_prim **out, hpct_op_kind kind, size_t count,
                                       const hpct_prim *forward);
/* from, to; padding of `to` is set to zero. */
hpct_status hpct_shim_reorder(hpct_prim **out, const hpct_kernel_layout *from,
                              const hpct_kernel_layout *to);

/* C = op(A) op(B) of matrices of one type, C fp32; row-major and dense: C [m][n], op(A) [m][k],
 * op(B) [k][n]. */
typedef struct hpct_product {
    hpct_precision type; /* of A and B */
    size_t m, n, k;
    bool trans_a, trans_b; /* stored the other way round */
    bool bias;             /* [n], fp32, is added to each row */
    bool relu;             /* C = max(0, ·) */
    bool add;              /* C += instead; without bias and relu */
} hpct_product;
/* A, B, C and, with `bias`, bias */
hpct_status hpct_shim_product(hpct_prim **out, const hpct_product *product);

#define HPCT_PRIM_MAX_ARGS 4
void hpct_prim_free(hpct_prim *prim); /* NULL is allowed */
size_t hpct_prim_scratch_bytes(const hpct_prim *prim);
/* The layout it wants for its kernel (or diff_kernel); the caller owns *out. */
hpct_status hpct_prim_kernel_layout(const hpct_prim *prim, hpct_kernel_layout **out);
/* Returns when it is done. */
hpct_status hpct_prim_execute(hpct_prim *prim, void *scratch, void *const args[]);

/* C = alpha op(A) op(B) + beta C, row-major: C [m][n], op(A) [m][k], op(B) [k][n]; `trans` 'T'
 * means that the operand is stored the other way round. */
typedef struct hpct_gemm {
    char trans_a, trans_b;
    size_t m, n, k;
    float alpha, beta;
    const float *a, *b;
    size_t lda, ldb, ldc;
    float *c;
} hpct_gemm;
hpct_status hpct_shim_gemm(const hpct_gemm *gemm);

/* Floats of a register of the instructions that oneDNN takes: 16, 8 or 4. (ONEDNN_MAX_CPU_ISA
 * takes instructions away.) */
int hpct_shim_lanes(void);
/* Whether convolutions whose kernels have so many cells are faster on pictures in blocks of
 * HPCT_CHANNEL_BLOCK channels: as measured (doc/results.md). */
bool hpct_shim_prefers_blocks(int cells);

/* "oneDNN 2.6.3" */
const char *hpct_shim_version(void);

#endif
