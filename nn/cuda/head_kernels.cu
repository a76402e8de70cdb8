/* The end of a classifier in one kernel: a small Dense, the loss of what it makes, and its
 * backward, which as operations would take six kernels of a few thousand numbers each.
 *
 * A block has some rows of the batch, a warp one at a time; their inputs and the kernel lie in
 * shared memory, in fp32. Gradients of parameters are sums over the rows: each block leaves its
 * part, and the last one to be done adds them up, in the order of the blocks. */
#include "nn/cuda/loss_sample.cuh"

constexpr int HEAD_WARPS = THREADS / WARP;
constexpr int HEAD_NUMBERS = 4096; /* of a block's inputs, and of the kernel, at most */
constexpr int HEAD_OUTPUTS = 32, HEAD_ROWS = 32, HEAD_BLOCKS = 64; /* at most */

HPCT_OF_DEVICE hpct_loss_sums head_sums[HEAD_BLOCKS];
HPCT_OF_DEVICE unsigned heads_done; /* blocks; 0 between launches */

namespace
{

/* Rows of a block: few, as long as there are not too many blocks. */
int head_rows(int n)
{
    int rows = HEAD_WARPS;
    while ((n + rows - 1) / rows > HEAD_WARPS * HEAD_WARPS / 2 && rows < HEAD_ROWS)
        rows *= 2;
    return rows;
}

int head_blocks(int n)
{
    const int rows = head_rows(n);
    return n < 1 ? 1 : (n + rows - 1) / rows;
}

/* Sums of a block: gradients of the kernel, of the bias before, of the own bias. */
__host__ __device__ inline int head_count(int in, int outputs)
{
    return (outputs * in + in + outputs + 3) / 4 * 4;
}

/* Row-major numbers into shared memory, in packs where they fit. */
template <typename T, int V> __device__ inline void bring(const T *from, int count, float *to)
{
    for (int i = (int) threadIdx.x * V; i < count; i += THREADS * V) {
        float own[V];
        load(from + i, own);
#pragma unroll
        for (int k = 0; k < V; k++)
            to[i + k] = own[k];
    }
}

/* Of the kernel's rows in shared memory: an odd number, so that lanes which read the same number of
 * different rows find them in different banks. */
__device__ inline int head_step(int in)
{
    return in | 1;
}

struct head_memory {                           /* of a block's shared memory */
    float src[HEAD_NUMBERS];                   /* [rows][in] */
    float kernel[HEAD_NUMBERS + HEAD_OUTPUTS]; /* [outputs][head_step] */
    float made[HEAD_ROWS * HEAD_OUTPUTS], diff[HEAD_ROWS * HEAD_OUTPUTS]; /* [rows][outputs] */
};

__device__ inline void bring_kernel(const hpct_head &h, float *to)
{
    for (int i = (int) threadIdx.x; i < h.loss.classes * h.in; i += THREADS) {
        const int c = i / h.in;
        to[c * head_step(h.in) + i - c * h.in] = h.kernel[i];
    }
}

/* The result of a row and its gradient; returns its loss, and what is right of it. */
template <typename T>
__device__ inline hpct_loss_sums loss_of_row(const hpct_head &h, head_memory &s, int row,
                                             int sample_at, T *dst)
{
    const int lane = (int) threadIdx.x % WARP, outputs = h.loss.classes;
    const float *src = s.src + row * h.in;
    float *made = s.made + row * outputs, *diff = s.diff + row * outputs;
    int parts = WARP; /* lanes for each output */
    while (parts * outputs > WARP)
        parts /= 2;
    const int c = lane / parts;
    float sum = 0;
    for (int k = lane % parts; c < outputs && k < h.in; k += parts)
        sum += src[k] * s.kernel[c * head_step(h.in) + k];
    for (int step = parts / 2; step > 0; step /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (c < outputs && lane % parts == 0) {
        made[c] = sum + (h.bias != nullptr ? h.bias[c] : 0);
        round_to(made[c], &dst[(size_t) sample_at * (size_t) outputs + (size_t) c]);
    }
    __syncwarp();
    const float *targets = h.loss.targets;
    const sample<float> own = {h.loss,
                               scale_of(h.loss),
                               lane,
                               targets == nullptr ? h.loss.labels[sample_at] : 0,
                               targets == nullptr ? nullptr
                                                  : targets + (size_t) sample_at * (size_t) outputs,
                               made,
                               diff};
    hpct_loss_sums sums = {own.loss(), 0, 0};
    own.judge(&sums);
    __syncwarp();
    return sums;
}

/* Of one row's input; with `mask` where that is above 0 alone. */
__device__ inline float slope_at(const hpct_head &h, const head_memory &s, int row, int k)
{
    const int outputs = h.loss.classes;
    float sum = 0;
    for (int c = 0; c < outputs; c++)
        sum += s.diff[row * outputs + c] * s.kernel[c * head_step(h.in) + k];
    return h.mask && !(s.src[row * h.in + k] > 0) ? 0 : sum;
}

/* The i-th of the sums over the block's rows. */
__device__ inline float sum_at(const hpct_head &h, const head_memory &s, int rows, int i)
{
    const int outputs = h.loss.classes, of_kernel = outputs * h.in;
    float sum = 0;
    if (i < of_kernel) {
        const int c = i / h.in, k = i - c * h.in;
        for (int r = 0; r < rows; r++)
            sum += s.diff[r * outputs + c] * s.src[r * h.in + k];
    } else if (i < of_kernel + h.in) {
        for (int r = 0; r < rows && h.before_bias.at != nullptr; r++)
            sum += slope_at(h, s, r, i - of_kernel);
    } else if (i < of_kernel + h.in + outputs) {
        for (int r = 0; r < rows; r++)
            sum += s.diff[r * outputs + i - of_kernel - h.in];
    }
    return sum;
}

/* Where the i-th of the sums over all rows goes. */
__device__ inline void leave_sum(const hpct_head &h, int i, float sum)
{
    const int of_kernel = h.loss.classes * h.in, own = i - of_kernel - h.in;
    if (i < of_kernel)
        leave(h.diff_kernel, (size_t) i, sum);
    else if (own < 0 && h.before_bias.at != nullptr)
        leave(h.before_bias, (size_t) (i - of_kernel), sum);
    else if (own >= 0 && own < h.loss.classes && h.diff_bias.at != nullptr)
        leave(h.diff_bias, (size_t) own, sum);
}

/* By the last block: all parts are there. */
__device__ inline void finish_head(const hpct_head &h)
{
    const int count = head_count(h.in, h.loss.classes);
    for (int i = (int) threadIdx.x * 4; i < count; i += THREADS * 4) {
        float sum[4] = {};
#pragma unroll 8
        for (unsigned b = 0; b < gridDim.x; b++) {
            float part[4];
            load(h.scratch + (size_t) b * (size_t) count + (size_t) i, part);
#pragma unroll
            for (int k = 0; k < 4; k++)
                sum[k] += part[k];
        }
#pragma unroll
        for (int k = 0; k < 4; k++)
            leave_sum(h, i + k, sum[k]);
    }
    if (threadIdx.x >= WARP)
        return;
    const hpct_loss_sums sums = sums_of_blocks(head_sums, gridDim.x);
    if (threadIdx.x == 0) {
        heads_done = 0;
        leave_sums(h.loss, sums);
    }
}

} // namespace

template <typename T, int V>
__global__ void __launch_bounds__(THREADS)
    head(const __grid_constant__ hpct_head h, int rows_of_a_block, const T *src, T *dst,
         T *diff_src)
{
    __shared__ head_memory s;
    __shared__ hpct_loss_sums of_warp[HEAD_WARPS];
    __shared__ bool last;
    const int lane = (int) threadIdx.x % WARP, warp = (int) threadIdx.x / WARP;
    const int first = (int) blockIdx.x * rows_of_a_block, left = h.loss.n - first,
              rows = left < rows_of_a_block ? left : rows_of_a_block;
    bring<T, V>(src + (size_t) first * (size_t) h.in, rows * h.in, s.src);
    bring_kernel(h, s.kernel);
    __syncthreads();
    hpct_loss_sums sums = {0, 0, 0};
    for (int r = warp; r < rows; r += HEAD_WARPS) {
        add_up(loss_of_row(h, s, r, first + r, dst), &sums);
        T *diff = diff_src + (size_t) (first + r) * (size_t) h.in;
        for (int k = lane; k < h.in && diff_src != nullptr; k += WARP)
            round_to(slope_at(h, s, r, k), &diff[k]);
    }
    if (lane == 0)
        of_warp[warp] = sums;
    __syncthreads();
    const int count = head_count(h.in, h.loss.classes);
    for (int i = (int) threadIdx.x; i < count; i += THREADS)
        h.scratch[(size_t) blockIdx.x * (size_t) count + (size_t) i] = sum_at(h, s, rows, i);
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < HEAD_WARPS; i++)
            add_up(of_warp[i], &sums);
        head_sums[blockIdx.x] = sums;
        __threadfence(); /* all of the block, before it is said to be done */
        last = atomicAdd(&heads_done, 1u) + 1 == gridDim.x;
        __threadfence(); /* what others have said is there */
    }
    __syncthreads();
    if (last)
        finish_head(h);
}

bool hpct_head_fits(int n, int in, int outputs)
{
    const int rows = head_rows(n);
    return outputs <= HEAD_OUTPUTS && (int64_t) outputs * in <= HEAD_NUMBERS &&
           (int64_t) rows * in <= HEAD_NUMBERS && head_blocks(n) <= HEAD_BLOCKS;
}

size_t hpct_head_scratch_bytes(int n, int in, int outputs)
{
    return (size_t) head_blocks(n) * (size_t) head_count(in, outputs) * sizeof(float);
}

cudaError_t hpct_launch_head(hpct_queue queue, hpct_number type, const hpct_head *h,
                             const void *src, void *dst, void *diff_src)
{
    const int rows = head_rows(h->loss.n);
    return for_type(type, [&](auto zero) {
        using T = decltype(zero);
        for_width<T>(h->in % WIDE<T> == 0 && is_aligned(src), [&](auto width) {
            const auto kernel = head<T, decltype(width)::value>;
            HPCT_LAUNCH(kernel, (unsigned) head_blocks(h->loss.n), (unsigned) THREADS, queue, *h,
                        rows, (const T *) src, (T *) dst, (T *) diff_src);
        });
    });
}
