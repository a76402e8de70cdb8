/* nn/backend/cuda/kernels.h - kernels behind launchers for files in C; those of operations are
 * behind their forward and backward (nn/backend/cuda/ops.h). A launcher enqueues on the thread's
 * stream and returns the launch status; it neither allocates nor waits. Pointers are to device
 * memory unless said otherwise; `void *` to activations or their gradients of the given type.
 * Arithmetic is fp32 (sums of losses and norms: fp64) whatever the type in memory; the order of
 * every sum depends on the shapes only. Accesses are 16 bytes wide if alignment and channels allow
 * it. */
#ifndef HPCT_NN_BACKEND_CUDA_KERNELS_H
#define HPCT_NN_BACKEND_CUDA_KERNELS_H

#include "nn/backend/backend.h"
#include "nn/backend/cuda/direct_shape.h"

#include <cuda_runtime_api.h>

/* ---- elementwise (elements_kernels.cu) ---- */

/* dst = src scale + offset; with `add` dst += that. */
cudaError_t hpct_cuda_launch_rescale(hpct_precision type, size_t count, float scale, float offset,
                                     const void *src, bool add, void *dst);
cudaError_t hpct_cuda_launch_cast(cudaStream_t stream, size_t count, hpct_precision from,
                                  const void *src, hpct_precision to, void *dst);
/* dst = src in fp32; also zeroes zeros[num_zeros], which may be 0. */
cudaError_t hpct_cuda_launch_widen(hpct_precision type, size_t count, const void *src, float *dst,
                                   size_t num_zeros, float *zeros);

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

cudaError_t hpct_cuda_launch_copies(hpct_precision to, const hpct_cuda_copy_table *table);
/* Pseudorandom values in [-1, 1) from the seed. */
cudaError_t hpct_cuda_launch_uniform(hpct_precision type, size_t count, uint64_t seed, void *dst);

/* ---- sums of several inputs (join_kernels.cu) ---- */

typedef struct hpct_cuda_join {
    int count; /* of inputs */
    bool relu;
    const void *src[HPCT_GRAPH_NODE_MAX_INPUTS];
    void *diff_src[HPCT_GRAPH_NODE_MAX_INPUTS]; /* NULL: not needed */
    bool add[HPCT_GRAPH_NODE_MAX_INPUTS];
} hpct_cuda_join;

cudaError_t hpct_cuda_launch_add(hpct_precision type, size_t count, const hpct_cuda_join *join,
                                 void *dst);

/* ---- bias and ReLU after convolutions and products (bias.cu) ---- */

/* Matrices are [rows][columns], row-major, 16-byte aligned; biases and their gradients fp32.
 * dst[r][c] += bias[c] unless bias is NULL; then, with `relu`, dst = max(0, dst). */
cudaError_t hpct_cuda_bias_add(hpct_precision type, size_t rows, size_t columns, const float *bias,
                               bool relu, void *dst);
/* Unless dst is NULL, sets diff[r][c] to 0 where dst[r][c] <= 0. Then, unless bias is NULL, bias[c]
 * = sum of diff[r][c] over r. `partials`: hpct_cuda_bias_scratch_bytes(type, rows, columns) bytes
 * of scratch, 16-byte aligned. */
cudaError_t hpct_cuda_bias_mask_and_sum(hpct_precision type, size_t rows, size_t columns,
                                        const void *dst, void *diff, float *bias, float *partials);
size_t hpct_cuda_bias_scratch_bytes(hpct_precision type, size_t rows, size_t columns);

/* ---- direct convolutions (direct.cu) ---- */

/* For those without a cuDNN engine and for operations on a part of the output cells: any stride,
 * dilation, padding and groups. Slow with many channels. Parameters and their gradients are fp32,
 * kernels [out][kernel_h][kernel_w][in / groups]. */
cudaError_t hpct_cuda_direct_forward(hpct_precision type, const hpct_cuda_direct *conv,
                                     const void *src, const float *kernel,
                                     const float *bias /* or NULL */, bool relu, void *dst);
cudaError_t hpct_cuda_direct_data(hpct_precision type, const hpct_cuda_direct *conv,
                                  const void *diff_dst, const float *kernel, void *diff_src);
/* `scratch`: hpct_cuda_direct_scratch_bytes(conv). */
cudaError_t hpct_cuda_direct_weights(hpct_precision type, const hpct_cuda_direct *conv,
                                     const void *src, const void *diff_dst, float *diff_kernel,
                                     float *scratch);
size_t hpct_cuda_direct_scratch_bytes(const hpct_cuda_direct *conv);

/* ---- convolutions of small windows (small_kernels.cu) ---- */

