/* nn/backend/cuda/kernels.h - the module's kernels behind launchers with C linkage. A launcher
 * enqueues on the queue's stream and returns the launch status; it neither allocates nor waits.
 * Pointers are to device memory unless said otherwise. Arithmetic is fp32 (sums of losses and
 * norms: fp64) whatever the type in memory; the order of every sum depends on the shapes only.
 * Accesses are 16 bytes wide if alignment and channels allow it.
 *
 * Included from C and CUDA C++, which cannot compile nn/graph/op.h: uses none of nn's types. */
#ifndef HPCT_NN_BACKEND_CUDA_KERNELS_H
#define HPCT_NN_BACKEND_CUDA_KERNELS_H

#include "base/drawn.h"
#include "nn/backend/cuda/direct_shape.h"
#include "nn/backend/norm_line.h"
#include "nn/graph/elements.h"
#include "nn/graph/loss_scaling.h"
#include "nn/graph/variation.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hpct_cuda_queue {
    cudaStream_t stream;
    int multiprocessors; /* determines grid sizes */
} hpct_cuda_queue;

/* Type in memory of activations and their gradients, the `void *` below. */
typedef enum hpct_cuda_number {
    HPCT_CUDA_NUMBER_FP32,
    HPCT_CUDA_NUMBER_BF16,
    HPCT_CUDA_NUMBER_FP16
} hpct_cuda_number;

/* ---- elementwise (elements_kernels.cu) ---- */

#define HPCT_CUDA_ELEMENT_OF(kind, ...) HPCT_CUDA_ELEMENT_##kind

typedef enum hpct_cuda_element { HPCT_GRAPH_ELEMENT_ROWS(HPCT_CUDA_ELEMENT_OF) } hpct_cuda_element;

/* With the numbers of LEAKY_RELU and ELU, as in hpct_op_spec. */
typedef struct hpct_cuda_curve {
    hpct_cuda_element element;
    float slope, threshold, most;
} hpct_cuda_curve;

cudaError_t hpct_cuda_launch_element(hpct_cuda_queue queue, hpct_cuda_number type,
                                     hpct_cuda_curve curve, size_t count, const void *src,
                                     void *dst);
/* data: the source or the result, as the gradient reads; with `add` accumulates into diff_src. */
cudaError_t hpct_cuda_launch_element_backward(hpct_cuda_queue queue, hpct_cuda_number type,
                                              hpct_cuda_curve curve, size_t count, const void *data,
                                              const void *diff_dst, bool add, void *diff_src);
/* dst = src scale + offset; with `add` dst += that. */
cudaError_t hpct_cuda_launch_rescale(hpct_cuda_queue queue, hpct_cuda_number type, size_t count,
                                     float scale, float offset, const void *src, bool add,
                                     void *dst);
cudaError_t hpct_cuda_launch_cast(hpct_cuda_queue queue, size_t count, hpct_cuda_number from,
                                  const void *src, hpct_cuda_number to, void *dst);
/* dst = src in fp32; also zeroes zeros[num_zeros], which may be 0. */
cudaError_t hpct_cuda_launch_widen(hpct_cuda_queue queue, hpct_cuda_number type, size_t count,
                                   const void *src, float *dst, size_t num_zeros, float *zeros);

#define HPCT_CUDA_COPY_MOST 160   /* per launch */
#define HPCT_CUDA_COPY_CHUNK 4096 /* values per block and iteration */

/* Copies of fp32 arrays in another type; all 16-byte aligned. */
typedef struct hpct_cuda_copy_table {
    int num;
    uint32_t first_chunk[HPCT_CUDA_COPY_MOST + 1]; /* of each array; then the number of chunks */
    uint32_t count[HPCT_CUDA_COPY_MOST];           /* values */
    const float *from[HPCT_CUDA_COPY_MOST];
    void *to[HPCT_CUDA_COPY_MOST];
} hpct_cuda_copy_table;

cudaError_t hpct_cuda_launch_copies(hpct_cuda_queue queue, hpct_cuda_number to,
                                    const hpct_cuda_copy_table *table);
/* dst = factor dst. */
cudaError_t hpct_cuda_launch_scale(hpct_cuda_queue queue, hpct_cuda_number type, size_t count,
                                   float factor, void *dst);
