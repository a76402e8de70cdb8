/* Rows: Softmax along the last axis, Concatenate, Permute. */
#include "nn/backend/cuda/kernel.cuh"

#include "nn/backend/permute.h"

constexpr int ROWS = 4; /* per block, one warp each */

/* ---- softmax ---- */

template <typename T>
__global__ void __launch_bounds__(ROWS *WARP) softmax(size_t rows, int size, const T *src, T *dst)
{
    const int lane = (int) threadIdx.x;
    for (size_t r = (size_t) blockIdx.x * ROWS + threadIdx.y; r < rows;
         r += (size_t) gridDim.x * ROWS) {
        const T *x = src + r * (size_t) size;
        T *y = dst + r * (size_t) size;
        float top = -INFINITY, sum = 0;
        for (int i = lane; i < size; i += WARP)
            top = fmaxf(top, value_of(x[i]));
        top = warp_max(top);
        for (int i = lane; i < size; i += WARP)
            sum += expf(value_of(x[i]) - top);
        sum = warp_sum(sum);
        for (int i = lane; i < size; i += WARP)
            round_to(expf(value_of(x[i]) - top) / sum, &y[i]);
    }
}

template <typename T>
__global__ void __launch_bounds__(ROWS *WARP)
    softmax_backward(size_t rows, int size, const T *dst, const T *diff_dst, bool add, T *diff_src)
{
    const int lane = (int) threadIdx.x;
    for (size_t r = (size_t) blockIdx.x * ROWS + threadIdx.y; r < rows;
         r += (size_t) gridDim.x * ROWS) {
        const T *y = dst + r * (size_t) size, *g = diff_dst + r * (size_t) size;
        T *out = diff_src + r * (size_t) size;
        float dot = 0;
        for (int i = lane; i < size; i += WARP)
            dot += value_of(g[i]) * value_of(y[i]);
        dot = warp_sum(dot);
        for (int i = lane; i < size; i += WARP) {
            float d[1] = {value_of(y[i]) * (value_of(g[i]) - dot)};
            put_values(d, add, &out[i]);
        }
    }
}

static size_t rows_of(const hpct_op *op, int n)
{
    return (size_t) n * (size_t) op->spec.dense.rows;
}

hpct_status hpct_cuda_softmax_forward(hpct_op *op, const hpct_op_call *call)
{
    const size_t rows = rows_of(op, call->n);
    return for_op(op, "forward", [&](auto zero) {
        return HPCT_CUDA_LAUNCH(softmax<decltype(zero)>, blocks_for(rows, ROWS), dim3(WARP, ROWS),
                                rows, op->spec.dense.out, call->src[0], call->dst);
    });
}

hpct_status hpct_cuda_softmax_backward(hpct_op *op, const hpct_op_call *call)
{
    const size_t rows = rows_of(op, call->n);
    return for_op(op, "backward", [&](auto zero) {
        return HPCT_CUDA_LAUNCH(softmax_backward<decltype(zero)>, blocks_for(rows, ROWS),
                                dim3(WARP, ROWS), rows, op->spec.dense.out, call->dst,
                                call->diff_dst, hpct_cuda_adds(call, 0), call->diff_src[0]);
    });
}

/* ---- Concatenate: each input is a part of every row of the result ---- */

/* A block processes several rows, and several packs of each. */
template <typename T, int V>
__global__ void __launch_bounds__(THREADS)
    copy_rows(size_t rows, size_t width, const T *src, size_t src_pitch, bool add, T *dst,
              size_t dst_pitch)
{
    for (size_t r = (size_t) blockIdx.x * blockDim.y + threadIdx.y; r < rows;
         r += (size_t) gridDim.x * blockDim.y)
        for (size_t at = (size_t) threadIdx.x * V; at < width; at += (size_t) blockDim.x * V) {
            float x[V];
            load(src + r * src_pitch + at, x);
            put_values(x, add, dst + r * dst_pitch + at);
        }
}

