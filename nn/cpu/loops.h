/* nn/cpu/loops.h - our own vector loops, for what is bound by memory or too small for oneDNN.
 * Compiled for several instruction sets and chosen once at run time, because one binary serves many
 * nodes. */
#ifndef HPCT_NN_CPU_LOOPS_H
#define HPCT_NN_CPU_LOOPS_H

#include "nn/backend.h"
#include "nn/bf16.h"
#include "nn/dropout.h"

#define HPCT_LANES 16 /* floats: whole vectors of every instruction set */

/* A convolution without padding as a dot product: output cell (i, j) takes `taps` input floats at
 * src + (i * row_step + j * cell_step) + offsets[t], and the kernel is [taps][out]. */
typedef struct hpct_direct {
    int out_w, out; /* out is a multiple of HPCT_LANES */
    int taps;
    const int *offsets;                     /* [taps] */
    size_t row_step, cell_step, src_floats; /* src_floats: one sample */
    bool relu;
} hpct_direct;

/* Windows side by side over a band of `high` rows [high][out_w * wide][out]: a row of results, of
 * which cells of HPCT_LANES channels lie cell_step floats apart, and the next channels block_step
 * behind them. */
typedef struct hpct_direct_pool {
    int out_w, out, high, wide; /* high * wide is at most INT8_MAX */
    size_t cell_step, block_step;
    bool relu; /* the largest of the cells and of 0 */
} hpct_direct_pool;

/* A stretch of the arenas of an update, and what the norms around it came to. */
typedef struct hpct_update_span {
    size_t first, count; /* multiples of HPCT_LANES */
    float scale;         /* of the gradient, before clipping by value */
    float rate, decay;   /* of the weights */
} hpct_update_span;

/* sums[0] and sums[1] are set by those that say so. */
typedef void hpct_update_loop(const hpct_update_call *call, const hpct_update_span *span,
                              double sums[2]);

/* Rows of a batch normalization, each of `channels`; those of src lie src_step floats apart, those
 * of the result and its gradient dst_step. The others are [channels]. With relu the gradient counts
 * where src * scale + shift > 0. */
typedef struct hpct_norm_rows {
    size_t rows, channels, src_step, dst_step;
    const float *src, *diff, *mean, *scale, *shift;
    bool relu;
} hpct_norm_rows;

typedef struct hpct_loops {
    const char *name;
    int lanes; /* floats of a register */
    bool (*supported)(void);

    /* One output row: dst[out_w][out]; src points at the row's first input. */
    void (*direct_forward)(const hpct_direct *d, const float *src, const float *kernel,
                           const float *bias, float *dst);
    /* A row's largest cells, and which cell of its window each was, the first of several, in
     * where[out_w][out]; -1 for the 0. */
    void (*direct_pool)(const hpct_direct_pool *p, const float *band, float *dst, int8_t *where);
    /* The gradient g of `rows` rows [rows][out_w][out] is made in two ways, and its sum over all
     * cells added to diff_bias[out]: from that of rows of the result, 0 where dst <= 0 with relu;
     * from that of a row of largest cells. */
    void (*direct_mask)(const hpct_direct *d, int rows, const float *dst, const float *diff_dst,
                        float *g, float *diff_bias);
    void (*direct_unpool)(const hpct_direct_pool *p, const int8_t *where, const float *diff_dst,
                          float *g, float *diff_bias);
    /* Adds the share of these rows to diff[taps][out]. */
    void (*direct_backward)(const hpct_direct *d, int rows, const float *src, const float *g,
                            float *diff);

    /* dst[rows][out] = src[out][rows] transposed + bias[out], through max(0, x) with relu. */
    void (*bias_transposed)(size_t rows, size_t out, const float *src, const float *bias, bool relu,
                            float *dst);
    /* diff_bias[out] = column sums of diff[rows][out]; with `dst` not NULL first diff = 0 where
     * dst <= 0. */
    void (*mask_and_sum)(size_t rows, size_t out, const float *dst, float *diff, float *diff_bias);

    void (*relu_forward)(size_t count, const float *src, float *dst);
    void (*relu_backward)(size_t count, const float *dst, const float *diff_dst, float *diff_src);
    void (*rescaling)(size_t count, float scale, float offset, const float *src, float *dst);
    /* `count` elements of one sample, from the first of this group on. */
    void (*dropout)(const hpct_dropout *dropout, uint32_t sample, uint32_t group, size_t count,
                    const float *src, float *dst);
    void (*add)(size_t count, const float *src, float *dst); /* dst += src */
    void (*scale)(size_t count, float factor, float *dst);   /* dst *= factor */
    /* dst = a + b, through max(0, x) with relu; dst may be a or b. */
    void (*sum)(size_t count, const float *a, const float *b, bool relu, float *dst);

    void (*to_bf16)(size_t count, const float *src, hpct_bf16 *dst);
    /* low[rows][out] = diff * factor, 0 where dst <= 0 unless dst is NULL. Unless sums is NULL, the
     * columns of `low` are added to sums[out]. */
    void (*diff_to_bf16)(size_t rows, size_t out, const float *dst, const float *diff, float factor,
                         hpct_bf16 *low, float *sums);

    /* Of each column of src: the mean, and the sum of squared distances from it; with `before` not
     * 0 these are of so many rows already, and become those of all. */
    void (*column_moments)(const hpct_norm_rows *part, size_t before, float *mean, float *squares);
    /* dst = src * scale + shift, through max(0, x) with relu. */
    void (*normalize)(const hpct_norm_rows *part, float *dst);
    /* Adds for each column: the sums of the gradient g, and of g (src - mean). */
    void (*norm_sums)(const hpct_norm_rows *part, float *sum, float *sum_x);
    /* diff_src = g scale + (src - mean) slope + offset; with `add` onto what is there. */
    void (*norm_backward)(const hpct_norm_rows *part, const float *slope, const float *offset,
                          bool add, float *diff_src);

    /* The largest cells of one picture's windows, and which cell of its window each was, the first
     * of several; -1 for a zero around the picture. Cells of in_c channels lie so many floats
     * apart, those of `where` side by side. */
    void (*max_pool)(const hpct_window *w, const float *src, size_t src_step, float *dst,
                     size_t dst_step, int32_t *where);
    /* Adds each gradient to the cell that was the largest. */
    void (*max_pool_backward)(const hpct_window *w, const int32_t *where, const float *diff_dst,
                              size_t dst_step, float *diff_src, size_t src_step);

    /* The optimizers of nn/backend.h. */
    hpct_update_loop *sgd, *adam, *lars, *lamb, *rmsprop;
    hpct_update_loop *norms; /* sums of squares of weights and of gradients */
    hpct_update_loop
        *moments; /* of LAMB, with its weight decay; sums of squares of weights and of u */
} hpct_loops;

/* From the fastest to the one that runs everywhere, ended by NULL. */
extern const hpct_loops *const hpct_loops_variants[];

/* The first that this processor supports and oneDNN may take, too. */
const hpct_loops *hpct_loops_best(void);

/* Calls body(first, count, arg) for equal parts of 0 … total-1, in parallel if that pays. */
void hpct_loops_split(size_t total, size_t least,
                      void (*body)(size_t first, size_t count, void *arg), void *arg);

/* Calls body(index, arg) for 0 … count-1, each thread taking the next as it becomes free. */
void hpct_loops_each(size_t count, void (*body)(size_t index, void *arg), void *arg);

#endif
