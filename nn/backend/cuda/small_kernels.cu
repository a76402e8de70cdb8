/* Small-window convolutions, e.g. the first layer of a network on grayscale images. Forward: one
 * thread per pack of channels of a cell, the kernel in shared memory. Backward: one thread per four
 * channels of strided cells, which accumulates some taps and the bias; blocks store partial sums,
 * which a second launch adds. The number of parts depends on the sizes only. */
#include "nn/backend/cuda/kernel.cuh"

namespace small_windows
{

constexpr int TAPS = 9; /* per block: 3 x 3 on one channel */
constexpr unsigned CELLS_OF_A_THREAD = 4, MOST_PARTS = 256;
constexpr int BLOCKS_AT_ONCE = 3;            /* of forward, per multiprocessor */
constexpr int SUM_LANES = 32, SUM_ROWS = 32; /* block size of the launch that adds parts */

__host__ __device__ inline int taps_of(const hpct_cuda_direct &d)
{
    return d.kernel_h * d.kernel_w * d.in_c;
}

/* Position of a tap relative to the first of its window: rows, columns, elements. */
struct tap {
    int y, x, offset;
};

__device__ inline tap tap_at(const hpct_cuda_direct &d, int t)
{
    const int cell = t / d.in_c;
    const int y = cell / d.kernel_w * d.dilation_h, x = cell % d.kernel_w * d.dilation_w;
    return {y, x, (y * d.in_w + x) * d.in_c + t % d.in_c};
}

/* Position of a window: offset of its first tap, which may be in the padding. */
struct corner {
    int at, y, x;
};

__device__ inline corner corner_of(const hpct_cuda_direct &d, unsigned cell)
{
    const unsigned sample = cell / (unsigned) d.cells, own = cell - sample * (unsigned) d.cells;
    const int i = (int) (own / (unsigned) d.out_w), j = (int) own - i * d.out_w;
    const int y = i * d.stride_h - d.pad_top, x = j * d.stride_w - d.pad_left;
    return {(((int) sample * d.in_h + y) * d.in_w + x) * d.in_c, y, x};
}

/* Always loads, so that several loads are concurrent. */
template <typename T>
__device__ inline float input_at(const hpct_cuda_direct &d, const T *src, const corner &c,
                                 const tap &t)
{
    const bool inside =
        (unsigned) (c.y + t.y) < (unsigned) d.in_h && (unsigned) (c.x + t.x) < (unsigned) d.in_w;
    const float x = value_of(src[inside ? c.at + t.offset : 0]);
    return inside ? x : 0;
}

/* Loads V adjacent elements of an array that is 16-byte aligned. */
template <int V> __device__ inline void load_weights(const float *from, float (&to)[V])
{
    if constexpr (V % 4 != 0) {
        load(from, to);
    } else {
#pragma unroll
        for (int k = 0; k < V; k += 4)
            load(from + k, reinterpret_cast<float(&)[4]>(to[k]));
    }
}

/* NUM: number of taps if known at compile time, else 0. */
template <typename T, int V, int NUM>
__global__ void __launch_bounds__(THREADS)
    small_forward(const hpct_cuda_direct d, unsigned items, const T *src, const float *kernel,
                  const float *bias, bool relu, T *dst)
{
    __shared__ tap taps[HPCT_CUDA_SMALL_TAPS];
    __shared__ __align__(16) float weights[HPCT_CUDA_SMALL_NUMBERS]; /* [tap][channel] */
    const int num = NUM > 0 ? NUM : taps_of(d);
    const unsigned vectors = (unsigned) d.out_c / V;
    for (int i = (int) threadIdx.x; i < num * d.out_c; i += (int) blockDim.x)
        weights[i % num * d.out_c + i / num] = kernel[i];
    for (int t = (int) threadIdx.x; t < num; t += (int) blockDim.x)
        taps[t] = tap_at(d, t);
    __syncthreads();
    for (unsigned item = (unsigned) grid_index(); item < items; item += (unsigned) grid_step()) {
        const unsigned cell = item / vectors;
        const int first = (int) (item - cell * vectors) * V;
        const corner c = corner_of(d, cell);
        float sum[V];
#pragma unroll
        for (int k = 0; k < V; k++)
            sum[k] = bias != nullptr ? bias[first + k] : 0;
#pragma unroll(NUM > 0 ? NUM : 4)
        for (int t = 0; t < num; t++) {
            const float x = input_at(d, src, c, taps[t]);
            float w[V];
            load_weights(weights + t * d.out_c + first, w);
#pragma unroll
            for (int k = 0; k < V; k++)
                sum[k] += x * w[k];
        }
#pragma unroll
        for (int k = 0; k < V; k++)
            sum[k] = relu && !(sum[k] > 0) ? 0 : sum[k];
        store(sum, dst + (size_t) item * V);
    }
}

/* sums[part][taps, then the bias][channels] */
template <typename T, int V>
__global__ void __launch_bounds__(THREADS, 2)
    small_backward(const hpct_cuda_direct d, unsigned cells, unsigned cells_of_a_part, const T *src,
                   const T *dst, const T *diff, float *sums)
{
    __shared__ tap taps[TAPS];
    __shared__ float shared[(TAPS + 1) * V][THREADS];
    const int all = taps_of(d), first_tap = (int) blockIdx.z * TAPS;
    const int num = all - first_tap < TAPS ? all - first_tap : TAPS;
    const int first = ((int) blockIdx.x * (int) blockDim.x + (int) threadIdx.x) * V;
    const unsigned own = threadIdx.y * blockDim.x + threadIdx.x;
    const unsigned begin = blockIdx.y * cells_of_a_part;
    const unsigned end = begin + cells_of_a_part < cells ? begin + cells_of_a_part : cells;
    if (own < TAPS) /* unused entries are like the first */
        taps[own] = tap_at(d, first_tap + ((int) own < num ? (int) own : 0));
    __syncthreads();
    float sum[TAPS + 1][V] = {};
    for (unsigned cell = begin + threadIdx.y; first < d.out_c && cell < end; cell += blockDim.y) {
        const corner c = corner_of(d, cell);
        const size_t at = (size_t) cell * (size_t) d.out_c + (size_t) first;
        float g[V], y[V], x[TAPS];
        load(diff + at, g);
        if (dst != nullptr)
            load(dst + at, y);
#pragma unroll
        for (int t = 0; t < TAPS; t++)
            x[t] = input_at(d, src, c, taps[t]);
#pragma unroll
        for (int k = 0; k < V; k++) {
            g[k] = dst != nullptr && !(y[k] > 0) ? 0 : g[k];
            sum[TAPS][k] += g[k];
#pragma unroll
            for (int t = 0; t < TAPS; t++)
                sum[t][k] += x[t] * g[k];
        }
    }
#pragma unroll
    for (int t = 0; t <= TAPS; t++) {
#pragma unroll
        for (int k = 0; k < V; k++)
            shared[t * V + k][own] = sum[t][k];
    }
    __syncthreads();
    float *const to = sums + blockIdx.y * (size_t) (all + 1) * (size_t) d.out_c;
    for (unsigned i = own; i < (TAPS + 1) * V * blockDim.x; i += THREADS) {
        const unsigned row = i / blockDim.x, lane = i - row * blockDim.x;
        const int t = (int) row / V;
        const int channel = ((int) blockIdx.x * (int) blockDim.x + (int) lane) * V + (int) row % V;
        if (channel >= d.out_c || (t < TAPS ? t >= num : first_tap > 0))
            continue;
        float total = 0;
        for (unsigned r = 0; r < blockDim.y; r++)
            total += shared[row][r * blockDim.x + lane];
        to[(size_t) (t < TAPS ? first_tap + t : all) * (size_t) d.out_c + (size_t) channel] = total;
    }
}

__global__ void __launch_bounds__(SUM_LANES *SUM_ROWS)
    small_finish(const hpct_cuda_direct d, int parts, const float *sums, float *kernel, float *bias)
{
    __shared__ float shared[SUM_ROWS][SUM_LANES];
    const int num = taps_of(d), count = (num + 1) * d.out_c;
    const int i = (int) blockIdx.x * SUM_LANES + (int) threadIdx.x;
    float sum = 0;
    for (int part = (int) threadIdx.y; i < count && part < parts; part += SUM_ROWS)
        sum += sums[(size_t) part * (size_t) count + (size_t) i];
    shared[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y != 0 || i >= count)
        return;
    for (int row = 1; row < SUM_ROWS; row++)
        sum += shared[row][threadIdx.x];
    const int t = i / d.out_c, o = i % d.out_c;
    if (t < num)
        kernel[o * num + t] = sum;
    else if (bias != nullptr)
        bias[o] = sum;
}

} // namespace small_windows

