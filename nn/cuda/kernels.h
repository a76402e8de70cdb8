/* nn/cuda/kernels.h - the module's own kernels behind launchers with C linkage. A launcher enqueues
 * on the queue's stream and returns what launching said; it neither allocates nor waits. Memory is
 * the device's unless said otherwise. Arithmetic is fp32 (sums of losses and norms: fp64) whatever
 * type the numbers have in memory; every sum is added up in an order that follows from the shapes
 * alone. Accesses are 16 bytes wide where pointers and channels allow it.
 *
 * Included from C and from CUDA C++, which cannot read nn/op.h: it knows none of nn's types. */
#ifndef HPCT_NN_CUDA_KERNELS_H
#define HPCT_NN_CUDA_KERNELS_H

#include "nn/cuda/direct_shape.h"
#include "nn/cuda/gradient.h"
#include "nn/drawn.h"
#include "nn/loss_scaling.h"
#include "nn/norm_line.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hpct_queue {
    cudaStream_t stream;
    int multiprocessors; /* sizes of grids follow from it */
} hpct_queue;

/* How activations and their gradients lie in memory: the `void *` below. */
typedef enum hpct_number { HPCT_NUMBER_FP32, HPCT_NUMBER_BF16, HPCT_NUMBER_FP16 } hpct_number;

/* ---- element by element (elements_kernels.cu) ---- */

typedef enum hpct_element {
    HPCT_ELEMENT_RELU,
    HPCT_ELEMENT_RELU6,
    HPCT_ELEMENT_SIGMOID,
    HPCT_ELEMENT_TANH,
    HPCT_ELEMENT_GELU, /* its gradient follows from the source, those above from the result */
} hpct_element;

cudaError_t hpct_launch_element(hpct_queue queue, hpct_number type, hpct_element element,
                                size_t count, const void *src, void *dst);
/* data: the result, GELU the source; with `add` diff_src has a part of the gradient already. */
cudaError_t hpct_launch_element_backward(hpct_queue queue, hpct_number type, hpct_element element,
                                         size_t count, const void *data, const void *diff_dst,
                                         bool add, void *diff_src);
/* dst = src scale + offset (+ dst). */
cudaError_t hpct_launch_rescale(hpct_queue queue, hpct_number type, size_t count, float scale,
                                float offset, const void *src, bool add, void *dst);
cudaError_t hpct_launch_cast(hpct_queue queue, size_t count, hpct_number from, const void *src,
                             hpct_number to, void *dst);
/* dst = src, and as many zeros elsewhere, maybe none. */
cudaError_t hpct_launch_widen(hpct_queue queue, hpct_number type, size_t count, const void *src,
                              float *dst, size_t num_zeros, float *zeros);

#define HPCT_COPY_MOST 160   /* in one launch */
#define HPCT_COPY_CHUNK 4096 /* numbers that a block does at a time */

/* fp32 numbers that are copied into the type of others; all begin at multiples of 16 bytes. */
typedef struct hpct_copy_table {
    int num;
    uint32_t first_chunk[HPCT_COPY_MOST + 1]; /* of each; then their number */
    uint32_t count[HPCT_COPY_MOST];           /* numbers */
    const float *from[HPCT_COPY_MOST];
    void *to[HPCT_COPY_MOST];
} hpct_copy_table;

cudaError_t hpct_launch_copies(hpct_queue queue, hpct_number to, const hpct_copy_table *table);
/* dst = factor dst. */
cudaError_t hpct_launch_scale(hpct_queue queue, hpct_number type, size_t count, float factor,
                              void *dst);
/* Numbers within [-1, 1) that follow from the seed. */
cudaError_t hpct_launch_uniform(hpct_queue queue, hpct_number type, size_t count, uint64_t seed,
                                void *dst);

/* ---- rows (rows_kernels.cu) ---- */

/* [rows][size]; backward from the result. */
cudaError_t hpct_launch_softmax(hpct_queue queue, hpct_number type, size_t rows, int size,
                                const void *src, void *dst);
cudaError_t hpct_launch_softmax_backward(hpct_queue queue, hpct_number type, size_t rows, int size,
                                         const void *dst, const void *diff_dst, bool add,
                                         void *diff_src);
/* `width` numbers of each row, which begin src_pitch and dst_pitch numbers apart; dst = src, with
 * `add` dst += src. */
cudaError_t hpct_launch_copy_rows(hpct_queue queue, hpct_number type, size_t rows, size_t width,
                                  const void *src, size_t src_pitch, bool add, void *dst,
                                  size_t dst_pitch);