/* Pseudorandom values in [-1, 1) from the seed. */
cudaError_t hpct_cuda_launch_uniform(hpct_cuda_queue queue, hpct_cuda_number type, size_t count,
                                     uint64_t seed, void *dst);

/* ---- rows (rows_kernels.cu) ---- */

/* [rows][size]; backward is computed from the result. */
cudaError_t hpct_cuda_launch_softmax(hpct_cuda_queue queue, hpct_cuda_number type, size_t rows,
                                     int size, const void *src, void *dst);
cudaError_t hpct_cuda_launch_softmax_backward(hpct_cuda_queue queue, hpct_cuda_number type,
                                              size_t rows, int size, const void *dst,
                                              const void *diff_dst, bool add, void *diff_src);
/* Copies `width` values of each row, with pitches in values; with `add` dst += src. */
cudaError_t hpct_cuda_launch_copy_rows(hpct_cuda_queue queue, hpct_cuda_number type, size_t rows,
                                       size_t width, const void *src, size_t src_pitch, bool add,
                                       void *dst, size_t dst_pitch);

#define HPCT_CUDA_ORDER_AXES 4

/* Axes in another order: see nn/backend/permute.h. */
typedef struct hpct_cuda_order {
    unsigned size[HPCT_CUDA_ORDER_AXES];
    size_t step[HPCT_CUDA_ORDER_AXES];
} hpct_cuda_order;

cudaError_t hpct_cuda_launch_permute(hpct_cuda_queue queue, hpct_cuda_number type,
                                     const hpct_cuda_order *order, size_t count, const void *src,
                                     bool add, void *dst);

/* ---- sums of several inputs (join_kernels.cu) ---- */

#define HPCT_CUDA_JOIN_MOST 8

typedef struct hpct_cuda_join {
    int count; /* of inputs, at most HPCT_CUDA_JOIN_MOST */
    bool relu;
    const void *src[HPCT_CUDA_JOIN_MOST];
    void *diff_src[HPCT_CUDA_JOIN_MOST]; /* NULL: not needed */
    bool add[HPCT_CUDA_JOIN_MOST];
} hpct_cuda_join;

cudaError_t hpct_cuda_launch_add(hpct_cuda_queue queue, hpct_cuda_number type, size_t count,
                                 const hpct_cuda_join *join, void *dst);
/* diff_dst may be one of join->diff_src; the ReLU mask is then applied in place. */
cudaError_t hpct_cuda_launch_add_backward(hpct_cuda_queue queue, hpct_cuda_number type,
                                          size_t count, const hpct_cuda_join *join, const void *dst,
                                          void *diff_dst);

/* ---- numbers that elements share (channel_kernels.cu) ---- */

/* dst[n][size] = a b, with `add` dst += a b. b is [n][size], or [n][channels] if it broadcasts. */
cudaError_t hpct_cuda_launch_multiply(hpct_cuda_queue queue, hpct_cuda_number type, int n,
                                      size_t size, int channels, bool broadcasts, const void *a,
                                      const void *b, bool add, void *dst);
/* out[n][channels] = the sum over rows of a b, both [n][rows][channels]. */
cudaError_t hpct_cuda_launch_multiply_sums(hpct_cuda_queue queue, hpct_cuda_number type, int n,
                                           size_t rows, int channels, const void *a, const void *b,
                                           bool add, void *out);

#define HPCT_CUDA_LINE_MOST 8

/* (x - mean) / max(sqrt(variance), epsilon) of a channel; mean NULL: (x - mean) scale + offset, as
 * given. */
typedef struct hpct_cuda_channel_line {
    uint32_t channels;
    const float *mean, *variance;
    float epsilon;
    float given_mean[HPCT_CUDA_LINE_MOST], given_scale[HPCT_CUDA_LINE_MOST],
        given_offset[HPCT_CUDA_LINE_MOST];
} hpct_cuda_channel_line;

/* [n][size], with the channel last; back: of a gradient. */
cudaError_t hpct_cuda_launch_channel_line(hpct_cuda_queue queue, hpct_cuda_number type, int n,
                                          size_t size, const hpct_cuda_channel_line *line,
                                          bool back, const void *src, bool add, void *dst);
