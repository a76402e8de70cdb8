/* Bias, ReLU and their gradients over a matrix. A block has `x` threads for adjacent columns,
 * several columns each, and `y` for adjacent rows; grid y counts parts of the rows. Each thread
 * sums its rows, each block its threads, and a second launch of the same kernel the parts: the
 * order is always the same. */
#include "nn/backend/cuda/kernel.cuh"

namespace
{

constexpr unsigned MOST_X = 32;
constexpr size_t ROWS_OF_A_THREAD = 16, MOST_PARTS = 512;
constexpr int UNROLL = 4; /* rows loaded concurrently */

struct geometry {
    unsigned vectors; /* per row */
    dim3 block, grid;
    size_t rows_of_a_part;
};

/* `width`: columns per thread and access; divides `columns`. */
geometry cut(size_t rows, size_t columns, int width, size_t most_parts)
{
    geometry g = {};
    g.vectors = (unsigned) (columns / (size_t) width);
    unsigned x = 1;
    while (x < g.vectors && x < MOST_X)
        x *= 2;
    g.block = dim3(x, THREADS / x);
    size_t wanted = g.block.y * ROWS_OF_A_THREAD, parts = (rows + wanted - 1) / wanted;
    parts = parts < 1 ? 1 : parts < most_parts ? parts : most_parts;
    g.rows_of_a_part = (rows + parts - 1) / parts;
    g.grid = dim3((g.vectors + x - 1) / x, (unsigned) parts);
    return g;
}

template <typename T, int V, bool MASK>
__global__ void __launch_bounds__(THREADS)
    mask_and_sum(size_t rows, size_t rows_of_a_part, unsigned vectors, const pack<T, V> *dst,
                 pack<T, V> *diff, float *sums)
{
    __shared__ float shared[THREADS * V];
    const unsigned vector = blockIdx.x * blockDim.x + threadIdx.x;
    const size_t begin = blockIdx.y * rows_of_a_part;
    const size_t end = begin + rows_of_a_part < rows ? begin + rows_of_a_part : rows;
    float sum[V] = {};
    for (size_t r = begin + threadIdx.y; vector < vectors && r < end; r += UNROLL * blockDim.y) {
        pack<T, V> d[UNROLL], y[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            const size_t row = r + u * blockDim.y;
            if (row < end) {
                d[u] = diff[row * vectors + vector];
                if (MASK)
                    y[u] = dst[row * vectors + vector];
            }
        }
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            const size_t row = r + u * blockDim.y;
            if (row >= end)
                continue;
#pragma unroll
            for (int v = 0; v < V; v++) {
                if (MASK && !(value_of(y[u].at[v]) > 0))
                    round_to(0, &d[u].at[v]);
                sum[v] += value_of(d[u].at[v]);
            }
            if (MASK)
                diff[row * vectors + vector] = d[u];
        }
    }
    if (sums == nullptr)
        return;
    const unsigned own = threadIdx.y * blockDim.x + threadIdx.x;
#pragma unroll
    for (int v = 0; v < V; v++)
        shared[v * THREADS + own] = sum[v];
    __syncthreads();
    for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
        if (threadIdx.y < half) {
#pragma unroll
            for (int v = 0; v < V; v++)
                shared[v * THREADS + own] += shared[v * THREADS + own + half * blockDim.x];
        }
        __syncthreads();
    }
    if (threadIdx.y == 0 && vector < vectors) {
        const size_t to = ((size_t) blockIdx.y * vectors + vector) * V;
#pragma unroll
        for (int v = 0; v < V; v++)
            sums[to + v] = shared[v * THREADS + own];
    }
}

template <typename T, int V>
__global__ void __launch_bounds__(THREADS)
    add_bias(size_t rows, size_t rows_of_a_part, unsigned vectors, const float *bias, bool relu,
             pack<T, V> *dst)
{
    const unsigned vector = blockIdx.x * blockDim.x + threadIdx.x;
    if (vector >= vectors)
        return;
    const size_t begin = blockIdx.y * rows_of_a_part;
    const size_t end = begin + rows_of_a_part < rows ? begin + rows_of_a_part : rows;
    float own[V];
#pragma unroll
    for (int v = 0; v < V; v++)
        own[v] = bias == nullptr ? 0 : bias[vector * V + v];
    for (size_t r = begin + threadIdx.y; r < end; r += blockDim.y) {
        pack<T, V> d = dst[r * vectors + vector];
#pragma unroll
        for (int v = 0; v < V; v++) {
            const float value = value_of(d.at[v]) + own[v];
            round_to(relu && !(value > 0) ? 0 : value, &d.at[v]);
        }
        dst[r * vectors + vector] = d;
    }
}

/* One pass; partial sums are stored to [parts][columns]. */
template <typename T, int V>
cudaError_t pass(const geometry &g, size_t rows, const void *dst, void *diff, float *sums)
{
    return HPCT_CUDA_LAUNCH((dst != nullptr ? mask_and_sum<T, V, true> : mask_and_sum<T, V, false>),
                            g.grid, g.block, rows, g.rows_of_a_part, g.vectors, dst, diff, sums);
}

template <typename T, int V>
cudaError_t sum_of(size_t rows, size_t columns, const void *dst, void *diff, float *sums,
                   float *partials)
{
    const geometry g = cut(rows, columns, V, MOST_PARTS);
    const bool parts = sums != nullptr && g.grid.y > 1;
    cudaError_t error = pass<T, V>(g, rows, dst, diff, parts ? partials : sums);
    if (error != cudaSuccess || !parts)
        return error;
    const size_t count = g.grid.y;
    if (columns % 4 == 0 && is_aligned(partials))
        return pass<float, 4>(cut(count, columns, 4, 1), count, nullptr, partials, sums);
    return pass<float, 1>(cut(count, columns, 1, 1), count, nullptr, partials, sums);
}

} // namespace

size_t hpct_cuda_bias_scratch_bytes(hpct_precision type, size_t rows, size_t columns)
{
    const size_t width = 16 / hpct_backend_precision_bytes(type);
    const size_t vector =
        cut(rows, columns, columns % width == 0 ? (int) width : 1, MOST_PARTS).grid.y;
    const size_t scalar = cut(rows, columns, 1, MOST_PARTS).grid.y;
    return (vector > scalar ? vector : scalar) * columns * sizeof(float);
}

cudaError_t hpct_cuda_bias_mask_and_sum(hpct_precision type, size_t rows, size_t columns,
                                        const void *dst, void *diff, float *sums, float *partials)
{
    if (rows == 0 || columns == 0 || (dst == nullptr && sums == nullptr))
        return cudaSuccess;
    return for_packs(type, is_aligned(diff, dst), columns, [&](auto zero, auto width) {
        return sum_of<decltype(zero), decltype(width)::value>(rows, columns, dst, diff, sums,
                                                              partials);
    });
}

cudaError_t hpct_cuda_bias_add(hpct_precision type, size_t rows, size_t columns, const float *bias,
                               bool relu, void *dst)
{
    if (rows == 0 || columns == 0 || (bias == nullptr && !relu))
        return cudaSuccess;
    return for_packs(type, is_aligned(dst), columns, [&](auto zero, auto width) {
        constexpr int V = decltype(width)::value;
        const geometry g = cut(rows, columns, V, 65535);
        return HPCT_CUDA_LAUNCH((add_bias<decltype(zero), V>), g.grid, g.block, rows,
                                g.rows_of_a_part, g.vectors, bias, relu, dst);
    });
}
