/* Add, with fused ReLU. One with fused normalizations: norm_join_kernels.cu. */
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

cudaError_t hpct_cuda_launch_add(hpct_precision type, size_t count, const hpct_cuda_join *join,
                                 void *dst)
{
    bool wide = is_aligned(dst);
    for (int k = 0; k < join->count; k++)
        wide = wide && is_aligned(join->src[k]);
    return for_packs(type, wide, 0, [&](auto zero, auto width) {
        constexpr int V = decltype(width)::value;
        return HPCT_CUDA_LAUNCH((add<decltype(zero), V>), blocks_for(count / V), THREADS, count,
                                *join, dst);
    });
}

static hpct_cuda_join join_of(const hpct_op *op, const hpct_op_call *call)
{
    hpct_cuda_join join = {};
    join.count = op->spec.join.count;
    join.relu = op->spec.relu;
    for (int k = 0; k < join.count; k++) {
        join.src[k] = call->src[k];
        join.diff_src[k] = call->diff_src != NULL ? call->diff_src[k] : NULL;
        join.add[k] = hpct_cuda_adds(call, k);
    }
    return join;
}

hpct_status hpct_cuda_add_forward(hpct_op *op, const hpct_op_call *call)
{
    if (op->spec.join.count == 2 && call->norms != NULL &&
        (call->norms[0] != NULL || call->norms[1] != NULL))
        return hpct_cuda_add_normed(op, call);
    const hpct_cuda_join join = join_of(op, call);
    return hpct_cuda_launched(
        hpct_cuda_launch_add(op->build.values, hpct_cuda_dst_count(op, call->n), &join, call->dst),
        op, "forward");
}

hpct_status hpct_cuda_add_backward(hpct_op *op, const hpct_op_call *call)
{
    const hpct_cuda_join join = join_of(op, call);
    const size_t count = hpct_cuda_dst_count(op, call->n);
    float *diff = call->diff_dst;
    bool wide = is_aligned(call->dst, diff), passes = false, any = false;
    for (int k = 0; k < join.count; k++) {
        wide = wide && is_aligned(join.diff_src[k]);
        passes = passes || join.diff_src[k] == diff;
        any = any || (join.diff_src[k] != NULL && (join.relu || join.diff_src[k] != diff));
    }
    if (op->leaves_norm_sums)
        return hpct_cuda_add_normed_backward(op, call, &join);
    if (!any) /* gradients are passed without a copy */
        return HPCT_OK;
    auto launch = [&](auto zero, auto width) {
        constexpr int V = decltype(width)::value;
        return HPCT_CUDA_LAUNCH((add_back<decltype(zero), V>), blocks_for(count / V), THREADS,
                                count, join, passes, call->dst, diff);
    };
    return hpct_cuda_launched(for_packs(op->build.values, wide, 0, launch), op, "backward");
}
