/* Numbers that elements of a sample share: Multiply by one row per sample, Normalization, PReLU;
 * and sums over the rows. */
#include "nn/backend/cuda/kernel.cuh"

#include <cmath>

/* ---- element by element: samples along y ---- */

template <typename T>
__global__ void __launch_bounds__(THREADS)
    multiply(int n, uint32_t size, uint32_t channels, bool broadcasts, const T *a, const T *b,
             bool add, T *dst)
{
    const uint32_t step = gridDim.x * blockDim.x;
    for (size_t s = blockIdx.y; s < (size_t) n; s += gridDim.y) {
        const T *x = a + s * size, *y = b + s * (broadcasts ? channels : size);
        for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += step) {
            float out[1] = {value_of(x[i]) * value_of(y[broadcasts ? i % channels : i])};
            put_values(out, add, dst + s * size + i);
        }
    }
}

__device__ inline void line_at(const hpct_cuda_channel_line &line, uint32_t channel, float *mean,
                               float *scale, float *offset)
{
    if (line.mean == nullptr) {
        *mean = line.given_mean[channel];
        *scale = line.given_scale[channel];
        *offset = line.given_offset[channel];
        return;
    }
    *mean = line.mean[channel];
    *scale = 1 / fmaxf(sqrtf(line.variance[channel]), line.epsilon);
    *offset = 0;
}

/* back: of a gradient, which is only scaled. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    normalize_channels(int n, uint32_t size, const __grid_constant__ hpct_cuda_channel_line line,
                       bool back, const T *src, bool add, T *dst)
{
    const uint32_t step = gridDim.x * blockDim.x;
    for (size_t s = blockIdx.y; s < (size_t) n; s += gridDim.y) {
        for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += step) {
            float mean, scale, offset, x = value_of(src[s * size + i]);
            line_at(line, i % line.channels, &mean, &scale, &offset);
            float out[1] = {back ? x * scale : (x - mean) * scale + offset};
            put_values(out, add, dst + s * size + i);
        }
    }
}

/* What is multiplied by 1, or by alpha where the source is not above 0: the source itself, or the
 * gradient. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    slope_elements(int n, uint32_t size, uint32_t period, const float *alpha, const T *src,
                   const T *factor, bool add, T *dst)
{
    const uint32_t step = gridDim.x * blockDim.x;
    for (size_t s = blockIdx.y; s < (size_t) n; s += gridDim.y) {
        for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += step) {
            const size_t at = s * size + i;
            float x = value_of(factor[at]);
            float out[1] = {value_of(src[at]) > 0 ? x : alpha[i % period] * x};
            put_values(out, add, dst + at);
        }
    }
}

cudaError_t hpct_cuda_launch_multiply(hpct_cuda_queue queue, hpct_cuda_number type, int n,
                                      size_t size, int channels, bool broadcasts, const void *a,
                                      const void *b, bool add, void *dst)
{
    sample_grid grid = grid_for_samples(n, size);
    return for_type(type, [&](auto zero) {
        using T = decltype(zero);
        auto kernel = multiply<T>;
        HPCT_CUDA_LAUNCH(kernel, grid.blocks, grid.threads, queue, n, (uint32_t) size,
                         (uint32_t) channels, broadcasts, (const T *) a, (const T *) b, add,
                         (T *) dst);
    });
}

cudaError_t hpct_cuda_launch_channel_line(hpct_cuda_queue queue, hpct_cuda_number type, int n,
                                          size_t size, const hpct_cuda_channel_line *line,
                                          bool back, const void *src, bool add, void *dst)
{
    sample_grid grid = grid_for_samples(n, size);
    return for_type(type, [&](auto zero) {
        using T = decltype(zero);
        auto kernel = normalize_channels<T>;
        HPCT_CUDA_LAUNCH(kernel, grid.blocks, grid.threads, queue, n, (uint32_t) size, *line, back,
                         (const T *) src, add, (T *) dst);
    });
}

cudaError_t hpct_cuda_launch_slopes(hpct_cuda_queue queue, hpct_cuda_number type, int n,
                                    size_t size, size_t period, const float *alpha, const void *src,
                                    const void *factor, bool add, void *dst)
{
    sample_grid grid = grid_for_samples(n, size);
    return for_type(type, [&](auto zero) {
        using T = decltype(zero);
        auto kernel = slope_elements<T>;
        HPCT_CUDA_LAUNCH(kernel, grid.blocks, grid.threads, queue, n, (uint32_t) size,
                         (uint32_t) period, alpha, (const T *) src, (const T *) factor, add,
                         (T *) dst);
    });
}

/* ---- sums of products over rows: a warp's lanes along the columns ---- */

constexpr int COLUMN_ROWS = THREADS / WARP;

/* out[n][columns] = the sum over the rows of a[n][rows][columns] b; with `below` only where a is
 * not above 0. */
template <typename T, typename O>
__global__ void __launch_bounds__(THREADS)
    sum_products(int n, size_t rows, uint32_t columns, bool below, const T *a, const T *b, bool add,
                 O *out)
{
    __shared__ float shared[COLUMN_ROWS][WARP];
    const uint32_t column = blockIdx.x * WARP + threadIdx.x;
    for (size_t s = blockIdx.y; s < (size_t) n; s += gridDim.y) {
        float sum = 0;
        for (size_t r = threadIdx.y; r < rows && column < columns; r += COLUMN_ROWS) {
            const size_t at = (s * rows + r) * columns + column;
            const float x = value_of(a[at]);
            sum += below && x > 0 ? 0 : x * value_of(b[at]);
        }
        __syncthreads(); /* the sums before have been read */
        shared[threadIdx.y][threadIdx.x] = sum;
        __syncthreads();
        if (threadIdx.y > 0 || column >= columns)
            continue;
        float all[1] = {0};
        for (int k = 0; k < COLUMN_ROWS; k++)
            all[0] += shared[k][threadIdx.x];
        put_values(all, add, out + s * columns + column);
    }
}

template <typename T, typename O>
static void launch_sums(hpct_cuda_queue queue, int n, size_t rows, size_t columns, bool below,
                        const void *a, const void *b, bool add, void *out)
{
    const unsigned samples = n < (int) SAMPLES ? (unsigned) n : SAMPLES;
    const dim3 grid((unsigned) ((columns + WARP - 1) / WARP), samples < 1 ? 1 : samples);
    auto kernel = sum_products<T, O>;
    HPCT_CUDA_LAUNCH(kernel, grid, dim3(WARP, COLUMN_ROWS), queue, n, rows, (uint32_t) columns,
                     below, (const T *) a, (const T *) b, add, (O *) out);
}

cudaError_t hpct_cuda_launch_multiply_sums(hpct_cuda_queue queue, hpct_cuda_number type, int n,
                                           size_t rows, int channels, const void *a, const void *b,
                                           bool add, void *out)
{
    return for_type(type, [&](auto zero) {
        using T = decltype(zero);
        launch_sums<T, T>(queue, n, rows, (size_t) channels, false, a, b, add, out);
    });
}

cudaError_t hpct_cuda_launch_slope_sums(hpct_cuda_queue queue, hpct_cuda_number type, size_t rows,
                                        size_t period, const void *src, const void *diff_dst,
                                        float *diff_alpha)
{
    return for_type(type, [&](auto zero) {
        using T = decltype(zero);
        launch_sums<T, float>(queue, 1, rows, period, true, src, diff_dst, false, diff_alpha);
    });
}
