/* Convolutions of small windows, as the first layer of a network on grey pictures is one. Forward
 * has a thread for some neighbouring channels of a cell, the kernel in its block's shared memory.
 * Backward has one for two channels of cells some way apart, which keeps the sums of some taps and
 * of the bias; blocks leave theirs as parts, and a second launch adds these up. How many there are
 * follows from the sizes alone. */
#include "nn/cuda/kernel.cuh"

namespace small_windows
{

constexpr int TAPS = 9; /* of a block: 3 x 3 on one channel */
constexpr size_t CELLS_OF_A_THREAD = 4, MOST_PARTS = 512;
constexpr int SUM_LANES = 32, SUM_ROWS = 32; /* of the block that adds up parts */

__host__ __device__ inline int taps_of(const hpct_direct &d)
{
    return d.kernel_h * d.kernel_w * d.in_c;
}

/* Where a tap lies from the first one of its window: rows, columns, numbers. */
struct tap {
    int y, x, offset;
};

__device__ inline tap tap_at(const hpct_direct &d, int t)
{
    const int cell = t / d.in_c;
    const int y = cell / d.kernel_w * d.dilation_h, x = cell % d.kernel_w * d.dilation_w;
    return {y, x, (y * d.in_w + x) * d.in_c + t % d.in_c};
}

/* A window's place: where its first tap is, which may lie in the padding. */
template <typename T> struct place {
    const T *first;
    int y, x;
};

template <typename T>
__device__ inline place<T> place_of(const hpct_direct &d, const T *src, size_t cell)
{
    const size_t sample = cell / (size_t) d.cells;
    const int at = (int) (cell - sample * (size_t) d.cells);
    const int y = at / d.out_w * d.stride_h - d.pad_top, x = at % d.out_w * d.stride_w - d.pad_left;
    const size_t picture = (size_t) d.in_h * (size_t) d.in_w * (size_t) d.in_c;
    return {src + sample * picture + ((ptrdiff_t) y * d.in_w + x) * d.in_c, y, x};
}

template <typename T>
__device__ inline float input_at(const hpct_direct &d, const place<T> &p, const tap &t)
{
    const int y = p.y + t.y, x = p.x + t.x;
    return y >= 0 && y < d.in_h && x >= 0 && x < d.in_w ? value_of(p.first[t.offset]) : 0;
}

/* V neighbours of an array that begins at a multiple of 16 bytes. */
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

template <typename T, int V>
__global__ void __launch_bounds__(THREADS)
    small_forward(const hpct_direct d, size_t items, const T *src, const float *kernel,
                  const float *bias, bool relu, T *dst)
{
    __shared__ tap taps[HPCT_SMALL_TAPS];
    __shared__ __align__(16) float weights[HPCT_SMALL_NUMBERS]; /* [tap][channel] */
    const int num = taps_of(d), vectors = d.out_c / V;
    for (int i = (int) threadIdx.x; i < num * d.out_c; i += (int) blockDim.x)
        weights[i % num * d.out_c + i / num] = kernel[i];
    for (int t = (int) threadIdx.x; t < num; t += (int) blockDim.x)
        taps[t] = tap_at(d, t);
    __syncthreads();
    for (size_t item = grid_index(); item < items; item += grid_step()) {
        const int first = (int) (item % (size_t) vectors) * V;
        const place<T> p = place_of(d, src, item / (size_t) vectors);
        float sum[V];
#pragma unroll
        for (int k = 0; k < V; k++)
            sum[k] = bias != nullptr ? bias[first + k] : 0;
        for (int t = 0; t < num; t++) {
            const float x = input_at(d, p, taps[t]);
            float w[V];
            load_weights(weights + t * d.out_c + first, w);
#pragma unroll
            for (int k = 0; k < V; k++)
                sum[k] += x * w[k];
        }
#pragma unroll
        for (int k = 0; k < V; k++)
            sum[k] = relu && !(sum[k] > 0) ? 0 : sum[k];
        store(sum, dst + item * V);
    }
}

/* sums[part][taps, then the bias][channels] */
template <typename T, int V>
__global__ void __launch_bounds__(THREADS, 3)
    small_backward(const hpct_direct d, size_t cells, size_t cells_of_a_part, const T *src,
                   const T *dst, const T *diff, float *sums)
{
    __shared__ tap taps[TAPS];
    __shared__ float shared[THREADS][V];
    const int all = taps_of(d), first_tap = (int) blockIdx.z * TAPS;
    const int num = all - first_tap < TAPS ? all - first_tap : TAPS;
    const int first = ((int) blockIdx.x * (int) blockDim.x + (int) threadIdx.x) * V;
    const int own = (int) (threadIdx.y * blockDim.x + threadIdx.x);
    const size_t begin = blockIdx.y * cells_of_a_part;
    const size_t end = begin + cells_of_a_part < cells ? begin + cells_of_a_part : cells;
    if (own < num)
        taps[own] = tap_at(d, first_tap + own);
    __syncthreads();
    float sum[TAPS + 1][V] = {};
#pragma unroll 2
    for (size_t cell = begin + threadIdx.y; first < d.out_c && cell < end; cell += blockDim.y) {
        const place<T> p = place_of(d, src, cell);
        const size_t at = cell * (size_t) d.out_c + (size_t) first;
        float g[V], y[V];
        load(diff + at, g);
        if (dst != nullptr)
            load(dst + at, y);
#pragma unroll
        for (int k = 0; k < V; k++) {
            g[k] = dst != nullptr && !(y[k] > 0) ? 0 : g[k];
            sum[TAPS][k] += g[k];
        }
#pragma unroll
        for (int t = 0; t < TAPS; t++) {
            const float x = t < num ? input_at(d, p, taps[t]) : 0;
#pragma unroll
            for (int k = 0; k < V; k++)
                sum[t][k] += x * g[k];
        }
    }
    float *const to = sums + blockIdx.y * (size_t) (all + 1) * (size_t) d.out_c;
#pragma unroll
    for (int t = 0; t <= TAPS; t++) {
        if (t < TAPS ? t >= num : first_tap > 0)
            continue;
        __syncthreads(); /* what was there has been read */
#pragma unroll
        for (int k = 0; k < V; k++)
            shared[own][k] = sum[t][k];
        __syncthreads();
        if (threadIdx.y != 0 || first >= d.out_c)
            continue;
        const int row = t < TAPS ? first_tap + t : all;
#pragma unroll
        for (int k = 0; k < V; k++) {
            float total = 0;
            for (unsigned r = 0; r < blockDim.y; r++)
                total += shared[own + (int) (r * blockDim.x)][k];
            to[(size_t) row * (size_t) d.out_c + (size_t) (first + k)] = total;
        }
    }
}

__global__ void __launch_bounds__(SUM_LANES *SUM_ROWS)
    small_finish(const hpct_direct d, int parts, const float *sums, float *diff_kernel,
                 float *diff_bias)
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
        diff_kernel[o * num + t] = sum;
    else if (diff_bias != nullptr)
        diff_bias[o] = sum;
}

} // namespace small_windows

