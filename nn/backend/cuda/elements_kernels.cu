/* Activations of single elements, Rescaling, casts, copies: one pass over memory each way. */
#include "nn/backend/cuda/kernel.cuh"
#include "nn/backend/cuda/random.cuh"

/* ---- nn/graph/elements.h in fp32 ---- */

/* What the formulas are written with. */
struct element {
    float slope, threshold, most;
    static __device__ float exp(float x)
    {
        return expf(x);
    }
    static __device__ float expm1(float x)
    {
        return expm1f(x);
    }
    static __device__ float log1p(float x)
    {
        return log1pf(x);
    }
    static __device__ float tanh(float x)
    {
        return tanhf(x);
    }
    static __device__ float logistic(float x)
    {
        return 1 / (1 + expf(-x));
    }
    static __device__ float normal_cdf(float x)
    {
        return 0.5f * erfcf(-x * 0.707106781186547524f);
    }
    static __device__ float normal_density(float x)
    {
        return expf(-0.5f * x * x) * 0.398942280401432678f; /* / sqrt(2 pi) */
    }
};

#define DEFINE(kind, name, reads, type, value, gradient, ...)                                      \
    struct element_##name : element {                                                              \
        __device__ float forward(float x) const                                                    \
        {                                                                                          \
            return value;                                                                          \
        }                                                                                          \
        __device__ float backward(float reads, float g) const                                      \
        {                                                                                          \
            return gradient;                                                                       \
        }                                                                                          \
    };
HPCT_GRAPH_ELEMENTS(DEFINE)

struct line {
    float scale, offset;
    __device__ float forward(float x) const
    {
        return x * scale + offset;
    }
};

/* ---- over arrays ---- */

/* dst = f(src), with `add` dst += f(src). The first threads process the elements after the last
 * pack. */
template <int V, typename F, typename S, typename D>
__device__ inline void map_all(size_t count, F f, const S *src, bool add, D *dst)
{
    size_t packs = count / V;
    for (size_t i = grid_index(); i < packs; i += grid_step()) {
        float x[V];
        load(src + i * V, x);
#pragma unroll
        for (int k = 0; k < V; k++)
            x[k] = f.forward(x[k]);
        put_values(x, add, dst + i * V);
    }
    size_t rest = packs * V + grid_index();
    if (V > 1 && rest < count) {
        float x[1];
        load(src + rest, x);
        x[0] = f.forward(x[0]);
        put_values(x, add, dst + rest);
    }
}

template <typename F, typename S, typename D, int V>
__global__ void __launch_bounds__(THREADS) map(size_t count, F f, const S *src, bool add, D *dst)
{
    map_all<V>(count, f, src, add, dst);
}

template <typename T, int V>
__global__ void __launch_bounds__(THREADS)
    widen(size_t count, const T *src, float *dst, size_t num_zeros, float *zeros)
{
    map_all<V>(count, line{1, 0}, src, false, dst);
    for (size_t i = grid_index(); i < num_zeros; i += grid_step())
        zeros[i] = 0;
}

/* out = f'(data) diff, with `add` accumulated. */
template <typename F, typename T, int V>
__global__ void __launch_bounds__(THREADS)
    map_back(size_t count, F f, const T *data, const T *diff, bool add, T *out)
{
    size_t packs = count / V;
    for (size_t i = grid_index(); i < packs; i += grid_step()) {
        float x[V], g[V];
        load(data + i * V, x);
        load(diff + i * V, g);
#pragma unroll
        for (int k = 0; k < V; k++)
            g[k] = f.backward(x[k], g[k]);
        put_values(g, add, out + i * V);
    }
    size_t rest = packs * V + grid_index();
    if (V > 1 && rest < count) {
        float x[1], g[1];
        load(data + rest, x);
        load(diff + rest, g);
        g[0] = f.backward(x[0], g[0]);
        put_values(g, add, out + rest);
    }
}

/* Packs of 16 bytes of the wider type. */
template <typename S, typename D, typename F>
static cudaError_t launch_map(cudaStream_t stream, size_t count, F f, const void *src, bool add,
                              void *dst)
{
    constexpr int V = WIDE<S> < WIDE<D> ? WIDE<S> : WIDE<D>;
    if (is_aligned(src, dst))
        return HPCT_CUDA_LAUNCH_ON(stream, (map<F, S, D, V>), blocks_for(count / V), THREADS, count,
                                   f, src, add, dst);
    return HPCT_CUDA_LAUNCH_ON(stream, (map<F, S, D, 1>), blocks_for(count), THREADS, count, f, src,
                               add, dst);
}