/* ---- sums of several inputs (join_kernels.cu) ---- */

#define HPCT_JOIN_MOST 8

typedef struct hpct_join {
    int count; /* of inputs, at most HPCT_JOIN_MOST */
    bool relu;
    const void *src[HPCT_JOIN_MOST];
    void *diff_src[HPCT_JOIN_MOST]; /* NULL: not wanted */
    bool add[HPCT_JOIN_MOST];
} hpct_join;

cudaError_t hpct_launch_add(hpct_queue queue, hpct_number type, size_t count, const hpct_join *join,
                            void *dst);
/* diff_dst may be among join->diff_src; it is then, where the ReLU is closed, set to zero. */
cudaError_t hpct_launch_add_backward(hpct_queue queue, hpct_number type, size_t count,
                                     const hpct_join *join, const void *dst, void *diff_dst);

/* ---- convolutions of small windows (small_kernels.cu) ---- */

#define HPCT_SMALL_TAPS 32      /* most inputs of a number of the result */
#define HPCT_SMALL_NUMBERS 4096 /* and of the kernel in all */

/* Each number of the result is a dot product of few inputs, which the units for products of
 * matrices would mostly stand still for: one group, all cells, counts below 2^31. Kernels and what
 * is of them are fp32, [out][kernel_h][kernel_w][in]. */
bool hpct_small_fits(const hpct_direct *conv);
/* With the bias, unless it is NULL, and with `relu` its maximum with 0. */
cudaError_t hpct_launch_small_forward(hpct_queue queue, hpct_number type, const hpct_direct *conv,
                                      const void *src, const float *kernel, const float *bias,
                                      bool relu, void *dst);
/* Gradients of kernel and bias in one pass: unless dst is NULL diff_dst counts where dst is above
 * 0 alone, and is left as it is. That of the kernel is always wanted. */
size_t hpct_small_scratch_bytes(const hpct_direct *conv);
cudaError_t hpct_launch_small_backward(hpct_queue queue, hpct_number type, const hpct_direct *conv,
                                       const void *src, const void *dst, const void *diff_dst,
                                       hpct_gradient kernel, hpct_gradient bias, float *scratch);

/* ---- windows over pictures (window_kernels.cu) ---- */

typedef struct hpct_sliding {
    int in_h, in_w, out_h, out_w, channels;
    int kernel_h, kernel_w, stride_h, stride_w, pad_top, pad_left;
    bool pad_zeros; /* maximum: cells outside the input are zeros; else they are not there */
} hpct_sliding;

/* Bytes of the note that forward leaves of each number of the result: which cell was the largest.
 */
size_t hpct_max_pool_note_bytes(const hpct_sliding *window);
cudaError_t hpct_launch_max_pool(hpct_queue queue, hpct_number type, const hpct_sliding *window,
                                 int n, const void *src, void *dst, void *notes);
cudaError_t hpct_launch_max_pool_backward(hpct_queue queue, hpct_number type,
                                          const hpct_sliding *window, int n, const void *notes,
                                          const void *diff_dst, bool add, void *diff_src);
cudaError_t hpct_launch_average_pool(hpct_queue queue, hpct_number type, const hpct_sliding *window,
                                     int n, const void *src, void *dst);
cudaError_t hpct_launch_average_pool_backward(hpct_queue queue, hpct_number type,
                                              const hpct_sliding *window, int n,
                                              const void *diff_dst, bool add, void *diff_src);
/* A frame of zeros: sizes and pad_* alone count. */
cudaError_t hpct_launch_pad(hpct_queue queue, hpct_number type, const hpct_sliding *window, int n,
                            const void *src, void *dst);
cudaError_t hpct_launch_pad_backward(hpct_queue queue, hpct_number type, const hpct_sliding *window,
                                     int n, const void *diff_dst, bool add, void *diff_src);

/* ---- batch normalization of [rows][channels] (norm_kernels.cu) ---- */

/* What forward leaves for backward: [channels] each, of fp32. */
typedef struct hpct_norm_notes {
    float *mean, *inverse; /* of the batch: 1 / sqrt(variance + epsilon) */
    float *scale, *shift;  /* dst = (src - mean) scale + shift */
    float *rows;           /* [1]: of all replicas */
} hpct_norm_notes;

/* gamma and beta, and their gradients, may be NULL. */
typedef struct hpct_norm {
    hpct_queue queue;
    hpct_number type;
    size_t rows; /* of this replica */
    int channels;
    bool relu;
    float momentum, epsilon;
    const float *gamma, *beta;
    const float *bias; /* that src lacks and the moving mean has; NULL: none */
    float *moving_mean, *moving_variance;
    hpct_norm_notes notes;
    float *partial; /* [hpct_norm_parts][2][channels] */
} hpct_norm;

