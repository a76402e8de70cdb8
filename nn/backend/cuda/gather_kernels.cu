/* Batches from a data set's bytes: gathered, resized, scaled, flipped and moved as by
 * hpct_data_resize, in the model's input type. */
#include "nn/backend/cuda/kernel.cuh"

/* Interpolation point of an output cell, as axis_make in agent/data/resize.c. */
struct place {
    int low, high;
    float part;
};

__device__ inline place place_of(int out, int out_size, int in_size)
{
    const float scale = (float) in_size / (float) out_size,
                at = ((float) out + 0.5f) * scale - 0.5f;
    if (!(at > 0))
        return {0, in_size > 1 ? 1 : 0, 0};
    const int low = (int) at;
    return {low, low + 1 < in_size ? low + 1 : in_size - 1, at - (float) low};
}

__device__ inline float scaled(const hpct_cuda_gather &g, uint8_t byte)
{
    return (float) byte * g.factor + g.offset;
}

__device__ inline float blend(float a, float b, float part)
{
    return a + (b - a) * part;
}

/* A thread processes all channels of an output cell. */
template <typename T>
__global__ void __launch_bounds__(THREADS) gather(const __grid_constant__ hpct_cuda_gather g, int n,
                                                  const hpct_drawn *drawn, T *dst, int32_t *to)
{
    const unsigned item = blockIdx.x * blockDim.x + threadIdx.x;
    if (item >= (unsigned) g.out_h * (unsigned) g.out_w)
        return;
    const int y = (int) (item / (unsigned) g.out_w), x = (int) (item % (unsigned) g.out_w);
    const size_t channels = (size_t) g.channels, row = (size_t) g.in_w * channels,
                 cells = (size_t) g.out_h * (size_t) g.out_w;
    for (int s = (int) blockIdx.y; s < n; s += (int) gridDim.y) {
        const hpct_drawn d = drawn[s];
        T *out = dst + ((size_t) s * cells + item) * channels;
        if (item == 0)
            to[s] = g.labels[d.index];
        const int from_y = y + d.move_y, moved_x = x + d.move_x,
                  from_x = d.flip != 0 ? g.out_w - 1 - moved_x : moved_x;
        if (from_y < 0 || from_y >= g.out_h || from_x < 0 || from_x >= g.out_w) {
            for (size_t k = 0; k < channels; k++)
                round_to(g.offset, &out[k]);
            continue;
        }
        const place v = place_of(from_y, g.out_h, g.in_h), h = place_of(from_x, g.out_w, g.in_w);
        const uint8_t *picture = g.pixels + (size_t) d.index * (size_t) g.in_h * row,
                      *high = picture + (size_t) v.low * row,
                      *low = picture + (size_t) v.high * row;
        const size_t left = (size_t) h.low * channels, right = (size_t) h.high * channels;
        for (size_t k = 0; k < channels; k++) {
            const float above =
                            blend(scaled(g, high[left + k]), scaled(g, high[right + k]), h.part),
                        below = blend(scaled(g, low[left + k]), scaled(g, low[right + k]), h.part);
            round_to(blend(above, below, v.part), &out[k]);
        }
    }
}

cudaError_t hpct_cuda_launch_gather(hpct_cuda_queue queue, hpct_cuda_number type,
                                    const hpct_cuda_gather *g, int n, const hpct_drawn *drawn,
                                    void *dst, int32_t *to)
{
    sample_grid grid = grid_for_samples(n, (size_t) g->out_h * (size_t) g->out_w);
    return for_type(type, [&](auto zero) {
        using T = decltype(zero);
        auto kernel = gather<T>;
        HPCT_CUDA_LAUNCH(kernel, grid.blocks, grid.threads, queue, *g, n, drawn, (T *) dst, to);
    });
}