/* ---- launchers ---- */

using namespace small_windows;

bool hpct_cuda_small_fits(const hpct_cuda_direct *d)
{
    const int64_t taps = (int64_t) d->kernel_h * d->kernel_w * d->in_c, most = INT32_MAX;
    const int64_t src = (int64_t) d->in_h * d->in_w * d->in_c, dst = (int64_t) d->cells * d->out_c;
    return d->groups == 1 && d->cells == d->out_h * d->out_w && taps <= HPCT_CUDA_SMALL_TAPS &&
           taps * d->out_c <= HPCT_CUDA_SMALL_NUMBERS && d->n <= most / (src > dst ? src : dst);
}

static unsigned all_cells(const hpct_cuda_direct *d)
{
    return (unsigned) d->n * (unsigned) d->cells;
}

cudaError_t hpct_cuda_launch_small_forward(hpct_precision type, const hpct_cuda_direct *d,
                                           const void *src, const float *kernel, const float *bias,
                                           bool relu, void *dst)
{
    const size_t channels = (size_t) d->out_c;
    return for_packs(type, is_aligned(dst), channels, [&](auto zero, auto width) {
        using T = decltype(zero);
        constexpr int V = decltype(width)::value;
        const unsigned items = all_cells(d) * (unsigned) (d->out_c / V),
                       most = (unsigned) (hpct_cuda_gpu.multiprocessors * BLOCKS_AT_ONCE),
                       blocks = blocks_for(items);
        auto function = small_forward<T, V, 0>;
        if constexpr (V > 1)
            function = taps_of(*d) == TAPS ? small_forward<T, V, TAPS> : function;
        return HPCT_CUDA_LAUNCH(function, blocks < most ? blocks : most, THREADS, *d, items, src,
                                kernel, bias, relu, dst);
    });
}