static hpct_status launch_copy(const hpct_op *op, int n, const char *what, size_t width,
                               const void *src, size_t src_pitch, bool add, void *dst,
                               size_t dst_pitch)
{
    const size_t rows = (size_t) n * (size_t) op->spec.join.rows;
    auto launch = [&](auto zero, auto packs) {
        constexpr int V = decltype(packs)::value;
        unsigned across = 1;
        while (across < width / V && across < THREADS)
            across *= 2;
        const unsigned down = THREADS / across;
        return HPCT_CUDA_LAUNCH((copy_rows<decltype(zero), V>), blocks_for(rows, (int) down),
                                dim3(across, down), rows, width, src, src_pitch, add, dst,
                                dst_pitch);
    };
    /* packs have a power of two of values: all three are multiples */
    return hpct_cuda_launched(
        for_packs(op->build.values, is_aligned(src, dst), width | src_pitch | dst_pitch, launch),
        op, what);
}

static size_t row_length(const hpct_op *op)
{
    return hpct_op_dst_floats(&op->spec) / (size_t) op->spec.join.rows;
}

hpct_status hpct_cuda_concatenate_forward(hpct_op *op, const hpct_op_call *call)
{
    char *dst = (char *) call->dst;
    for (int k = 0; k < op->spec.join.count; k++) {
        const size_t size = (size_t) op->spec.join.size[k];
        HPCT_TRY(launch_copy(op, call->n, "forward", size, call->src[k], size, false, dst,
                             row_length(op)));
        dst += size * hpct_backend_precision_bytes(op->build.values);
    }
    return HPCT_OK;
}

hpct_status hpct_cuda_concatenate_backward(hpct_op *op, const hpct_op_call *call)
{
    const char *diff = (const char *) call->diff_dst;
    for (int k = 0; k < op->spec.join.count; k++) {
        const size_t size = (size_t) op->spec.join.size[k];
        if (call->diff_src[k] != NULL)
            HPCT_TRY(launch_copy(op, call->n, "backward", size, diff, row_length(op),
                                 hpct_cuda_adds(call, k), call->diff_src[k], size));
        diff += size * hpct_backend_precision_bytes(op->build.values);
    }
    return HPCT_OK;
}

/* ---- Permute: a gather, in backward with the inverse order of axes ---- */

template <typename T>
__global__ void __launch_bounds__(THREADS)
    permute(const __grid_constant__ hpct_backend_permute order, size_t count, const T *src,
            bool add, T *dst)
{
    for (size_t i = grid_index(); i < count; i += grid_step()) {
        size_t rest = i, from = 0, all = 1;
#pragma unroll
        for (int axis = HPCT_MAX_RANK - 1; axis >= 0; axis--) {
            const unsigned size = (unsigned) order.size[axis];
            from += rest % size * order.step[axis];
            rest /= size;
            all *= size;
        }
        float x[1] = {value_of(src[rest * all + from])};
        put_values(x, add, dst + i);
    }
}

static hpct_status launch_permute(const hpct_op *op, const hpct_op_call *call, bool back,
                                  const float *src, bool add, float *dst)
{
    const hpct_backend_permute order = hpct_backend_permute_make(&op->spec, back);
    const size_t count = hpct_cuda_dst_count(op, call->n);
    return for_op(op, back ? "backward" : "forward", [&](auto zero) {
        return HPCT_CUDA_LAUNCH(permute<decltype(zero)>, blocks_for(count), THREADS, order, count,
                                src, add, dst);
    });
}

hpct_status hpct_cuda_permute_forward(hpct_op *op, const hpct_op_call *call)
{
    return launch_permute(op, call, false, call->src[0], false, call->dst);
}

hpct_status hpct_cuda_permute_backward(hpct_op *op, const hpct_op_call *call)
{
    return launch_permute(op, call, true, call->diff_dst, hpct_cuda_adds(call, 0),
                          call->diff_src[0]);
}
