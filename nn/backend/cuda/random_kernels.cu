/* Dropout, GaussianNoise, RandomCrop and Resizing. The random numbers are defined in
 * nn/backend/dropout.h, nn/backend/noise.h and nn/backend/picture.h; backward draws the same again.
 */
#include "nn/backend/cuda/kernel.cuh"
#include "nn/backend/cuda/random.cuh"

extern "C" {
#include "nn/backend/dropout.h"
#include "nn/backend/picture.h"
}

/* ---- dropout ---- */

constexpr uint32_t LANES = HPCT_BACKEND_DROPOUT_LANES, GROUP = HPCT_BACKEND_DROPOUT_GROUP;

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

static cudaError_t copy(const hpct_op *op, int n, const float *src, bool add, float *dst)
{
    return hpct_cuda_launch_rescale(op->build.values, hpct_cuda_dst_count(op, n), 1, 0, src, add,
                                    dst);
}

static cudaError_t drop(const hpct_op *op, const hpct_op_call *call, const float *src, bool add,
                        float *dst)
{
    const hpct_graph_draw draw = hpct_op_draw(op, call);
    const hpct_backend_dropout how = hpct_backend_dropout_make(&draw, op->spec.rate);
    const size_t rows = (size_t) op->spec.dense.rows, size = (size_t) op->spec.dense.out;
    if (!call->training)
        return copy(op, call->n, src, add, dst);
    const hpct_cuda_drawing drawing = hpct_cuda_drawing_of(op, call);
    const sample_grid grid =
        grid_for_samples(call->n, rows > 1 ? rows * size : (size + GROUP - 1) / GROUP * LANES);
    return for_type(op->build.values, [&](auto zero) {
        using T = decltype(zero);
        if (rows > 1)
            return HPCT_CUDA_LAUNCH(dropout_rows<T>, grid.blocks, grid.threads, drawing,
                                    how.threshold, how.scale, call->n, rows, size, src, add, dst);
        return HPCT_CUDA_LAUNCH(dropout<T>, grid.blocks, grid.threads, drawing, how.threshold,
                                how.scale, call->n, size, src, add, dst);
    });
}

hpct_status hpct_cuda_dropout_forward(hpct_op *op, const hpct_op_call *call)
{
    return hpct_cuda_launched(drop(op, call, call->src[0], false, call->dst), op, "forward");
}

