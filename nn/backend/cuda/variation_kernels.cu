/* RANDOM_AFFINE and RANDOM_TONE. What is drawn, and where a cell comes from, is defined in
 * nn/graph/variation.h. */
#include "nn/backend/cuda/kernel.cuh"
#include "nn/backend/cuda/random.cuh"

/* ---- RANDOM_AFFINE ---- */

/* The channels of a cell; NULL outside of the image. */
template <typename T>
__device__ inline const T *cell_at(const hpct_cuda_varied &v, const T *src, int y, int x)
{
    return y < 0 || x < 0 ? nullptr
                          : src + ((size_t) y * (size_t) v.w + (size_t) x) * (size_t) v.channels;
}

template <typename T>
__device__ inline float channel_of(const hpct_cuda_varied &v, const T *cell, int channel)
{
    return cell == nullptr ? v.variation.fill_value : value_of(cell[channel]);
}

/* A thread processes all channels of an output cell. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    affine(const __grid_constant__ hpct_cuda_varied v, hpct_cuda_drawing given, int n, const T *src,
           T *dst)
{
    const hpct_cuda_drawing drawing = current(given);
    const unsigned item = blockIdx.x * blockDim.x + threadIdx.x;
    if (item >= (unsigned) v.h * (unsigned) v.w)
        return;
    const int y = (int) (item / (unsigned) v.w), x = (int) (item % (unsigned) v.w);
    const size_t size = (size_t) v.h * (size_t) v.w * (size_t) v.channels;
    for (int s = (int) blockIdx.y; s < n; s += (int) gridDim.y) {
        const words drawn = draw_words(drawing, drawing.first_sample + (uint32_t) s, 0);
        const hpct_graph_cell_map map = hpct_graph_vary_map(&v.variation, drawn.at, v.h, v.w);
        const hpct_graph_two_cells down = hpct_graph_cells_at(
                                       &v.variation, map.yx * x + map.yy * y + map.y0, v.h),
                                   across = hpct_graph_cells_at(
                                       &v.variation, map.xx * x + map.xy * y + map.x0, v.w);
        const T *image = src + (size_t) s * size;
        const T *top_left = cell_at(v, image, down.low, across.low),
                *top_right = cell_at(v, image, down.low, across.high),
                *low_left = cell_at(v, image, down.high, across.low),
                *low_right = cell_at(v, image, down.high, across.high);
        T *out = dst + (size_t) s * size + (size_t) item * (size_t) v.channels;
        for (int k = 0; k < v.channels; k++) {
            const float top = (1 - across.part) * channel_of(v, top_left, k) +
                              across.part * channel_of(v, top_right, k),
                        low = (1 - across.part) * channel_of(v, low_left, k) +
                              across.part * channel_of(v, low_right, k);
            round_to((1 - down.part) * top + down.part * low, &out[k]);
        }
    }
}

cudaError_t hpct_cuda_launch_affine(hpct_cuda_queue queue, hpct_cuda_number type,
                                    hpct_cuda_drawing drawing, const hpct_cuda_varied *varied,
                                    int n, const void *src, void *dst)
{
    sample_grid grid = grid_for_samples(n, (size_t) varied->h * (size_t) varied->w);
    return for_type(type, [&](auto zero) {
        using T = decltype(zero);
        auto kernel = affine<T>;
        HPCT_CUDA_LAUNCH(kernel, grid.blocks, grid.threads, queue, *varied, drawing, n,
                         (const T *) src, (T *) dst);
    });
}

/* ---- RANDOM_TONE ---- */

/* Sum over the block, equal on every thread. */
__device__ inline float block_sum(float x)
{
    __shared__ float of_warp[THREADS / WARP];
    x = warp_sum(x);
    if (threadIdx.x % WARP == 0)
        of_warp[threadIdx.x / WARP] = x;
    __syncthreads();
    float sum = 0;
    for (unsigned w = 0; w < THREADS / WARP; w++)
        sum += of_warp[w];
    __syncthreads();
    return sum;
}

/* A block processes one channel of an image. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    tone(const __grid_constant__ hpct_cuda_varied v, hpct_cuda_drawing given, int n, const T *src,
         T *dst)
{
    const hpct_cuda_drawing drawing = current(given);
    const size_t cells = (size_t) v.h * (size_t) v.w, step = (size_t) v.channels;
    for (int s = (int) blockIdx.y; s < n; s += (int) gridDim.y) {
        const words drawn = draw_words(drawing, drawing.first_sample + (uint32_t) s, 0);
        const hpct_graph_tone how = hpct_graph_vary_tone(&v.variation, drawn.at);
        const size_t first = (size_t) s * cells * step + blockIdx.x;
        float mean = 0;
        if (v.variation.kind == HPCT_GRAPH_VARY_CONTRAST) {
            for (size_t i = threadIdx.x; i < cells; i += THREADS)
                mean += value_of(src[first + i * step]);
            mean = block_sum(mean) / (float) cells;
        }
        for (size_t i = threadIdx.x; i < cells; i += THREADS)
            round_to(
                hpct_graph_vary_value(&v.variation, how, mean, value_of(src[first + i * step])),
                &dst[first + i * step]);
    }
}

cudaError_t hpct_cuda_launch_tone(hpct_cuda_queue queue, hpct_cuda_number type,
                                  hpct_cuda_drawing drawing, const hpct_cuda_varied *varied, int n,
                                  const void *src, void *dst)
{
    dim3 blocks((unsigned) varied->channels, n < 1                    ? 1
                                             : (unsigned) n < SAMPLES ? (unsigned) n
                                                                      : SAMPLES);
    return for_type(type, [&](auto zero) {
        using T = decltype(zero);
        auto kernel = tone<T>;
        HPCT_CUDA_LAUNCH(kernel, blocks, THREADS, queue, *varied, drawing, n, (const T *) src,
                         (T *) dst);
    });
}
