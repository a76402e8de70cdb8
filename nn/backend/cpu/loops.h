/* nn/backend/cpu/loops.h - vector loops for operations that are bound by memory or too small for
 * oneDNN. Compiled for several instruction sets, one of which is chosen at run time, as one binary
 * serves different nodes. */
#ifndef HPCT_NN_BACKEND_CPU_LOOPS_H
#define HPCT_NN_BACKEND_CPU_LOOPS_H

#include "nn/backend/backend.h"
#include "nn/backend/bf16.h"
#include "nn/backend/dropout.h"

#define HPCT_CPU_LANES 16 /* floats: a multiple of every instruction set's vector length */

/* `floats`, rounded up to whole lanes. */
static inline size_t hpct_cpu_lanes(size_t floats)
{
    return (floats + HPCT_CPU_LANES - 1) / HPCT_CPU_LANES * HPCT_CPU_LANES;
}

/* A convolution without padding as a dot product: output cell (i, j) takes `taps` input floats at
 * src + (i * row_step + j * cell_step) + offsets[t], and the kernel is [taps][out]. */
typedef struct hpct_cpu_direct {
    int out_w, out; /* out is a multiple of HPCT_CPU_LANES */
    int taps;
    const int *offsets;                     /* [taps] */
    size_t row_step, cell_step, src_floats; /* src_floats: one sample */
    bool relu;
} hpct_cpu_direct;

/* Non-overlapping pooling windows over a band of `high` rows [high][out_w * wide][out]: produces a
 * row of results, in which cells of HPCT_CPU_LANES channels are cell_step floats apart and blocks
 * of channels block_step. */
typedef struct hpct_cpu_direct_pool {
    int out_w, out, high, wide; /* high * wide is at most INT8_MAX */
    size_t cell_step, block_step;
    bool relu; /* maximum of the cells and 0 */
} hpct_cpu_direct_pool;

/* A range of the arenas to update, with factors derived from its norms. */
typedef struct hpct_cpu_update_span {
    size_t first, count; /* multiples of HPCT_CPU_LANES */
    float scale;         /* of the gradient, before clipping by value */
    float rate, decay;   /* of the weights */
} hpct_cpu_update_span;

/* Some loops set sums[0] and sums[1], as documented below. */
typedef void hpct_cpu_update_loop(const hpct_backend_update_call *call,
                                  const hpct_cpu_update_span *span, double sums[2]);

/* Rows of a batch normalization, [rows][channels]; src_step and dst_step: floats between rows of
 * src, and of the result and its gradient. Other arrays are [channels]. With relu the gradient is
 * masked by src * scale + shift > 0. */
typedef struct hpct_cpu_norm_rows {
    size_t rows, channels, src_step, dst_step;
    const float *src, *diff, *mean, *scale, *shift;
    bool relu;
} hpct_cpu_norm_rows;

/* A group of a layer or group normalization: `cells` times `channels` adjacent floats of src, diff
 * and the result, `step` apart. gamma and beta are [channels]. */
typedef struct hpct_cpu_group_rows {
    size_t cells, channels, step;
    const float *src, *diff, *gamma, *beta;
    float mean, inverse; /* 1 / sqrt(variance + epsilon) */
} hpct_cpu_group_rows;