/* dst[n][size] = factor, times alpha[period] where src is not above 0. */
cudaError_t hpct_cuda_launch_slopes(hpct_cuda_queue queue, hpct_cuda_number type, int n,
                                    size_t size, size_t period, const float *alpha, const void *src,
                                    const void *factor, bool add, void *dst);
/* diff_alpha[period] = the sum over rows of src diff_dst, where src is not above 0. */
cudaError_t hpct_cuda_launch_slope_sums(hpct_cuda_queue queue, hpct_cuda_number type, size_t rows,
                                        size_t period, const void *src, const void *diff_dst,
                                        float *diff_alpha);

/* ---- convolutions of small windows (small_kernels.cu) ---- */

#define HPCT_CUDA_SMALL_TAPS 32      /* maximum inputs of a result */
#define HPCT_CUDA_SMALL_NUMBERS 4096 /* maximum elements of the kernel */

/* Whether a convolution is suitable: each result is a dot product of few inputs, for which tensor
 * cores would be mostly idle; one group, all cells, counts below 2^31. Kernels and their gradients
 * are fp32, [out][kernel_h][kernel_w][in]. */
bool hpct_cuda_small_fits(const hpct_cuda_direct *conv);
/* Adds the bias unless NULL; with `relu` applies max(0, x). */
cudaError_t hpct_cuda_launch_small_forward(hpct_cuda_queue queue, hpct_cuda_number type,
                                           const hpct_cuda_direct *conv, const void *src,
                                           const float *kernel, const float *bias, bool relu,
                                           void *dst);
/* Gradients of kernel and bias in one pass: unless dst is NULL, diff_dst is masked by dst > 0, but
 * not changed. `bias` may be NULL. */
size_t hpct_cuda_small_scratch_bytes(const hpct_cuda_direct *conv);
cudaError_t hpct_cuda_launch_small_backward(hpct_cuda_queue queue, hpct_cuda_number type,
                                            const hpct_cuda_direct *conv, const void *src,
                                            const void *dst, const void *diff_dst, float *kernel,
                                            float *bias, float *scratch);

/* ---- windows over images (window_kernels.cu) ---- */

typedef struct hpct_cuda_sliding {
    int in_h, in_w, out_h, out_w, channels;
    int kernel_h, kernel_w, stride_h, stride_w, pad_top, pad_left;
    bool pad_zeros; /* max pooling: padding counts as zeros; else it is ignored */
} hpct_cuda_sliding;

/* Bytes per result of the index of the maximum, saved by forward. */
size_t hpct_cuda_max_pool_note_bytes(const hpct_cuda_sliding *window);
cudaError_t hpct_cuda_launch_max_pool(hpct_cuda_queue queue, hpct_cuda_number type,
                                      const hpct_cuda_sliding *window, int n, const void *src,
                                      void *dst, void *notes);
cudaError_t hpct_cuda_launch_max_pool_backward(hpct_cuda_queue queue, hpct_cuda_number type,
                                               const hpct_cuda_sliding *window, int n,
                                               const void *notes, const void *diff_dst, bool add,
                                               void *diff_src);
cudaError_t hpct_cuda_launch_average_pool(hpct_cuda_queue queue, hpct_cuda_number type,
                                          const hpct_cuda_sliding *window, int n, const void *src,
                                          void *dst);
cudaError_t hpct_cuda_launch_average_pool_backward(hpct_cuda_queue queue, hpct_cuda_number type,
                                                   const hpct_cuda_sliding *window, int n,
                                                   const void *diff_dst, bool add, void *diff_src);
/* Zero padding and cropping: uses the sizes and pad_* only. */
cudaError_t hpct_cuda_launch_pad(hpct_cuda_queue queue, hpct_cuda_number type,
                                 const hpct_cuda_sliding *window, int n, const void *src,
                                 void *dst);
cudaError_t hpct_cuda_launch_pad_backward(hpct_cuda_queue queue, hpct_cuda_number type,
                                          const hpct_cuda_sliding *window, int n,
                                          const void *diff_dst, bool add, void *diff_src);

/* ---- batch normalization of [rows][channels] (norm_kernels.cu) ---- */

/* Saved by forward for backward: fp32, [channels] each. */
typedef struct hpct_cuda_norm_notes {
    float *mean, *inverse; /* the batch's; inverse: 1 / sqrt(variance + epsilon) */
    float *scale, *shift;  /* dst = (src - mean) scale + shift */
    float *rows;           /* [1]: over all replicas */
} hpct_cuda_norm_notes;

