/* Sums of several inputs, with fused ReLU. */
#include "nn/backend/cuda/kernel.cuh"

template <typename T, int V>
__device__ inline void add_at(const hpct_cuda_join &j, size_t at, T *dst)
{
    float sum[V] = {};
    for (int k = 0; k < j.count; k++) {
        float x[V];
        load((const T *) j.src[k] + at, x);
#pragma unroll
        for (int v = 0; v < V; v++)
            sum[v] += x[v];
    }
#pragma unroll
    for (int v = 0; v < V; v++)
        sum[v] = j.relu && !(sum[v] > 0) ? 0 : sum[v];
    store(sum, dst + at);
}

template <typename T, int V>
__global__ void __launch_bounds__(THREADS)
    add(size_t count, const __grid_constant__ hpct_cuda_join j, T *dst)
{
    const size_t packs = count / V, rest = packs * V + grid_index();
    for (size_t i = grid_index(); i < packs; i += grid_step())
        add_at<T, V>(j, i * V, dst);
    if (V > 1 && rest < count)
        add_at<T, 1>(j, rest, dst);
}

/* passes: an input's gradient is diff itself. */
template <typename T, int V>
__device__ inline void add_back_at(const hpct_cuda_join &j, size_t at, bool passes, const T *dst,
                                   T *diff)
{
    float g[V];
    load(diff + at, g);
    if (j.relu) {
        float y[V];
        load(dst + at, y);
#pragma unroll
        for (int v = 0; v < V; v++)
            g[v] = y[v] > 0 ? g[v] : 0;
        if (passes)
            store(g, diff + at);
    }
    for (int k = 0; k < j.count; k++) {
        T *out = (T *) j.diff_src[k];
        if (out != nullptr && out != diff)
            put_values(g, j.add[k], out + at);
    }
}

template <typename T, int V>
__global__ void __launch_bounds__(THREADS)
    add_back(size_t count, const __grid_constant__ hpct_cuda_join j, bool passes, const T *dst,
             T *diff)
{
    const size_t packs = count / V, rest = packs * V + grid_index();
    for (size_t i = grid_index(); i < packs; i += grid_step())
        add_back_at<T, V>(j, i * V, passes, dst, diff);
    if (V > 1 && rest < count)
        add_back_at<T, 1>(j, rest, passes, dst, diff);
}

cudaError_t hpct_cuda_launch_add(hpct_cuda_queue queue, hpct_cuda_number type, size_t count,
                                 const hpct_cuda_join *join, void *dst)
{
    bool wide = is_aligned(dst);
    for (int k = 0; k < join->count; k++)
        wide = wide && is_aligned(join->src[k]);
    return for_type(type, [&](auto zero) {
        using T = decltype(zero);
        for_width<T>(wide, [&](auto width) {
            constexpr int V = decltype(width)::value;
            auto kernel = add<T, V>;
            HPCT_CUDA_LAUNCH(kernel, blocks_for(queue, count / V), THREADS, queue, count, *join,
                             (T *) dst);
        });
    });
}

cudaError_t hpct_cuda_launch_add_backward(hpct_cuda_queue queue, hpct_cuda_number type,
                                          size_t count, const hpct_cuda_join *join, const void *dst,
                                          void *diff_dst)
{
    bool wide = is_aligned(dst, diff_dst), passes = false;
    for (int k = 0; k < join->count; k++) {
        wide = wide && is_aligned(join->diff_src[k]);
        passes = passes || join->diff_src[k] == diff_dst;
    }
    return for_type(type, [&](auto zero) {
        using T = decltype(zero);
        for_width<T>(wide, [&](auto width) {
            constexpr int V = decltype(width)::value;
            auto kernel = add_back<T, V>;
            HPCT_CUDA_LAUNCH(kernel, blocks_for(queue, count / V), THREADS, queue, count, *join,
                             passes, (const T *) dst, (T *) diff_dst);
        });
    });
}