typedef struct hpct_cpu_loops {
    const char *name;
    int lanes; /* floats per register */
    bool (*supported)(void);

    /* One output row: dst[out_w][out]; src points at the row's first input. */
    void (*direct_forward)(const hpct_cpu_direct *d, const float *src, const float *kernel,
                           const float *bias, float *dst);
    /* Maxima of a row of windows, and in where[out_w][out] the index of the maximum in its window,
     * the first on ties; -1 for ReLU's 0. */
    void (*direct_pool)(const hpct_cpu_direct_pool *p, const float *band, float *dst,
                        int8_t *where);
    /* Compute the gradient g [rows][out_w][out] and add its sum over cells to diff_bias[out]: mask,
     * from that of rows of the result, 0 where dst <= 0 with relu; unpool, from that of a row of
     * maxima. */
    void (*direct_mask)(const hpct_cpu_direct *d, int rows, const float *dst, const float *diff_dst,
                        float *g, float *diff_bias);
    void (*direct_unpool)(const hpct_cpu_direct_pool *p, const int8_t *where, const float *diff_dst,
                          float *g, float *diff_bias);
    /* Adds these rows' contribution to the kernel gradient diff[taps][out]. */
    void (*direct_backward)(const hpct_cpu_direct *d, int rows, const float *src, const float *g,
                            float *diff);

    /* dst[rows][out] = src[out][rows] transposed + bias[out], through max(0, x) with relu. */
    void (*bias_transposed)(size_t rows, size_t out, const float *src, const float *bias, bool relu,
                            float *dst);
    /* diff_bias[out] = column sums of diff[rows][out]; with `dst` not NULL first diff = 0 where
     * dst <= 0. */
    void (*mask_and_sum)(size_t rows, size_t out, const float *dst, float *diff, float *diff_bias);

    void (*relu_forward)(size_t count, const float *src, float *dst);
    void (*relu_backward)(size_t count, const float *dst, const float *diff_dst, float *diff_src);
    /* HPCT_OP_LEAKY_RELU and its gradient from src; HPCT_OP_HARD_SIGMOID, its gradient from dst. */
    void (*leaky_forward)(size_t count, const hpct_op_spec *spec, const float *src, float *dst);
    void (*leaky_backward)(size_t count, const hpct_op_spec *spec, const float *src,
                           const float *diff_dst, float *diff_src);
    void (*hard_sigmoid_forward)(size_t count, const float *src, float *dst);
    void (*hard_sigmoid_backward)(size_t count, const float *dst, const float *diff_dst,
                                  float *diff_src);
    void (*rescaling)(size_t count, float scale, float offset, const float *src, float *dst);
    /* `count` elements of one sample, starting at `group`. */
    void (*dropout)(const hpct_backend_dropout *dropout, uint32_t sample, uint32_t group,
                    size_t count, const float *src, float *dst);
    void (*add)(size_t count, const float *src, float *dst); /* dst += src */
    void (*scale)(size_t count, float factor, float *dst);   /* dst *= factor */
    /* dst = a + b, through max(0, x) with relu; dst may be a or b. */
    void (*sum)(size_t count, const float *a, const float *b, bool relu, float *dst);
    /* dst = a b, with `add` dst += a b. */
    void (*product)(size_t count, const float *a, const float *b, bool add, float *dst);

    void (*to_bf16)(size_t count, const float *src, hpct_backend_bf16 *dst);
    /* low[rows][out] = diff * factor, 0 where dst <= 0 unless dst is NULL. Unless sums is NULL, the
     * columns of `low` are added to sums[out]. */
    void (*diff_to_bf16)(size_t rows, size_t out, const float *dst, const float *diff, float factor,
                         hpct_backend_bf16 *low, float *sums);

    /* Per column of src: mean, and sum of squared distances from it; if `before` is not 0, mean and
     * squares already hold those of `before` rows, and are merged. */
    void (*column_moments)(const hpct_cpu_norm_rows *part, size_t before, float *mean,
                           float *squares);
    /* dst = src * scale + shift, through max(0, x) with relu. */
    void (*normalize)(const hpct_cpu_norm_rows *part, float *dst);
    /* Adds for each column: the sums of the gradient g, and of g (src - mean). */
    void (*norm_sums)(const hpct_cpu_norm_rows *part, float *sum, float *sum_x);
    /* diff_src = g scale + (src - mean) slope + offset; with `add` added to diff_src. */
    void (*norm_backward)(const hpct_cpu_norm_rows *part, const float *slope, const float *offset,
                          bool add, float *diff_src);

    /* Mean and variance of src. */
    void (*group_moments)(const hpct_cpu_group_rows *group, float *mean, float *variance);
    /* dst = (src - mean) inverse gamma + beta. */
    void (*group_normalize)(const hpct_cpu_group_rows *group, float *dst);
    /* The sums of g = diff gamma and of g (src - mean); adds to diff_gamma[channels] the sums of
     * diff (src - mean) inverse, to diff_beta[channels] those of diff. */
    void (*group_sums)(const hpct_cpu_group_rows *group, float *sum, float *sum_x,
                       float *diff_gamma, float *diff_beta);
    /* diff_src = g inverse + (src - mean) slope + offset; with `add` added to diff_src. */
    void (*group_backward)(const hpct_cpu_group_rows *group, float slope, float offset, bool add,
                           float *diff_src);

    /* Maxima of one image's windows, and the index of each maximum in its window, the first on
     * ties; -1 for a zero of the padding. src_step and dst_step: floats between cells of in_c
     * channels; `where` is contiguous. */
    void (*max_pool)(const hpct_graph_window *w, const float *src, size_t src_step, float *dst,
                     size_t dst_step, int32_t *where);
    /* Adds each gradient to the cell of the maximum. */
    void (*max_pool_backward)(const hpct_graph_window *w, const int32_t *where,
                              const float *diff_dst, size_t dst_step, float *diff_src,
                              size_t src_step);

    /* Optimizers, formulas in nn/backend/backend.h. */
    hpct_cpu_update_loop *sgd, *adam, *lars, *lamb, *rmsprop;
    hpct_cpu_update_loop *norms; /* sets sums of squares of weights and of gradients */
    hpct_cpu_update_loop
        *moments; /* LAMB's, with weight decay; sets sums of squares of weights and of u */
} hpct_cpu_loops;

/* Fastest first, the baseline last; NULL-terminated. */
extern const hpct_cpu_loops *const hpct_cpu_loops_variants[];

/* The first that this processor supports and that oneDNN may use (ONEDNN_MAX_CPU_ISA). */
const hpct_cpu_loops *hpct_cpu_loops_best(void);

/* Calls body(first, count, arg) for equal parts of [0, total), of at least `least`, in parallel if
 * there are several. */
void hpct_cpu_loops_split(size_t total, size_t least,
                          void (*body)(size_t first, size_t count, void *arg), void *arg);

/* Calls body(index, arg) for 0..count-1, dynamically scheduled over the threads. */
void hpct_cpu_loops_each(size_t count, void (*body)(size_t index, void *arg), void *arg);

#endif