/* gamma and beta, and their gradients, may be NULL. */
typedef struct hpct_cuda_norm {
    hpct_cuda_queue queue;
    hpct_cuda_number type;
    size_t rows; /* of this replica */
    int channels;
    bool relu;
    float momentum, epsilon;
    const float *gamma, *beta;
    const float *bias; /* omitted from src, added to the moving mean; NULL: none */
    float *moving_mean, *moving_variance;
    hpct_cuda_norm_notes notes;
    float *partial; /* [hpct_cuda_norm_parts][2][channels] */
} hpct_cuda_norm;

/* Maximum number of blocks that share the rows of a channel. */
int hpct_cuda_norm_parts(hpct_cuda_queue queue, hpct_cuda_number type, int channels);

/* Training: stores the batch's statistics in the notes, and updates the moving ones. */
cudaError_t hpct_cuda_launch_norm_moments(const hpct_cuda_norm *norm, const void *src);
/* The same in steps, for replicas with all-reduces in between:
 *   begin   mean[channels], squares[channels] (sum of squared distances from it) of this replica's
 *           rows, and room[channels + 1]: mean times rows, rows. `room` is then all-reduced;
 *   middle  mean of all rows, squares of the distances from that. `squares` is then all-reduced;
 *   end     notes and moving statistics. */
cudaError_t hpct_cuda_launch_norm_begin(const hpct_cuda_norm *norm, const void *src, float *squares,
                                        float *room);
cudaError_t hpct_cuda_launch_norm_middle(const hpct_cuda_norm *norm, const float *room,
                                         float *squares);
cudaError_t hpct_cuda_launch_norm_end(const hpct_cuda_norm *norm, const float *squares);
/* Inference: computes the notes from the moving statistics. */
cudaError_t hpct_cuda_launch_norm_moving(const hpct_cuda_norm *norm);
cudaError_t hpct_cuda_launch_norm_apply(const hpct_cuda_norm *norm, const void *src, void *dst);
/* dst = a + b, where each operand with a line (mean not NULL) is normalized by it; the first must
 * have one. Uses queue, type, rows, channels and relu of `norm`. Unless `open` is NULL, stores
 * there hpct_cuda_norm_open_bytes: the ReLU mask; all memory must then be 16-byte aligned. */
cudaError_t hpct_cuda_launch_norm_add(const hpct_cuda_norm *norm,
                                      const hpct_backend_norm_line line[2], const void *a,
                                      const void *b, void *dst, uint8_t *open);
/* 0: no mask for this number of channels. */
size_t hpct_cuda_norm_open_bytes(hpct_cuda_number type, size_t rows, int channels);
/* Its backward including the ReLU, as hpct_cuda_launch_add_backward, and
 * sums[k][2][hpct_backend_norm_line_step]: of the gradient g, and of g (x - mean) inverse with the
 * line's x; for the first line, and for the second unless its mean is NULL. norm->partial:
 * [2][hpct_cuda_norm_parts][2][channels]. */
cudaError_t hpct_cuda_launch_norm_add_backward(const hpct_cuda_norm *norm,
                                               const hpct_backend_norm_line line[2],
                                               const uint8_t *open, const void *a, const void *b,
                                               const hpct_cuda_join *join, void *diff_dst,
                                               float *const sums[2]);

/* sums[2][channels]: of the gradient g after the ReLU mask, and of g (src - mean); from them, of
 * this replica's rows, diff_gamma and diff_beta. */
cudaError_t hpct_cuda_launch_norm_sums(const hpct_cuda_norm *norm, const void *src,
                                       const void *diff_dst, float *sums, float *diff_gamma,
                                       float *diff_beta);
/* The same from norm_sums stored by another operation (hpct_op in nn/graph/op.h). */
cudaError_t hpct_cuda_launch_norm_take_sums(const hpct_cuda_norm *norm, const float *given,
                                            float *sums, float *diff_gamma, float *diff_beta);
/* sums: over all replicas. */
cudaError_t hpct_cuda_launch_norm_backward(const hpct_cuda_norm *norm, const void *src,
                                           const void *diff_dst, const float *sums, bool add,
                                           void *diff_src);

/* ---- layer and group normalization (group_norm_kernels.cu) ---- */