/* ---- launchers ---- */

using namespace small_windows;

bool hpct_small_fits(const hpct_direct *d)
{
    const int64_t taps = (int64_t) d->kernel_h * d->kernel_w * d->in_c;
    return d->groups == 1 && d->cells == d->out_h * d->out_w && taps <= HPCT_SMALL_TAPS &&
           taps * d->out_c <= HPCT_SMALL_NUMBERS;
}

static size_t all_cells(const hpct_direct *d)
{
    return (size_t) d->n * (size_t) d->cells;
}

template <typename T, int V>
static void launch_forward(hpct_queue queue, const hpct_direct *d, const void *src,
                           const float *kernel, const float *bias, bool relu, void *dst)
{
    const size_t items = all_cells(d) * (size_t) (d->out_c / V);
    const auto function = small_forward<T, V>;
    HPCT_LAUNCH(function, blocks_for(queue, items), THREADS, queue, *d, items, (const T *) src,
                kernel, bias, relu, (T *) dst);
}

cudaError_t hpct_launch_small_forward(hpct_queue queue, hpct_number type, const hpct_direct *d,
                                      const void *src, const float *kernel, const float *bias,
                                      bool relu, void *dst)
{
    return for_type(type, [&](auto zero) {
        using T = decltype(zero);
        if (d->out_c % WIDE<T> == 0 && is_aligned(dst))
            launch_forward<T, WIDE<T>>(queue, d, src, kernel, bias, relu, dst);
        else
            launch_forward<T, 1>(queue, d, src, kernel, bias, relu, dst);
    });
}

/* A block's threads and a grid's blocks: channels along x, cells along y, taps along z. */
struct cutting {
    dim3 block, grid;
    size_t cells_of_a_part;
};

static cutting cut_cells(const hpct_direct *d, int width)
{
    const unsigned vectors = (unsigned) (d->out_c / width);
    const size_t cells = all_cells(d);
    unsigned x = 1;
    while (x < vectors && x < WARP)
        x *= 2;
    const size_t least = THREADS / x * CELLS_OF_A_THREAD;
    size_t parts = (cells + least - 1) / least;
    parts = parts < 1 ? 1 : parts < MOST_PARTS ? parts : MOST_PARTS;
    return {
        dim3(x, THREADS / x),
        dim3((vectors + x - 1) / x, (unsigned) parts, (unsigned) ((taps_of(*d) + TAPS - 1) / TAPS)),
        (cells + parts - 1) / parts};
}

static int width_of_pair(const hpct_direct *d)
{
    return d->out_c % 2 == 0 ? 2 : 1;
}

size_t hpct_small_scratch_bytes(const hpct_direct *d)
{
    return cut_cells(d, width_of_pair(d)).grid.y * (size_t) (taps_of(*d) + 1) * (size_t) d->out_c *
           sizeof(float);
}

template <typename T, int V>
static void launch_backward(hpct_queue queue, const hpct_direct *d, const void *src,
                            const void *dst, const void *diff, float *sums)
{
    const cutting c = cut_cells(d, V);
    const auto kernel = small_backward<T, V>;
    HPCT_LAUNCH(kernel, c.grid, c.block, queue, *d, all_cells(d), c.cells_of_a_part,
                (const T *) src, (const T *) dst, (const T *) diff, sums);
}

cudaError_t hpct_launch_small_backward(hpct_queue queue, hpct_number type, const hpct_direct *d,
                                       const void *src, const void *dst, const void *diff_dst,
                                       float *diff_kernel, float *diff_bias, float *scratch)
{
    const int width = width_of_pair(d);
    const cudaError_t error = for_type(type, [&](auto zero) {
        using T = decltype(zero);
        if (width == 2)
            launch_backward<T, 2>(queue, d, src, dst, diff_dst, scratch);
        else
            launch_backward<T, 1>(queue, d, src, dst, diff_dst, scratch);
    });
    if (error != cudaSuccess)
        return error;
    const int count = (taps_of(*d) + 1) * d->out_c;
    HPCT_LAUNCH(small_finish, (unsigned) ((count + SUM_LANES - 1) / SUM_LANES),
                dim3(SUM_LANES, SUM_ROWS), queue, *d, (int) cut_cells(d, width).grid.y, scratch,
                diff_kernel, diff_bias);
    return cudaGetLastError();
}
