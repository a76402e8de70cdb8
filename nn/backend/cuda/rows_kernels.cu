/* Row kernels: softmax, copies of parts of rows, axes in another order. */
#include "nn/backend/cuda/kernel.cuh"

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

cudaError_t hpct_cuda_launch_softmax(hpct_cuda_queue queue, hpct_cuda_number type, size_t rows,
                                     int size, const void *src, void *dst)
{
    return for_type(type, [&](auto zero) {
        using T = decltype(zero);
        auto kernel = softmax<T>;
        HPCT_CUDA_LAUNCH(kernel, blocks_for(queue, rows, ROWS), dim3(WARP, ROWS), queue, rows, size,
                         (const T *) src, (T *) dst);
    });
}

cudaError_t hpct_cuda_launch_softmax_backward(hpct_cuda_queue queue, hpct_cuda_number type,
                                              size_t rows, int size, const void *dst,
                                              const void *diff_dst, bool add, void *diff_src)
{
    return for_type(type, [&](auto zero) {
        using T = decltype(zero);
        auto kernel = softmax_backward<T>;
        HPCT_CUDA_LAUNCH(kernel, blocks_for(queue, rows, ROWS), dim3(WARP, ROWS), queue, rows, size,
                         (const T *) dst, (const T *) diff_dst, add, (T *) diff_src);
    });
}

/* ---- parts of rows ---- */

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

cudaError_t hpct_cuda_launch_copy_rows(hpct_cuda_queue queue, hpct_cuda_number type, size_t rows,
                                       size_t width, const void *src, size_t src_pitch, bool add,
                                       void *dst, size_t dst_pitch)
{
    return for_type(type, [&](auto zero) {
        using T = decltype(zero);
        constexpr size_t W = WIDE<T>;
        bool wide = width % W == 0 && src_pitch % W == 0 && dst_pitch % W == 0;
        for_width<T>(wide && is_aligned(src, dst), [&](auto width_type) {
            constexpr int V = decltype(width_type)::value;
            unsigned across = 1;
            while (across < width / V && across < THREADS)
                across *= 2;
            unsigned down = THREADS / across;
            auto kernel = copy_rows<T, V>;
            HPCT_CUDA_LAUNCH(kernel, blocks_for(queue, rows, (int) down), dim3(across, down), queue,
                             rows, width, (const T *) src, src_pitch, add, (T *) dst, dst_pitch);
        });
    });
}

/* ---- axes in another order ---- */

template <typename T>
__global__ void __launch_bounds__(THREADS) permute(const __grid_constant__ hpct_cuda_order order,
                                                   size_t count, const T *src, bool add, T *dst)
{
    for (size_t i = grid_index(); i < count; i += grid_step()) {
        size_t rest = i, from = 0, all = 1;
#pragma unroll
        for (int axis = HPCT_CUDA_ORDER_AXES - 1; axis >= 0; axis--) {
            from += rest % order.size[axis] * order.step[axis];
            rest /= order.size[axis];
            all *= order.size[axis];
        }
        float x[1] = {value_of(src[rest * all + from])};
        put_values(x, add, dst + i);
    }
}

cudaError_t hpct_cuda_launch_permute(hpct_cuda_queue queue, hpct_cuda_number type,
                                     const hpct_cuda_order *order, size_t count, const void *src,
                                     bool add, void *dst)
{
    return for_type(type, [&](auto zero) {
        using T = decltype(zero);
        auto kernel = permute<T>;
        HPCT_CUDA_LAUNCH(kernel, blocks_for(queue, count), THREADS, queue, *order, count,
                         (const T *) src, add, (T *) dst);
    });
}