#define HPCT_CUDA_SMALL_TAPS 32      /* maximum inputs of a result */
#define HPCT_CUDA_SMALL_NUMBERS 4096 /* maximum elements of the kernel */

/* Whether a convolution is suitable: each result is a dot product of few inputs, for which tensor
 * cores would be mostly idle; one group, all cells, counts below 2^31. Kernels and their gradients
 * are fp32, [out][kernel_h][kernel_w][in]. */
bool hpct_cuda_small_fits(const hpct_cuda_direct *conv);
/* Adds the bias unless NULL; with `relu` applies max(0, x). */
cudaError_t hpct_cuda_launch_small_forward(hpct_precision type, const hpct_cuda_direct *conv,
                                           const void *src, const float *kernel, const float *bias,
                                           bool relu, void *dst);
/* Gradients of kernel and bias in one pass: unless dst is NULL, diff_dst is masked by dst > 0, but
 * not changed. `bias` may be NULL. */
size_t hpct_cuda_small_scratch_bytes(const hpct_cuda_direct *conv);
cudaError_t hpct_cuda_launch_small_backward(hpct_precision type, const hpct_cuda_direct *conv,
                                            const void *src, const void *dst, const void *diff_dst,
                                            float *kernel, float *bias, float *scratch);

/* ---- batch normalization of [rows][channels] (norm_kernels.cu) ---- */

/* Saved by forward for backward: fp32, [channels] each. */
typedef struct hpct_cuda_norm_notes {
    float *mean, *inverse; /* the batch's; inverse: 1 / sqrt(variance + epsilon) */
    float *scale, *shift;  /* dst = (src - mean) scale + shift */
    float *rows;           /* [1]: over all replicas */
} hpct_cuda_norm_notes;

/* gamma and beta, and their gradients, may be NULL. */
typedef struct hpct_cuda_norm {
    hpct_precision type;
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
int hpct_cuda_norm_parts(hpct_precision type, int channels);

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

/* ---- values that change in every step (moment_kernels.cu) ---- */

/* Read on the device by replayed launches. */
typedef struct hpct_cuda_moment {
    uint64_t seed;
    uint32_t step, first_sample;
    float rate, decay, bias_1, bias_2; /* hpct_cuda_update_args */
    float minus_rate, one;             /* factors of a product with fused update
                                          (nn/backend/cuda/product.h) */
} hpct_cuda_moment;

cudaError_t hpct_cuda_launch_moment(hpct_cuda_moment moment, hpct_cuda_moment *to);

/* Whether the module has kernels for the thread's device. */
cudaError_t hpct_cuda_kernels_are_there(void);

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
cudaError_t hpct_cuda_launch_update(const hpct_cuda_update_table *table,
                                    const hpct_cuda_update_args *args);

/* Sums of squares per range, kept on the device. `scaled`: of parameters, and of gradients as
 * scaled by the update; else of unscaled gradients only. */
cudaError_t hpct_cuda_launch_update_norms(const hpct_cuda_update_table *table,
                                          const hpct_cuda_update_args *args, bool scaled);

/* The two sums of each range as floats, to be all-reduced with other replicas; *sums is device
 * memory, [HPCT_CUDA_UPDATE_RANGES][2]. `take` writes them back. */
cudaError_t hpct_cuda_update_sums(float **sums);
cudaError_t hpct_cuda_launch_update_take(int first, int count);

/* Before the update: sets `infinite` from the squares summed by COUNT_ALL; 0 unless `measured`. */
cudaError_t hpct_cuda_launch_scaling_judge(hpct_graph_loss_scaling *scaling, bool measured);
/* After the update. */
cudaError_t hpct_cuda_launch_scaling_move(hpct_graph_loss_scaling *scaling, double beta_1,
                                          double beta_2);

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
cudaError_t hpct_cuda_launch_update_settle(const hpct_cuda_update_table *table,
                                           const hpct_cuda_update_args *args,
                                           hpct_cuda_update_settle settle, float limit, bool first);

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
    hpct_precision type; /* of all but the kernel */
    const void *src, *dst, *initial, *other, *bias;
    const float *kernel;
    bool relu;
} hpct_cuda_self_test_case;

/* Draws `samples` elements of the result, and computes them. */
cudaError_t hpct_cuda_launch_self_test_expect(const hpct_cuda_self_test_case *c, int samples,
                                              size_t *offset, float *expected);
/* *worst: the largest distance of got[offset[i]] to expected[i], as a multiple of room + relative
 * |expected[i]|. */
cudaError_t hpct_cuda_launch_self_test_deviation(hpct_precision type, int samples,
                                                 const size_t *offset, const float *expected,
                                                 const void *got, float room, float relative,
                                                 float *worst);

#endif
