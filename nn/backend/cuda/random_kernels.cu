/* Dropout, GaussianNoise, RandomCrop, RandomFlip and Resizing. The random numbers are defined in
 * nn/backend/dropout.h, nn/backend/noise.h and nn/backend/picture.h. */
#include "nn/backend/cuda/kernel.cuh"
#include "nn/backend/cuda/random.cuh"

/* ---- dropout ---- */

constexpr uint32_t LANES = 16,
                   GROUP = 64; /* HPCT_BACKEND_DROPOUT_LANES, HPCT_BACKEND_DROPOUT_GROUP */

/* A thread processes a block of four words, whose elements are LANES apart. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    dropout(hpct_cuda_drawing given, uint32_t threshold, float scale, int n, size_t size,
            const T *src, bool add, T *dst)
{
    const hpct_cuda_drawing drawing = current(given);
    const size_t block = grid_index(), first = block / LANES * GROUP + block % LANES;
    for (int s = (int) blockIdx.y; s < n && first < size; s += (int) gridDim.y) {
        const words drawn =
            draw_words(drawing, drawing.first_sample + (uint32_t) s, (uint32_t) block);
        const size_t at = (size_t) s * size + first;
#pragma unroll
        for (uint32_t k = 0; k < 4; k++) {
            if (first + k * LANES >= size)
                continue;
            float x[1] = {value_of(src[at + k * LANES])};
            x[0] = drawn.at[k] >= threshold ? x[0] * scale : 0;
            put_values(x, add, dst + at + k * LANES);
        }
    }
}

cudaError_t hpct_cuda_launch_dropout(hpct_cuda_queue queue, hpct_cuda_number type,
                                     hpct_cuda_drawing drawing, uint32_t threshold, float scale,
                                     int n, size_t size, const void *src, bool add, void *dst)
{
    sample_grid grid = grid_for_samples(n, (size + GROUP - 1) / GROUP * LANES);
    return for_type(type, [&](auto zero) {
        using T = decltype(zero);
        auto kernel = dropout<T>;
        HPCT_CUDA_LAUNCH(kernel, grid.blocks, grid.threads, queue, drawing, threshold, scale, n,
                         size, (const T *) src, add, (T *) dst);
    });
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    dropout_rows(hpct_cuda_drawing given, uint32_t threshold, float scale, int n, size_t rows,
                 size_t size, const T *src, bool add, T *dst)
{
    const hpct_cuda_drawing drawing = current(given);
    const size_t item = grid_index(), e = item % size;
    const uint32_t block = (uint32_t) (e / GROUP * LANES + e % LANES);
    for (int s = (int) blockIdx.y; s < n && item < rows * size; s += (int) gridDim.y) {
        const words drawn = draw_words(drawing, drawing.first_sample + (uint32_t) s, block);
        const size_t at = (size_t) s * rows * size + item;
        float x[1] = {value_of(src[at])};
        x[0] = drawn.at[e / LANES % 4] >= threshold ? x[0] * scale : 0;
        put_values(x, add, dst + at);
    }
}

cudaError_t hpct_cuda_launch_dropout_rows(hpct_cuda_queue queue, hpct_cuda_number type,
                                          hpct_cuda_drawing drawing, uint32_t threshold,
                                          float scale, int n, size_t rows, size_t size,
                                          const void *src, bool add, void *dst)
{
    sample_grid grid = grid_for_samples(n, rows * size);
    return for_type(type, [&](auto zero) {
        using T = decltype(zero);
        auto kernel = dropout_rows<T>;
        HPCT_CUDA_LAUNCH(kernel, grid.blocks, grid.threads, queue, drawing, threshold, scale, n,
                         rows, size, (const T *) src, add, (T *) dst);
    });
}

/* ---- noise ---- */

/* A thread processes the four elements of a block of words. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    noise(hpct_cuda_drawing given, float stddev, int n, size_t size, const T *src, T *dst)
{
    const hpct_cuda_drawing drawing = current(given);
    const size_t first = grid_index() * 4;
    for (int s = (int) blockIdx.y; s < n && first < size; s += (int) gridDim.y) {
        const words drawn =
            draw_words(drawing, drawing.first_sample + (uint32_t) s, (uint32_t) (first / 4));
        const size_t at = (size_t) s * size + first;
#pragma unroll
        for (int k = 0; k < 4; k++) {
            if (first + (size_t) k >= size)
                continue;
            const float uniform = (float) drawn.at[k / 2 * 2] * 0x1p-32f + 0x1p-33f,
                        angle = (float) drawn.at[k / 2 * 2 + 1] * (6.2831853071795865f * 0x1p-32f),
                        radius = sqrtf(-2 * logf(uniform));
            const float normal = radius * (k % 2 == 0 ? cosf(angle) : sinf(angle));
            round_to(value_of(src[at + (size_t) k]) + stddev * normal, &dst[at + (size_t) k]);
        }
    }
}

cudaError_t hpct_cuda_launch_noise(hpct_cuda_queue queue, hpct_cuda_number type,
                                   hpct_cuda_drawing drawing, float stddev, int n, size_t size,
                                   const void *src, void *dst)
{
    sample_grid grid = grid_for_samples(n, (size + 3) / 4);
    return for_type(type, [&](auto zero) {
        using T = decltype(zero);
        auto kernel = noise<T>;
        HPCT_CUDA_LAUNCH(kernel, grid.blocks, grid.threads, queue, drawing, stddev, n, size,
                         (const T *) src, (T *) dst);
    });
}

/* ---- boxes of images, resized ---- */