/* Most blocks that share the rows of a channel. */
int hpct_norm_parts(hpct_queue queue, hpct_number type, int channels);

/* Training: the batch's statistics become the notes', and the moving ones move towards them. */
cudaError_t hpct_launch_norm_moments(const hpct_norm *norm, const void *src);
/* The same in steps, for replicas that share their sums:
 *   begin   mean[channels], squares[channels] (of distances from it) of this replica's rows, and
 *           room[channels + 1]: mean times rows, rows. `room` is added up over all replicas;
 *   middle  mean of all rows, squares of the distances from that one. `squares` is added up;
 *   end     notes and moving statistics. */
cudaError_t hpct_launch_norm_begin(const hpct_norm *norm, const void *src, float *squares,
                                   float *room);
cudaError_t hpct_launch_norm_middle(const hpct_norm *norm, const float *room, float *squares);
cudaError_t hpct_launch_norm_end(const hpct_norm *norm, const float *squares);
/* Either of the first two (with squares and room: begin), from the sums of all rows and of their
 * squares, [2][channels]. */
cudaError_t hpct_launch_norm_take(const hpct_norm *norm, const float *sums, float *squares,
                                  float *room);
/* Inference: the notes from the moving statistics. */
cudaError_t hpct_launch_norm_moving(const hpct_norm *norm);
cudaError_t hpct_launch_norm_apply(const hpct_norm *norm, const void *src, void *dst);
/* dst = a + b, each as its line makes it of what lies there, or (its mean is NULL) as it lies
 * there; the first has a line. Of `norm` queue, type, rows, channels and relu count. Unless `open`
 * is NULL it gets hpct_norm_open_bytes that say where the sum is above 0; all memory then begins at
 * 16 bytes. */
cudaError_t hpct_launch_norm_add(const hpct_norm *norm, const hpct_norm_line line[2], const void *a,
                                 const void *b, void *dst, uint8_t *open);
/* 0: there are none for so many channels. */
size_t hpct_norm_open_bytes(hpct_number type, size_t rows, int channels);
/* Its backward with the ReLU, as hpct_launch_add_backward, and sums[k][2][hpct_norm_line_step], of
 * the gradient and of that times what the line's mean is taken from and its inverse multiplied
 * with: of the first line, and of the second unless its mean is NULL. norm->partial:
 * [2][hpct_norm_parts][2][channels]. */
cudaError_t hpct_launch_norm_add_backward(const hpct_norm *norm, const hpct_norm_line line[2],
                                          const uint8_t *open, const void *a, const void *b,
                                          const hpct_join *join, void *diff_dst,
                                          float *const sums[2]);

/* The line of each channel as others want it: x scale + shift, in numbers of that type, and gamma.
 */
cudaError_t hpct_launch_norm_vectors(hpct_queue queue, hpct_number type, int channels,
                                     hpct_norm_line line, void *scale, void *shift, float *gamma);

/* sums[2][channels]: of the gradient g behind the ReLU, and of g (src - mean); diff_gamma and
 * diff_beta, of this replica's rows, from them. */
cudaError_t hpct_launch_norm_sums(const hpct_norm *norm, const void *src, const void *diff_dst,
                                  float *sums, float *diff_gamma, float *diff_beta);
/* The same from norm_sums that somebody else has left (hpct_op in nn/op.h). */
cudaError_t hpct_launch_norm_take_sums(const hpct_norm *norm, const float *given, float *sums,
                                       float *diff_gamma, float *diff_beta);
/* sums: over all replicas. */
cudaError_t hpct_launch_norm_backward(const hpct_norm *norm, const void *src, const void *diff_dst,
                                      const float *sums, bool add, void *diff_src);

/* ---- what differs from step to step (moment_kernels.cu) ---- */

/* Launches that are replayed read it on the device. */
typedef struct hpct_moment {
    uint64_t seed;
    uint32_t step, first_sample;
    float rate, decay, bias_1, bias_2; /* hpct_update_args */
    float minus_rate, one;             /* factors of a product that updates (nn/cuda/product.h) */
} hpct_moment;

cudaError_t hpct_launch_moment(hpct_queue queue, hpct_moment moment, hpct_moment *to);

/* Whether the thread's device can run what this module was compiled for. */
cudaError_t hpct_kernels_are_there(void);

/* ---- what draws random numbers (random_kernels.cu) ---- */