#define CASE(kind, name, ...)                                                                      \
    case HPCT_OP_##kind:                                                                           \
        return body(element_##name{{spec.slope, spec.threshold, spec.most}});

/* Calls body with the element's function object. */
template <typename Body> static cudaError_t for_element(const hpct_op_spec &spec, Body body)
{
    switch (spec.kind) {
        HPCT_GRAPH_ELEMENTS(CASE)
    default:
        return cudaErrorInvalidValue;
    }
}

hpct_status hpct_cuda_element_forward(hpct_op *op, const hpct_op_call *call)
{
    return for_op(op, "forward", [&](auto zero) {
        using T = decltype(zero);
        return for_element(op->spec, [&](auto f) {
            return launch_map<T, T>(hpct_cuda_gpu.stream, hpct_cuda_dst_count(op, call->n), f,
                                    call->src[0], false, call->dst);
        });
    });
}

hpct_status hpct_cuda_element_backward(hpct_op *op, const hpct_op_call *call)
{
    const float *data = op->backward_reads_src ? call->src[0] : call->dst, *diff = call->diff_dst;
    float *out = call->diff_src[0];
    const size_t count = hpct_cuda_dst_count(op, call->n);
    auto launch = [&](auto zero, auto width) {
        constexpr int V = decltype(width)::value;
        return for_element(op->spec, [&](auto f) {
            return HPCT_CUDA_LAUNCH((map_back<decltype(f), decltype(zero), V>),
                                    blocks_for(count / V), THREADS, count, f, data, diff,
                                    hpct_cuda_adds(call, 0), out);
        });
    };
    return hpct_cuda_launched(for_packs(op->build.values, is_aligned(data, diff, out), 0, launch),
                              op, "backward");
}

cudaError_t hpct_cuda_launch_rescale(hpct_precision type, size_t count, float scale, float offset,
                                     const void *src, bool add, void *dst)
{
    return for_type(type, [&](auto zero) {
        using T = decltype(zero);
        return launch_map<T, T>(hpct_cuda_gpu.stream, count, line{scale, offset}, src, add, dst);
    });
}

hpct_status hpct_cuda_rescaling_forward(hpct_op *op, const hpct_op_call *call)
{
    return hpct_cuda_launched(
        hpct_cuda_launch_rescale(op->build.values, hpct_cuda_dst_count(op, call->n), op->spec.scale,
                                 op->spec.offset, call->src[0], false, call->dst),
        op, "forward");
}

hpct_status hpct_cuda_rescaling_backward(hpct_op *op, const hpct_op_call *call)
{
    return hpct_cuda_launched(
        hpct_cuda_launch_rescale(op->build.values, hpct_cuda_dst_count(op, call->n), op->spec.scale,
                                 0, call->diff_dst, hpct_cuda_adds(call, 0), call->diff_src[0]),
        op, "backward");
}

cudaError_t hpct_cuda_launch_cast(cudaStream_t stream, size_t count, hpct_precision from,
                                  const void *src, hpct_precision to, void *dst)
{
    return for_type(from, [&](auto source) {
        return for_type(to, [&](auto target) {
            return launch_map<decltype(source), decltype(target)>(stream, count, line{1, 0}, src,
                                                                  false, dst);
        });
    });
}

cudaError_t hpct_cuda_launch_widen(hpct_precision type, size_t count, const void *src, float *dst,
                                   size_t num_zeros, float *zeros)
{
    return for_type(type, [&](auto zero) {
        using T = decltype(zero);
        constexpr int V = WIDE<float>;
        if (is_aligned(src, dst))
            return HPCT_CUDA_LAUNCH((widen<T, V>), blocks_for(count / V), THREADS, count, src, dst,
                                    num_zeros, zeros);
        return HPCT_CUDA_LAUNCH((widen<T, 1>), blocks_for(count), THREADS, count, src, dst,
                                num_zeros, zeros);
    });
}

/* ---- many arrays at once ---- */

static_assert(sizeof(hpct_cuda_copy_table) <= 4000, "a kernel takes 4 KiB of arguments");

template <typename T>
__global__ void __launch_bounds__(THREADS) copies(const __grid_constant__ hpct_cuda_copy_table t)
{
    constexpr uint32_t V = 4;
    for (uint32_t chunk = blockIdx.x; chunk < t.first_chunk[t.num]; chunk += gridDim.x) {
        const int i = item_of(t.first_chunk, t.num, chunk);
        const uint32_t begin = (chunk - t.first_chunk[i]) * HPCT_CUDA_COPY_CHUNK;
        const uint32_t left = t.count[i] - begin;
        const uint32_t end = begin + (left < HPCT_CUDA_COPY_CHUNK ? left : HPCT_CUDA_COPY_CHUNK);
        const float *const from = t.from[i];
        T *const to = (T *) t.to[i];
        for (uint32_t k = begin + V * threadIdx.x; k < end; k += V * THREADS) {
            if (k + V <= end) {
                float x[V];
                load(from + k, x);
                store(x, to + k);
                continue;
            }
            for (uint32_t rest = k; rest < end; rest++)
                round_to(from[rest], &to[rest]);
        }
    }
}

cudaError_t hpct_cuda_launch_copies(hpct_precision to, const hpct_cuda_copy_table *table)
{
    return for_type(to, [&](auto zero) {
        return HPCT_CUDA_LAUNCH(copies<decltype(zero)>,
                                blocks_for(table->first_chunk[table->num], 1), THREADS, *table);
    });
}

/* ---- pseudorandom values ---- */

template <typename T>
__global__ void __launch_bounds__(THREADS) uniform(size_t count, uint64_t seed, T *dst)
{
    for (size_t i = grid_index(); i < (count + 3) / 4; i += grid_step()) {
        words w = philox({{(uint32_t) i, (uint32_t) (i >> 32), 0, 0}}, seed);
        for (int k = 0; k < 4; k++) {
            if (4 * i + k < count)
                round_to((float) (w.at[k] >> 8) * 0x1p-23f - 1, &dst[4 * i + k]);
        }
    }
}

cudaError_t hpct_cuda_launch_uniform(hpct_precision type, size_t count, uint64_t seed, void *dst)
{
    return for_type(type, [&](auto zero) {
        return HPCT_CUDA_LAUNCH(uniform<decltype(zero)>, blocks_for((count + 3) / 4), THREADS,
                                count, seed, dst);
    });
}