/* Top left corner of a sample's box. */
struct corner {
    int top, left;
};

/* Random integer in [0, range). */
__device__ inline int pick(uint32_t word, int range)
{
    return (int) ((uint64_t) word * (uint64_t) range >> 32);
}

__device__ inline corner corner_of(const hpct_cuda_crop &c, const hpct_cuda_drawing &d, int s)
{
    if (!c.draws)
        return {c.top, c.left};
    const words drawn = draw_words(d, d.first_sample + (uint32_t) s, 0);
    return {pick(drawn.at[0], c.in_h - c.out_h + 1), pick(drawn.at[1], c.in_w - c.out_w + 1)};
}

/* hpct_backend_look of nn/backend/picture.h. */
struct between {
    int low, high;
    double part;
};

__device__ inline between find_neighbours(int out, int out_size, int in_size, bool nearest)
{
    if (nearest) {
        const int cell = (int) ((out + 0.5) * in_size / out_size);
        return {cell, cell, 0};
    }
    double at = (out + 0.5) * ((double) in_size / out_size) - 0.5, low = floor(at);
    return {low < 0 ? 0 : (int) low, low + 1 < in_size ? (int) low + 1 : in_size - 1, at - low};
}

__device__ inline size_t crop_in_at(const hpct_cuda_crop &c, int s, int y, int x)
{
    return (((size_t) s * (size_t) c.in_h + (size_t) y) * (size_t) c.in_w + (size_t) x) *
           (size_t) c.channels;
}

__device__ inline size_t crop_out_at(const hpct_cuda_crop &c, int s, int y, int x)
{
    return (((size_t) s * (size_t) c.out_h + (size_t) y) * (size_t) c.out_w + (size_t) x) *
           (size_t) c.channels;
}

/* A thread processes all channels of an output cell. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    crop(const __grid_constant__ hpct_cuda_crop c, hpct_cuda_drawing given, int n, const T *src,
         T *dst)
{
    const hpct_cuda_drawing drawing = current(given);
    const unsigned item = blockIdx.x * blockDim.x + threadIdx.x;
    if (item >= (unsigned) c.out_h * (unsigned) c.out_w)
        return;
    const int y = (int) (item / (unsigned) c.out_w), x = (int) (item % (unsigned) c.out_w);
    const between v = find_neighbours(y, c.out_h, c.height, c.nearest),
                  h = find_neighbours(x, c.out_w, c.width, c.nearest);
    const float down = (float) v.part, right = (float) h.part;
    for (int s = (int) blockIdx.y; s < n; s += (int) gridDim.y) {
        const corner from = corner_of(c, drawing, s);
        const T *top_left = src + crop_in_at(c, s, from.top + v.low, from.left + h.low),
                *top_right = src + crop_in_at(c, s, from.top + v.low, from.left + h.high),
                *low_left = src + crop_in_at(c, s, from.top + v.high, from.left + h.low),
                *low_right = src + crop_in_at(c, s, from.top + v.high, from.left + h.high);
        T *out = dst + crop_out_at(c, s, y, x);
        for (int k = 0; k < c.channels; k++) {
            float a = value_of(top_left[k]), b = value_of(top_right[k]);
            float d = value_of(low_left[k]), e = value_of(low_right[k]);
            float top = a * (1 - right) + b * right, low = d * (1 - right) + e * right;
            round_to(top * (1 - down) + low * down, &out[k]);
        }
    }
}

/* Range of outputs [low, high] that contains all that read input cell `at`. */
struct seen {
    int low, high;
};

__device__ inline seen seen_by(int at, int out_size, int in_size)
{
    const double ratio = (double) out_size / in_size;
    const int low = (int) floor((at - 0.5) * ratio - 0.5) - 1,
              high = (int) ceil((at + 1.5) * ratio - 0.5) + 1;
    return {at <= 0 || low < 0 ? 0 : low,
            at >= in_size - 1 || high >= out_size ? out_size - 1 : high};
}

/* Weight of the cell in that output. */
__device__ inline float weight_of(const between &b, int at)
{
    return (float) ((b.low == at ? 1 - b.part : 0) + (b.high == at ? b.part : 0));
}