typedef struct hpct_drawing {
    uint64_t seed;
    uint32_t tag, step, first_sample; /* tag: hpct_draw_tag's */
    const hpct_moment *now;           /* not NULL: seed, step and first_sample come from there */
} hpct_drawing;

/* [n][size]; forward and backward (see nn/dropout.h). */
cudaError_t hpct_launch_dropout(hpct_queue queue, hpct_number type, hpct_drawing drawing,
                                uint32_t threshold, float scale, int n, size_t size,
                                const void *src, bool add, void *dst);

typedef struct hpct_crop {
    int in_h, in_w, out_h, out_w, channels;
    int top, left, height, width; /* the part shown, resized to out_h x out_w */
    bool draws; /* the part is drawn: out_h x out_w from anywhere within a larger input */
} hpct_crop;

cudaError_t hpct_launch_crop(hpct_queue queue, hpct_number type, hpct_drawing drawing,
                             const hpct_crop *crop, int n, const void *src, void *dst);
cudaError_t hpct_launch_crop_backward(hpct_queue queue, hpct_number type, hpct_drawing drawing,
                                      const hpct_crop *crop, int n, const void *diff_dst, bool add,
                                      void *diff_src);
/* [n][h][w][channels]: the samples drawn are turned in the ways given; its own inverse. */
cudaError_t hpct_launch_flip(hpct_queue queue, hpct_number type, hpct_drawing drawing, int n, int h,
                             int w, int channels, bool horizontal, bool vertical, const void *src,
                             bool add, void *dst);

/* ---- pictures of a data set (gather_kernels.cu) ---- */

/* hpct_pictures, of the device. */
typedef struct hpct_gather {
    const uint8_t *pixels;
    const int32_t *labels;
    int in_h, in_w, out_h, out_w, channels;
    float factor, offset;
} hpct_gather;

/* dst[n][out_h][out_w][channels] of the type, to[n]: the labels. */
cudaError_t hpct_launch_gather(hpct_queue queue, hpct_number type, const hpct_gather *gather, int n,
                               const hpct_drawn *drawn, void *dst, int32_t *to);

/* ---- loss (loss_kernels.cu) ---- */

typedef enum hpct_loss_kind { /* nn/backend.h's forms */
                              HPCT_LOSS_KIND_LOGITS,
                              HPCT_LOSS_KIND_PROBABILITIES,
                              HPCT_LOSS_KIND_DISTRIBUTION,
                              HPCT_LOSS_KIND_BINARY_LOGITS,
                              HPCT_LOSS_KIND_BINARY,
                              HPCT_LOSS_KIND_SQUARED
} hpct_loss_kind;

typedef struct hpct_loss_sums {
    double loss;
    int64_t correct, in_top_k;
} hpct_loss_sums;

typedef struct hpct_loss_args {
    hpct_loss_kind kind;
    int n, classes, top_k;
    float label_smoothing, threshold, scale;
    const hpct_loss_scaling *scaling; /* its scale, too; or NULL */
    const int32_t *labels;
    const float *targets; /* NULL: the labels say it */
    hpct_loss_sums *sums; /* [1], overwritten */
    hpct_loss_sums *left; /* not NULL: to [*turns % 2] of this memory of the host's, too, */
    uint32_t *turns;      /* which counts them */
} hpct_loss_args;

/* src and diff_src, which may be NULL, of the type given. One at a time on a device: the sums of
 * its blocks lie in a place of its own. */
cudaError_t hpct_launch_loss(hpct_queue queue, hpct_number type, hpct_loss_args args,
                             const void *src, void *diff_src);

/* ---- the end of a classifier (head_kernels.cu) ---- */

/* A Dense of `in` inputs to loss.classes outputs, without a ReLU, the loss of those, and the
 * Dense's backward. */
typedef struct hpct_head {
    hpct_loss_args loss;
    int in;
    const float *kernel; /* [classes][in] */
    const float *bias;   /* [classes], or NULL */
    hpct_gradient diff_kernel, diff_bias;
    bool mask;                 /* diff_src counts where src is above 0 alone: a ReLU made that */
    hpct_gradient before_bias; /* [in]: diff_src, added up over the batch */
    float *scratch;            /* hpct_head_scratch_bytes; 16-byte aligned */
} hpct_head;

/* Small ones alone: what a block has of them lies in shared memory. */
bool hpct_head_fits(int n, int in, int classes);
size_t hpct_head_scratch_bytes(int n, int in, int classes);
/* src[n][in], dst[n][classes], diff_src[n][in] or NULL, of the type. One at a time on a device. */
cudaError_t hpct_launch_head(hpct_queue queue, hpct_number type, const hpct_head *head,
                             const void *src, void *dst, void *diff_src);