/* [rows][cells][channels]; each row and group of channels has its own statistics. */
typedef struct hpct_cuda_group_norm {
    hpct_cuda_queue queue;
    hpct_cuda_number type;
    size_t rows; /* of all samples */
    int cells, channels, groups;
    float epsilon;
    const float *gamma, *beta; /* or NULL */
    float *notes;              /* [rows][groups][2]: mean, 1 / sqrt(variance + epsilon) */
} hpct_cuda_group_norm;

/* Stores the notes, too. */
cudaError_t hpct_cuda_launch_group_norm(const hpct_cuda_group_norm *norm, const void *src,
                                        void *dst);
cudaError_t hpct_cuda_launch_group_norm_backward(const hpct_cuda_group_norm *norm, const void *src,
                                                 const void *diff_dst, bool add, void *diff_src);
/* diff_gamma and diff_beta may be NULL; partial: [hpct_cuda_group_norm_parts][2][channels]. */
int hpct_cuda_group_norm_parts(size_t rows, int cells);
cudaError_t hpct_cuda_launch_group_norm_params(const hpct_cuda_group_norm *norm, const void *src,
                                               const void *diff_dst, float *partial,
                                               float *diff_gamma, float *diff_beta);

/* ---- values that change in every step (moment_kernels.cu) ---- */

/* Read on the device by replayed launches. */
typedef struct hpct_cuda_moment {
    uint64_t seed;
    uint32_t step, first_sample;
    float rate, decay, bias_1, bias_2; /* hpct_cuda_update_args */
    float minus_rate, one;             /* factors of a product with fused update
                                          (nn/backend/cuda/product.h) */
} hpct_cuda_moment;

cudaError_t hpct_cuda_launch_moment(hpct_cuda_queue queue, hpct_cuda_moment moment,
                                    hpct_cuda_moment *to);

/* Whether the module has kernels for the thread's device. */
cudaError_t hpct_cuda_kernels_are_there(void);

/* ---- random operations (random_kernels.cu) ---- */

typedef struct hpct_cuda_drawing {
    uint64_t seed;
    uint32_t tag, step, first_sample; /* tag: hpct_graph_draw_tag's */
    const hpct_cuda_moment *now;      /* if not NULL: source of seed, step and first_sample */
} hpct_cuda_drawing;

/* [n][size]; forward and backward (see nn/backend/dropout.h). */
cudaError_t hpct_cuda_launch_dropout(hpct_cuda_queue queue, hpct_cuda_number type,
                                     hpct_cuda_drawing drawing, uint32_t threshold, float scale,
                                     int n, size_t size, const void *src, bool add, void *dst);
/* [n][rows][size]: all rows of a sample lose the same elements. */
cudaError_t hpct_cuda_launch_dropout_rows(hpct_cuda_queue queue, hpct_cuda_number type,
                                          hpct_cuda_drawing drawing, uint32_t threshold,
                                          float scale, int n, size_t rows, size_t size,
                                          const void *src, bool add, void *dst);
/* dst = src + stddev * a normal number (nn/backend/noise.h). */
cudaError_t hpct_cuda_launch_noise(hpct_cuda_queue queue, hpct_cuda_number type,
                                   hpct_cuda_drawing drawing, float stddev, int n, size_t size,
                                   const void *src, void *dst);

typedef struct hpct_cuda_crop {
    int in_h, in_w, out_h, out_w, channels;
    bool nearest;                 /* cell, instead of a bilinear mean */
    int top, left, height, width; /* the box, resized to out_h x out_w */
    bool draws;                   /* random box: out_h x out_w at any position of a larger input */
} hpct_cuda_crop;

cudaError_t hpct_cuda_launch_crop(hpct_cuda_queue queue, hpct_cuda_number type,
                                  hpct_cuda_drawing drawing, const hpct_cuda_crop *crop, int n,
                                  const void *src, void *dst);
cudaError_t hpct_cuda_launch_crop_backward(hpct_cuda_queue queue, hpct_cuda_number type,
                                           hpct_cuda_drawing drawing, const hpct_cuda_crop *crop,
                                           int n, const void *diff_dst, bool add, void *diff_src);
