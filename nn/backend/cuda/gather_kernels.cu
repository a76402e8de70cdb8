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

__device__ inline float scaled(const hpct_backend_pictures &g, uint8_t byte)
{
    return (float) byte * g.factor + g.offset;
}

__device__ inline float blend(float a, float b, float part)
{
    return a + (b - a) * part;
}

/* A thread processes all channels of an output cell. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    gather(const __grid_constant__ hpct_backend_pictures g, int n, const hpct_drawn *drawn, T *dst,
           int32_t *to)
{
    const unsigned item = blockIdx.x * blockDim.x + threadIdx.x;
    if (item >= (unsigned) g.to_height * (unsigned) g.to_width)
        return;
    const int y = (int) (item / (unsigned) g.to_width), x = (int) (item % (unsigned) g.to_width);
    const size_t channels = (size_t) g.channels, row = (size_t) g.width * channels,
                 cells = (size_t) g.to_height * (size_t) g.to_width;
    for (int s = (int) blockIdx.y; s < n; s += (int) gridDim.y) {
        const hpct_drawn d = drawn[s];
        T *out = dst + ((size_t) s * cells + item) * channels;
        if (item == 0)
            to[s] = g.labels[d.index];
        const int from_y = y + d.move_y, moved_x = x + d.move_x,
                  from_x = d.flip != 0 ? g.to_width - 1 - moved_x : moved_x;
        if (from_y < 0 || from_y >= g.to_height || from_x < 0 || from_x >= g.to_width) {
            for (size_t k = 0; k < channels; k++)
                round_to(g.offset, &out[k]);
            continue;
        }
        const place v = place_of(from_y, g.to_height, g.height),
                    h = place_of(from_x, g.to_width, g.width);
        const uint8_t *picture = g.pixels + (size_t) d.index * (size_t) g.height * row,
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

hpct_status hpct_cuda_gather_values(const hpct_backend_gather_call *call)
{
    const hpct_backend_pictures *p = call->pictures;
    const sample_grid grid =
        grid_for_samples(call->n, (size_t) p->to_height * (size_t) p->to_width);
    cudaError_t error = for_type(call->values, [&](auto zero) {
        return HPCT_CUDA_LAUNCH(gather<decltype(zero)>, grid.blocks, grid.threads, *p, call->n,
                                call->drawn, call->dst, call->labels);
    });
    return hpct_cuda_check(error, "gather");
}