hpct_status hpct_cuda_dropout_backward(hpct_op *op, const hpct_op_call *call)
{
    return hpct_cuda_launched(
        drop(op, call, call->diff_dst, hpct_cuda_adds(call, 0), call->diff_src[0]), op, "backward");
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

hpct_status hpct_cuda_noise_forward(hpct_op *op, const hpct_op_call *call)
{
    const size_t size = hpct_op_dst_floats(&op->spec);
    const sample_grid grid = grid_for_samples(call->n, (size + 3) / 4);
    if (!call->training)
        return hpct_cuda_launched(copy(op, call->n, call->src[0], false, call->dst), op, "forward");
    const hpct_cuda_drawing drawing = hpct_cuda_drawing_of(op, call);
    return for_op(op, "forward", [&](auto zero) {
        return HPCT_CUDA_LAUNCH(noise<decltype(zero)>, grid.blocks, grid.threads, drawing,
                                op->spec.rate, call->n, size, call->src[0], call->dst);
    });
}

hpct_status hpct_cuda_noise_backward(hpct_op *op, const hpct_op_call *call)
{
    if (call->diff_src[0] == call->diff_dst)
        return HPCT_OK;
    return hpct_cuda_launched(
        copy(op, call->n, call->diff_dst, hpct_cuda_adds(call, 0), call->diff_src[0]), op,
        "backward");
}

/* ---- boxes of images, resized ---- */

struct crop_box {
    hpct_graph_picture picture;
    hpct_backend_box box; /* resized to the output's size */
    bool draws;           /* its place is random */
};

__device__ inline hpct_backend_box box_of(const crop_box &c, const hpct_cuda_drawing &d, int s)
{
    if (!c.draws)
        return c.box;
    const words drawn = draw_words(d, d.first_sample + (uint32_t) s, 0);
    return {hpct_backend_pick(drawn.at[0], c.picture.in_h - c.picture.out_h + 1),
            hpct_backend_pick(drawn.at[1], c.picture.in_w - c.picture.out_w + 1), c.box.height,
            c.box.width};
}

__device__ inline size_t crop_in_at(const hpct_graph_picture &p, int s, int y, int x)
{
    return (((size_t) s * (size_t) p.in_h + (size_t) y) * (size_t) p.in_w + (size_t) x) *
           (size_t) p.channels;
}

__device__ inline size_t crop_out_at(const hpct_graph_picture &p, int s, int y, int x)
{
    return (((size_t) s * (size_t) p.out_h + (size_t) y) * (size_t) p.out_w + (size_t) x) *
           (size_t) p.channels;
}

/* A thread processes all channels of an output cell. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    crop(const __grid_constant__ crop_box c, hpct_cuda_drawing given, int n, const T *src, T *dst)
{
    const hpct_cuda_drawing drawing = current(given);
    const hpct_graph_picture &p = c.picture;
    const unsigned item = blockIdx.x * blockDim.x + threadIdx.x;
    if (item >= (unsigned) p.out_h * (unsigned) p.out_w)
        return;
    const int y = (int) (item / (unsigned) p.out_w), x = (int) (item % (unsigned) p.out_w);
    const hpct_backend_between v = hpct_backend_look(y, p.out_h, c.box.height, p.nearest),
                               h = hpct_backend_look(x, p.out_w, c.box.width, p.nearest);
    const float down = (float) v.part, right = (float) h.part;
    for (int s = (int) blockIdx.y; s < n; s += (int) gridDim.y) {
        const hpct_backend_box from = box_of(c, drawing, s);
        const T *top_left = src + crop_in_at(p, s, from.top + v.low, from.left + h.low),
                *top_right = src + crop_in_at(p, s, from.top + v.low, from.left + h.high),
                *low_left = src + crop_in_at(p, s, from.top + v.high, from.left + h.low),
                *low_right = src + crop_in_at(p, s, from.top + v.high, from.left + h.high);
        T *out = dst + crop_out_at(p, s, y, x);
        for (int k = 0; k < p.channels; k++) {
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
__device__ inline float weight_of(const hpct_backend_between &b, int at)
{
    return (float) ((b.low == at ? 1 - b.part : 0) + (b.high == at ? b.part : 0));
}

/* A thread gathers one channel of an input cell. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    resize_backward(const __grid_constant__ hpct_graph_picture p, int n, const T *diff, bool add,
                    T *diff_src)
{
    const unsigned item = blockIdx.x * blockDim.x + threadIdx.x, at = item / (unsigned) p.channels;
    if (at >= (unsigned) p.in_h * (unsigned) p.in_w)
        return;
    const int channel = (int) (item % (unsigned) p.channels);
    const int y = (int) (at / (unsigned) p.in_w), x = (int) (at % (unsigned) p.in_w);
    const seen rows = seen_by(y, p.out_h, p.in_h), columns = seen_by(x, p.out_w, p.in_w);
    for (int s = (int) blockIdx.y; s < n; s += (int) gridDim.y) {
        float sum[1] = {0};
        for (int i = rows.low; i <= rows.high; i++) {
            const float down = weight_of(hpct_backend_look(i, p.out_h, p.in_h, p.nearest), y);
            for (int j = columns.low; down != 0 && j <= columns.high; j++) {
                const float right = weight_of(hpct_backend_look(j, p.out_w, p.in_w, p.nearest), x);
                if (right != 0)
                    sum[0] += down * right * value_of(diff[crop_out_at(p, s, i, j) + channel]);
            }
        }
        put_values(sum, add, diff_src + crop_in_at(p, s, y, x) + channel);
    }
}

/* ---- the operations ---- */

/* A box is random only if the input is larger in both dimensions. */
static crop_box crop_of(const hpct_op *op, const hpct_op_call *call)
{
    const hpct_graph_picture &p = op->spec.picture;
    const bool crops = op->spec.kind == HPCT_OP_RANDOM_CROP;
    crop_box c = {p, crops ? hpct_backend_box_centre(&p) : hpct_backend_box_whole(&p), false};
    c.draws = crops && call->training && p.in_h > p.out_h && p.in_w > p.out_w;
    if (c.draws)
        c.box = {0, 0, p.out_h, p.out_w};
    return c;
}

hpct_status hpct_cuda_crop_forward(hpct_op *op, const hpct_op_call *call)
{
    const crop_box c = crop_of(op, call);
    const hpct_cuda_drawing drawing = hpct_cuda_drawing_of(op, call);
    const sample_grid grid =
        grid_for_samples(call->n, (size_t) c.picture.out_h * (size_t) c.picture.out_w);
    return for_op(op, "forward", [&](auto zero) {
        return HPCT_CUDA_LAUNCH(crop<decltype(zero)>, grid.blocks, grid.threads, c, drawing,
                                call->n, call->src[0], call->dst);
    });
}

/* RESIZING's alone, of the whole image. */
hpct_status hpct_cuda_crop_backward(hpct_op *op, const hpct_op_call *call)
{
    const sample_grid grid = grid_for_samples(call->n, hpct_op_src_floats(&op->spec, 0));
    return for_op(op, "backward", [&](auto zero) {
        return HPCT_CUDA_LAUNCH(resize_backward<decltype(zero)>, grid.blocks, grid.threads,
                                op->spec.picture, call->n, call->diff_dst, hpct_cuda_adds(call, 0),
                                call->diff_src[0]);
    });
}