/* [n][h][w][channels]: flips the selected samples in the given directions; its own inverse. */
cudaError_t hpct_cuda_launch_flip(hpct_cuda_queue queue, hpct_cuda_number type,
                                  hpct_cuda_drawing drawing, int n, int h, int w, int channels,
                                  bool horizontal, bool vertical, const void *src, bool add,
                                  void *dst);

/* ---- random changes of images [n][h][w][channels] (variation_kernels.cu) ---- */

typedef struct hpct_cuda_varied {
    int h, w, channels;
    hpct_graph_variation variation;
} hpct_cuda_varied;

cudaError_t hpct_cuda_launch_affine(hpct_cuda_queue queue, hpct_cuda_number type,
                                    hpct_cuda_drawing drawing, const hpct_cuda_varied *varied,
                                    int n, const void *src, void *dst);
cudaError_t hpct_cuda_launch_tone(hpct_cuda_queue queue, hpct_cuda_number type,
                                  hpct_cuda_drawing drawing, const hpct_cuda_varied *varied, int n,
                                  const void *src, void *dst);

/* ---- images of a data set (gather_kernels.cu) ---- */

/* hpct_backend_pictures in device memory. */
typedef struct hpct_cuda_gather {
    const uint8_t *pixels;
    const int32_t *labels;
    int in_h, in_w, out_h, out_w, channels;
    float factor, offset;
} hpct_cuda_gather;

/* dst[n][out_h][out_w][channels] of `type`, to[n]: labels. */
cudaError_t hpct_cuda_launch_gather(hpct_cuda_queue queue, hpct_cuda_number type,
                                    const hpct_cuda_gather *gather, int n, const hpct_drawn *drawn,
                                    void *dst, int32_t *to);

/* ---- loss (loss_kernels.cu) ---- */

typedef enum hpct_cuda_loss_kind { /* forms of nn/backend/backend.h */
                                   HPCT_CUDA_LOSS_KIND_LOGITS,
                                   HPCT_CUDA_LOSS_KIND_PROBABILITIES,
                                   HPCT_CUDA_LOSS_KIND_DISTRIBUTION,
                                   HPCT_CUDA_LOSS_KIND_BINARY_LOGITS,
                                   HPCT_CUDA_LOSS_KIND_BINARY,
                                   HPCT_CUDA_LOSS_KIND_SQUARED,
                                   HPCT_CUDA_LOSS_KIND_BINARY_FOCAL_LOGITS,
                                   HPCT_CUDA_LOSS_KIND_BINARY_FOCAL,
                                   HPCT_CUDA_LOSS_KIND_FOCAL_LOGITS,
                                   HPCT_CUDA_LOSS_KIND_FOCAL,
                                   HPCT_CUDA_LOSS_KIND_HUBER,
                                   HPCT_CUDA_LOSS_KIND_DIVERGENCE
} hpct_cuda_loss_kind;

/* hpct_target_kind: what correct and in_top_k are of. */
typedef enum hpct_cuda_judged {
    HPCT_CUDA_JUDGED_CLASS,
    HPCT_CUDA_JUDGED_BINARY,
    HPCT_CUDA_JUDGED_NUMBERS
} hpct_cuda_judged;

typedef struct hpct_cuda_loss_sums {
    double loss;
    double correct, in_top_k;
} hpct_cuda_loss_sums;

typedef struct hpct_cuda_loss_args {
    hpct_cuda_loss_kind kind;
    int n, classes, top_k;
    float label_smoothing, threshold, scale;
    float alpha, gamma, delta;
    const float *class_weights;             /* factor of a sample's loss, by class; NULL: 1 */
    const float *penalty;                   /* [2], added to each sample's loss; NULL: none */
    const hpct_graph_loss_scaling *scaling; /* its scale is a factor, too; NULL: none */
    const int32_t *labels;
    const float *targets; /* NULL: labels are used */
    hpct_cuda_judged judged;
    hpct_cuda_loss_sums *sums; /* [1], overwritten */
    hpct_cuda_loss_sums *left; /* if not NULL: also written to left[*turns % 2], in host memory */
    uint32_t *turns;           /* incremented with each write */
} hpct_cuda_loss_args;

/* src and diff_src (or NULL) are of `type`. At most one launch at a time per device: blocks' sums
 * are in a static buffer. */
cudaError_t hpct_cuda_launch_loss(hpct_cuda_queue queue, hpct_cuda_number type,
                                  hpct_cuda_loss_args args, const void *src, void *diff_src);

