/* RANDOM_FLIP, RANDOM_AFFINE and RANDOM_TONE. What is drawn, and where a cell comes from, is
 * defined in nn/graph/variation.h. */
#include "nn/backend/cuda/kernel.cuh"
#include "nn/backend/cuda/random.cuh"

/* ---- RANDOM_FLIP, RANDOM_AFFINE ---- */

/* The channels of a cell; NULL outside of the image. */
template <typename T>
__device__ inline const T *cell_at(const hpct_graph_picture &v, const T *src, int y, int x)
{
    return y < 0 || x < 0 ? nullptr
                          : src + ((size_t) y * (size_t) v.in_w + (size_t) x) * (size_t) v.channels;
}

template <typename T>
__device__ inline float channel_of(const hpct_graph_picture &v, const T *cell, int channel)
{
    return cell == nullptr ? v.variation.fill_value : value_of(cell[channel]);
}

/* A thread processes all channels of an output cell. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    affine(const __grid_constant__ hpct_graph_picture v, hpct_cuda_drawing given, int n,
           const T *src, T *dst)
{
    const hpct_cuda_drawing drawing = current(given);
    const unsigned item = blockIdx.x * blockDim.x + threadIdx.x;
    if (item >= (unsigned) v.in_h * (unsigned) v.in_w)
        return;
    const int y = (int) (item / (unsigned) v.in_w), x = (int) (item % (unsigned) v.in_w);
    const size_t size = (size_t) v.in_h * (size_t) v.in_w * (size_t) v.channels;
    for (int s = (int) blockIdx.y; s < n; s += (int) gridDim.y) {
        const words drawn = draw_words(drawing, drawing.first_sample + (uint32_t) s, 0);
        const hpct_graph_cell_map map = hpct_graph_vary_map(&v.variation, drawn.at, v.in_h, v.in_w);
        const hpct_graph_two_cells down = hpct_graph_cells_at(
                                       &v.variation, map.yx * x + map.yy * y + map.y0, v.in_h),
                                   across = hpct_graph_cells_at(
                                       &v.variation, map.xx * x + map.xy * y + map.x0, v.in_w);
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

/* ---- RANDOM_TONE ---- */

/* A block processes one channel of an image. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    tone(const __grid_constant__ hpct_graph_picture v, hpct_cuda_drawing given, int n, const T *src,
         T *dst)
{
    const hpct_cuda_drawing drawing = current(given);
    const size_t cells = (size_t) v.in_h * (size_t) v.in_w, step = (size_t) v.channels;
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

/* ---- the operations ---- */

hpct_status hpct_cuda_vary_forward(hpct_op *op, const hpct_op_call *call)
{
    const hpct_graph_picture *p = &op->spec.picture;
    const sample_grid grid = grid_for_samples(call->n, (size_t) p->in_h * (size_t) p->in_w);
    if (!call->training)
        return hpct_cuda_launched(hpct_cuda_launch_rescale(op->build.values,
                                                           hpct_cuda_dst_count(op, call->n), 1, 0,
                                                           call->src[0], false, call->dst),
                                  op, "forward");
    const hpct_cuda_drawing drawing = hpct_cuda_drawing_of(op, call);
    return for_op(op, "forward", [&](auto zero) {
        using T = decltype(zero);
        if (op->spec.kind == HPCT_OP_RANDOM_TONE)
            return HPCT_CUDA_LAUNCH(tone<T>, dim3((unsigned) p->channels, grid.blocks.y), THREADS,
                                    *p, drawing, call->n, call->src[0], call->dst);
        return HPCT_CUDA_LAUNCH(affine<T>, grid.blocks, grid.threads, *p, drawing, call->n,
                                call->src[0], call->dst);
    });
}