/* Block and grid: channels along x, cells along y, taps along z. */
struct cutting {
    dim3 block, grid;
    unsigned cells_of_a_part;
};

static int width_of_pack(const hpct_cuda_direct *d)
{
    return d->out_c % 4 == 0 ? 4 : 1;
}

static cutting cut_cells(const hpct_cuda_direct *d)
{
    const unsigned vectors = (unsigned) (d->out_c / width_of_pack(d)), cells = all_cells(d);
    unsigned x = 1;
    while (x < vectors && x < WARP)
        x *= 2;
    const unsigned least = THREADS / x * CELLS_OF_A_THREAD;
    unsigned parts = (cells - 1) / least + 1;
    parts = parts < MOST_PARTS ? parts : MOST_PARTS;
    return {dim3(x, THREADS / x),
            dim3((vectors + x - 1) / x, parts, (unsigned) ((taps_of(*d) + TAPS - 1) / TAPS)),
            (cells - 1) / parts + 1};
}

size_t hpct_cuda_small_scratch_bytes(const hpct_cuda_direct *d)
{
    return cut_cells(d).grid.y * (size_t) (taps_of(*d) + 1) * (size_t) d->out_c * sizeof(float);
}

cudaError_t hpct_cuda_launch_small_backward(hpct_precision type, const hpct_cuda_direct *d,
                                            const void *src, const void *dst, const void *diff_dst,
                                            float *kernel, float *bias, float *scratch)
{
    const cutting c = cut_cells(d);
    const cudaError_t error = for_type(type, [&](auto zero) {
        using T = decltype(zero);
        return HPCT_CUDA_LAUNCH(
            (width_of_pack(d) == 4 ? small_backward<T, 4> : small_backward<T, 1>), c.grid, c.block,
            *d, all_cells(d), c.cells_of_a_part, src, dst, diff_dst, scratch);
    });
    if (error != cudaSuccess)
        return error;
    const int count = (taps_of(*d) + 1) * d->out_c;
    return HPCT_CUDA_LAUNCH(small_finish, (unsigned) ((count + SUM_LANES - 1) / SUM_LANES),
                            dim3(SUM_LANES, SUM_ROWS), *d, c.grid.y, scratch, kernel, bias);
}