/* to[3]: loss, correct, in_top_k. */
cudaError_t hpct_cuda_launch_put_sums(hpct_cuda_queue queue, const hpct_cuda_loss_sums *sums,
                                      float *to);

/* ---- optimizers (update_kernels.cu) ---- */

#define HPCT_CUDA_UPDATE_RANGES 256  /* per launch */
#define HPCT_CUDA_UPDATE_FACTORS 8   /* different factors of the rate per launch */
#define HPCT_CUDA_UPDATE_CHUNK 4096  /* minimum floats of a range per block and iteration */
#define HPCT_CUDA_UPDATE_CHUNKS 8192 /* maximum, plus one per range */

typedef enum hpct_cuda_update_kind {
    HPCT_CUDA_UPDATE_SGD,  /* with a slot: momentum */
    HPCT_CUDA_UPDATE_ADAM, /* AdamW, too */
    HPCT_CUDA_UPDATE_LARS,
    HPCT_CUDA_UPDATE_LAMB_MOMENTS, /* first half of LAMB: sums of squares of w and of its update */
    HPCT_CUDA_UPDATE_LAMB_APPLY,
    HPCT_CUDA_UPDATE_RMSPROP, /* with a first slot: momentum; with a third: centered */
} hpct_cuda_update_kind;

/* Ranges of the arenas in units of 16 floats, divided into chunks. */
typedef struct hpct_cuda_update_table {
    int num_ranges;
    uint32_t chunk; /* units per chunk; a range's last has fewer */
    uint32_t
        first_chunk[HPCT_CUDA_UPDATE_RANGES + 1]; /* of each range; then the number of chunks */
    uint32_t offset[HPCT_CUDA_UPDATE_RANGES], count[HPCT_CUDA_UPDATE_RANGES];
    uint8_t adapt[HPCT_CUDA_UPDATE_RANGES];
    uint8_t factor[HPCT_CUDA_UPDATE_RANGES]; /* index in: */
    float factors[HPCT_CUDA_UPDATE_FACTORS]; /* of the learning rate */
} hpct_cuda_update_table;

typedef struct hpct_cuda_update_args {
    hpct_cuda_update_kind kind;
    bool nesterov;
    bool settled; /* use gradient scale and rate per range from hpct_cuda_launch_update_settle */
    float rate, decay, momentum, epsilon, trust; /* decay: weight decay (LARS), else rate times
                                                    weight decay */
    float mix_1, mix_2, bias_1, bias_2, grad_scale, clipvalue;
    float *param, *slot[3];
    const float *grad;
    hpct_graph_loss_scaling *scaling; /* or NULL; the update is skipped if `infinite` is not 0 */
    const hpct_cuda_moment *now;      /* if not NULL: source of rate, decay, bias_1 and bias_2 */
} hpct_cuda_update_args;

/* One update of all ranges in the table. LAMB_MOMENTS computes sums as
 * hpct_cuda_launch_update_norms. */
cudaError_t hpct_cuda_launch_update(hpct_cuda_queue queue, const hpct_cuda_update_table *table,
                                    const hpct_cuda_update_args *args);

/* Sums of squares per range, kept on the device. `scaled`: of parameters, and of gradients as
 * scaled by the update; else of unscaled gradients only. */
cudaError_t hpct_cuda_launch_update_norms(hpct_cuda_queue queue,
                                          const hpct_cuda_update_table *table,
                                          const hpct_cuda_update_args *args, bool scaled);

/* The two sums of each range as floats, to be all-reduced with other replicas; *sums is device
 * memory, [HPCT_CUDA_UPDATE_RANGES][2]. `take` writes them back. */
cudaError_t hpct_cuda_update_sums(float **sums);
cudaError_t hpct_cuda_launch_update_take(hpct_cuda_queue queue, int first, int count);

/* Before the update: sets `infinite` from the squares summed by COUNT_ALL; 0 unless `measured`. */
cudaError_t hpct_cuda_launch_scaling_judge(hpct_cuda_queue queue, hpct_graph_loss_scaling *scaling,
                                           bool measured);
/* After the update. */
cudaError_t hpct_cuda_launch_scaling_move(hpct_cuda_queue queue, hpct_graph_loss_scaling *scaling,
                                          double beta_1, double beta_2);