/* to[3]: loss, correct, in_top_k. */
cudaError_t hpct_launch_put_sums(hpct_queue queue, const hpct_loss_sums *sums, float *to);

/* ---- optimizers (update_kernels.cu) ---- */

#define HPCT_UPDATE_RANGES 256  /* in one launch */
#define HPCT_UPDATE_CHUNK 4096  /* floats of a range that a block does at a time, at least */
#define HPCT_UPDATE_CHUNKS 8192 /* at most, and one more for each range */

typedef enum hpct_update_kind {
    HPCT_UPDATE_SGD,  /* with a slot: momentum */
    HPCT_UPDATE_ADAM, /* AdamW, too */
    HPCT_UPDATE_LARS,
    HPCT_UPDATE_LAMB_MOMENTS, /* the first half of LAMB: sums of squares of w and of its update */
    HPCT_UPDATE_LAMB_APPLY,
    HPCT_UPDATE_RMSPROP, /* with a first slot: momentum; with a third: centered */
} hpct_update_kind;

/* Ranges of the arenas in units of 16 floats, cut into chunks. */
typedef struct hpct_update_table {
    int num_ranges;
    uint32_t chunk;                               /* units in each chunk but a range's last */
    uint32_t first_chunk[HPCT_UPDATE_RANGES + 1]; /* of each range; then their number */
    uint32_t offset[HPCT_UPDATE_RANGES], count[HPCT_UPDATE_RANGES];
    uint8_t adapt[HPCT_UPDATE_RANGES];
} hpct_update_table;

typedef struct hpct_update_args {
    hpct_update_kind kind;
    bool nesterov;
    bool settled; /* gradient scale and rate of each range as hpct_launch_update_settle left them */
    float rate, decay, momentum, epsilon, trust; /* decay: LARS: weight decay; else rate times it */
    float mix_1, mix_2, bias_1, bias_2, grad_scale, clipvalue;
    float *param, *slot[3];
    const float *grad;
    hpct_loss_scaling *scaling; /* or NULL; nothing is updated where `infinite` is not 0 */
    const hpct_moment *now;     /* not NULL: rate, decay, bias_1 and bias_2 come from there */
} hpct_update_args;

/* One update of all ranges in the table. LAMB_MOMENTS leaves sums as hpct_launch_update_norms. */
cudaError_t hpct_launch_update(hpct_queue queue, const hpct_update_table *table,
                               const hpct_update_args *args);

/* Sums of squares of each range, kept on the device: `scaled`: of its parameters, and of its
 * gradients as the update takes them, else of these alone, as they are. */
cudaError_t hpct_launch_update_norms(hpct_queue queue, const hpct_update_table *table,
                                     const hpct_update_args *args, bool scaled);

/* Where a range's two sums lie as floats, for whoever adds to them those of other replicas; *sums
 * is device memory, [HPCT_UPDATE_RANGES][2]. `take` makes them count. */
cudaError_t hpct_update_sums(float **sums);
cudaError_t hpct_launch_update_take(hpct_queue queue, int first, int count);

/* Before the update: whether the gradients are finite, from the squares that COUNT_ALL added, if it
 * `measured` any. */
cudaError_t hpct_launch_scaling_judge(hpct_queue queue, hpct_loss_scaling *scaling, bool measured);
/* After it. */
cudaError_t hpct_launch_scaling_move(hpct_queue queue, hpct_loss_scaling *scaling, double beta_1,
                                     double beta_2);

typedef enum hpct_update_settle {
    HPCT_SETTLE_START,      /* gradient scale and rate as args has them, for every range */
    HPCT_SETTLE_COUNT_ALL,  /* adds the ranges' squares of gradients to those of all groups */
    HPCT_SETTLE_CLIP_ALL,   /* START, then the scale cut so that the whole gradient is not longer
                               than `limit` */
    HPCT_SETTLE_CLIP_RANGE, /* the scale cut by each range's own length */
    HPCT_SETTLE_LARS,       /* the rate times the trust ratio */
    HPCT_SETTLE_LAMB,
} hpct_update_settle;

/* first: COUNT_ALL begins a new sum. */
cudaError_t hpct_launch_update_settle(hpct_queue queue, const hpct_update_table *table,
                                      const hpct_update_args *args, hpct_update_settle settle,
                                      float limit, bool first);

#ifdef __cplusplus
}
#endif

#endif