/* A thread gathers one channel of an input cell. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    crop_backward(const __grid_constant__ hpct_cuda_crop c, hpct_cuda_drawing given, int n,
                  const T *diff, bool add, T *diff_src)
{
    const hpct_cuda_drawing drawing = current(given);
    const unsigned item = blockIdx.x * blockDim.x + threadIdx.x, at = item / (unsigned) c.channels;
    if (at >= (unsigned) c.in_h * (unsigned) c.in_w)
        return;
    const int channel = (int) (item % (unsigned) c.channels);
    for (int s = (int) blockIdx.y; s < n; s += (int) gridDim.y) {
        const corner from = corner_of(c, drawing, s);
        const int y = (int) (at / (unsigned) c.in_w), x = (int) (at % (unsigned) c.in_w),
                  in_y = y - from.top, in_x = x - from.left;
        float sum[1] = {0};
        if (in_y >= 0 && in_y < c.height && in_x >= 0 && in_x < c.width) {
            const seen rows = seen_by(in_y, c.out_h, c.height),
                       columns = seen_by(in_x, c.out_w, c.width);
            for (int i = rows.low; i <= rows.high; i++) {
                const float down =
                    weight_of(find_neighbours(i, c.out_h, c.height, c.nearest), in_y);
                for (int j = columns.low; down != 0 && j <= columns.high; j++) {
                    const float right =
                        weight_of(find_neighbours(j, c.out_w, c.width, c.nearest), in_x);
                    if (right != 0)
                        sum[0] += down * right * value_of(diff[crop_out_at(c, s, i, j) + channel]);
                }
            }
        }
        put_values(sum, add, diff_src + crop_in_at(c, s, y, x) + channel);
    }
}

cudaError_t hpct_cuda_launch_crop(hpct_cuda_queue queue, hpct_cuda_number type,
                                  hpct_cuda_drawing drawing, const hpct_cuda_crop *c, int n,
                                  const void *src, void *dst)
{
    sample_grid grid = grid_for_samples(n, (size_t) c->out_h * (size_t) c->out_w);
    return for_type(type, [&](auto zero) {
        using T = decltype(zero);
        auto kernel = crop<T>;
        HPCT_CUDA_LAUNCH(kernel, grid.blocks, grid.threads, queue, *c, drawing, n, (const T *) src,
                         (T *) dst);
    });
}

cudaError_t hpct_cuda_launch_crop_backward(hpct_cuda_queue queue, hpct_cuda_number type,
                                           hpct_cuda_drawing drawing, const hpct_cuda_crop *c,
                                           int n, const void *diff_dst, bool add, void *diff_src)
{
    sample_grid grid =
        grid_for_samples(n, (size_t) c->in_h * (size_t) c->in_w * (size_t) c->channels);
    return for_type(type, [&](auto zero) {
        using T = decltype(zero);
        auto kernel = crop_backward<T>;
        HPCT_CUDA_LAUNCH(kernel, grid.blocks, grid.threads, queue, *c, drawing, n,
                         (const T *) diff_dst, add, (T *) diff_src);
    });
}

/* ---- flips ---- */

template <typename T>
__global__ void __launch_bounds__(THREADS)
    flip(hpct_cuda_drawing given, int n, int h, int w, int channels, bool horizontal, bool vertical,
         const T *src, bool add, T *dst)
{
    const hpct_cuda_drawing drawing = current(given);
    const unsigned item = blockIdx.x * blockDim.x + threadIdx.x,
                   row = (unsigned) w * (unsigned) channels;
    if (item >= (unsigned) h * row)
        return;
    const int y = (int) (item / row), at = (int) (item % row), x = at / channels,
              channel = at % channels;
    for (int s = (int) blockIdx.y; s < n; s += (int) gridDim.y) {
        const words drawn = draw_words(drawing, drawing.first_sample + (uint32_t) s, 0);
        const bool turned = drawn.at[0] >> 31 != 0;
        const int from_y = turned && vertical ? h - 1 - y : y,
                  from_x = turned && horizontal ? w - 1 - x : x;
        const size_t sample = (size_t) s * (size_t) h;
        float value[1] = {value_of(
            src[((sample + (size_t) from_y) * (size_t) w + (size_t) from_x) * (size_t) channels +
                (size_t) channel])};
        put_values(value, add, dst + sample * row + item);
    }
}

cudaError_t hpct_cuda_launch_flip(hpct_cuda_queue queue, hpct_cuda_number type,
                                  hpct_cuda_drawing drawing, int n, int h, int w, int channels,
                                  bool horizontal, bool vertical, const void *src, bool add,
                                  void *dst)
{
    sample_grid grid = grid_for_samples(n, (size_t) h * (size_t) w * (size_t) channels);
    return for_type(type, [&](auto zero) {
        using T = decltype(zero);
        auto kernel = flip<T>;
        HPCT_CUDA_LAUNCH(kernel, grid.blocks, grid.threads, queue, drawing, n, h, w, channels,
                         horizontal, vertical, (const T *) src, add, (T *) dst);
    });
}