typedef enum hpct_cuda_update_settle {
    HPCT_CUDA_SETTLE_START,      /* gradient scale and rate from args, for every range */
    HPCT_CUDA_SETTLE_COUNT_ALL,  /* adds the ranges' squares of gradients to the total over all
                                    groups */
    HPCT_CUDA_SETTLE_CLIP_ALL,   /* START, then reduces the scale such that the norm of the whole
                               gradient is at most `limit` */
    HPCT_CUDA_SETTLE_CLIP_RANGE, /* reduces the scale by the norm of each range */
    HPCT_CUDA_SETTLE_LARS,       /* multiplies the rate by the trust ratio */
    HPCT_CUDA_SETTLE_LAMB,
} hpct_cuda_update_settle;

/* first: COUNT_ALL starts a new total. */
cudaError_t hpct_cuda_launch_update_settle(hpct_cuda_queue queue,
                                           const hpct_cuda_update_table *table,
                                           const hpct_cuda_update_args *args,
                                           hpct_cuda_update_settle settle, float limit, bool first);

/* ---- penalties of regularizers (penalty_kernels.cu) ---- */

#define HPCT_CUDA_PENALTY_RANGES 128  /* per launch */
#define HPCT_CUDA_PENALTY_CHUNK 4096  /* minimum floats of a parameter per block and iteration */
#define HPCT_CUDA_PENALTY_CHUNKS 4096 /* maximum, plus one per parameter */

/* Parameters in units of 16 floats, divided into chunks. */
typedef struct hpct_cuda_penalty_table {
    int num;
    uint32_t chunk;                                     /* units per chunk; the last has fewer */
    uint32_t first_chunk[HPCT_CUDA_PENALTY_RANGES + 1]; /* of each; then the number of chunks */
    uint32_t offset[HPCT_CUDA_PENALTY_RANGES], count[HPCT_CUDA_PENALTY_RANGES];
    float l1[HPCT_CUDA_PENALTY_RANGES], l2[HPCT_CUDA_PENALTY_RANGES];
} hpct_cuda_penalty_table;

/* grad += factor (l1 sign(w) + 2 l2 w), with `scaling` times its scale. */
cudaError_t hpct_cuda_launch_penalty_gradients(hpct_cuda_queue queue,
                                               const hpct_cuda_penalty_table *table, float factor,
                                               const hpct_graph_loss_scaling *scaling,
                                               const float *param, float *grad);

/* *sum += the penalties; with `first` it is overwritten. */
cudaError_t hpct_cuda_launch_penalty_sums(hpct_cuda_queue queue,
                                          const hpct_cuda_penalty_table *table, const float *param,
                                          bool first, float *sum);

/* ---- proofs of engines (self_test_kernels.cu) ---- */

#define HPCT_CUDA_SELF_TEST_MOST 1e30F /* what counts as no number, and as more than that */

typedef enum hpct_cuda_self_test_way {
    HPCT_CUDA_SELF_TEST_FORWARD,
    HPCT_CUDA_SELF_TEST_DATA,
    HPCT_CUDA_SELF_TEST_KERNEL
} hpct_cuda_self_test_way;

/* A convolution, or the gradient of its source or kernel: the sum of the products; of the images,
 * then plus `initial`, `other` and `bias` (those that are not NULL), and a ReLU. */
typedef struct hpct_cuda_self_test_case {
    hpct_cuda_self_test_way way;
    hpct_cuda_direct conv;
    hpct_cuda_number type; /* of all but the kernel */
    const void *src, *dst, *initial, *other, *bias;
    const float *kernel;
    bool relu;
} hpct_cuda_self_test_case;

/* Draws `samples` elements of the result, and computes them. */
cudaError_t hpct_cuda_launch_self_test_expect(hpct_cuda_queue queue,
                                              const hpct_cuda_self_test_case *c, int samples,
                                              size_t *offset, float *expected);
/* *worst: the largest distance of got[offset[i]] to expected[i], as a multiple of room + relative
 * |expected[i]|. */
cudaError_t hpct_cuda_launch_self_test_deviation(hpct_cuda_queue queue, hpct_cuda_number type,
                                                 int samples, const size_t *offset,
                                                 const float *expected, const void *got, float room,
                                                 float relative, float *worst);

#ifdef __cplusplus
}
#endif

#endif
