/* nn/backend/cuda/kernel.cuh - shared by kernels: values of three types loaded and stored in packs
 * of up to 16 bytes, sums of warps and blocks, grids, dispatch of template instances. Private to
 * nn/backend/cuda's .cu files. */
#ifndef HPCT_NN_BACKEND_CUDA_KERNEL_CUH
#define HPCT_NN_BACKEND_CUDA_KERNEL_CUH

#include "nn/backend/cuda/launch.cuh"

#include <cublas_v2.h>
#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cudnn.h>
#include <math.h>

/* Headers of C; those of C++ that they include are included above. */
extern "C" {
#include "base/status.h"
#include "nn/backend/cuda/ops.h"
}

constexpr int THREADS = 256; /* per block, by default */
constexpr int WARP = 32;

/* Enqueues on the thread's stream; the value is the launch's error. */
#define HPCT_CUDA_LAUNCH(kernel, grid, block, ...)                                                 \
    HPCT_CUDA_LAUNCH_ON(hpct_cuda_gpu.stream, kernel, grid, block, __VA_ARGS__)

/* ---- values ---- */

__device__ inline float value_of(float x)
{
    return x;
}

__device__ inline float value_of(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}

__device__ inline float value_of(__half x)
{
    return __half2float(x);
}

__device__ inline void round_to(float x, float *to)
{
    *to = x;
}

__device__ inline void round_to(float x, __nv_bfloat16 *to)
{
    *to = __float2bfloat16_rn(x);
}

__device__ inline void round_to(float x, __half *to)
{
    *to = __float2half_rn(x);
}

__device__ inline void round_pair(float x, float y, __nv_bfloat16 *to)
{
    __nv_bfloat162 pair = __floats2bfloat162_rn(x, y);
    to[0] = pair.x;
    to[1] = pair.y;
}

__device__ inline void round_pair(float x, float y, __half *to)
{
    __half2 pair = __floats2half2_rn(x, y);
    to[0] = __low2half(pair);
    to[1] = __high2half(pair);
}

/* V adjacent values, accessed at once. */
template <typename T, int V> struct alignas(V * sizeof(T)) pack {
    T at[V];
};

/* Values in 16 bytes. */
template <typename T> constexpr int WIDE = 16 / (int) sizeof(T);

template <typename T, int V> __device__ inline void load(const T *from, float (&to)[V])
{
    pack<T, V> p = *reinterpret_cast<const pack<T, V> *>(from);
#pragma unroll
    for (int k = 0; k < V; k++)
        to[k] = value_of(p.at[k]);
}

template <typename T, int V> __device__ inline void store(const float (&from)[V], T *to)
{
    pack<T, V> p;
    if constexpr (sizeof(T) == 2 && V % 2 == 0) {
#pragma unroll
        for (int k = 0; k < V; k += 2)
            round_pair(from[k], from[k + 1], &p.at[k]);
    } else {
#pragma unroll
        for (int k = 0; k < V; k++)
            round_to(from[k], &p.at[k]);
    }
    *reinterpret_cast<pack<T, V> *>(to) = p;
}

/* to = from; with `add` to += from. */
template <typename T, int V>
__device__ inline void put_values(const float (&from)[V], bool add, T *to)
{
    float sum[V];
#pragma unroll
    for (int k = 0; k < V; k++)
        sum[k] = from[k];
    if (add) {
        float old[V];
        load(to, old);
#pragma unroll
        for (int k = 0; k < V; k++)
            sum[k] += old[k];
    }
    store(sum, to);
}

/* Whether all pointers are 16-byte aligned; NULL counts as aligned. */
template <typename... P> inline bool is_aligned(const P *...pointer)
{
    return ((reinterpret_cast<uintptr_t>(pointer) % 16 == 0) && ...);
}

/* ---- indices ---- */

__device__ inline size_t grid_index()
{
    return (size_t) blockIdx.x * blockDim.x + threadIdx.x;
}

__device__ inline size_t grid_step()
{
    return (size_t) gridDim.x * blockDim.x;
}

/* The item that a chunk belongs to; first[i] is its first chunk, first[num] the number of
 * chunks. */
__device__ inline int item_of(const uint32_t *first, int num, uint32_t chunk)
{
    int low = 0, high = num - 1;
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (first[middle] <= chunk)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* Number of blocks for a grid-stride loop over `items`: enough for every multiprocessor, more to
 * balance their ends. */
inline unsigned blocks_for(size_t items, int threads = THREADS)
{
    size_t blocks = (items + (size_t) threads - 1) / (size_t) threads;
    size_t most = (size_t) hpct_cuda_gpu.multiprocessors * 32;
    return (unsigned) (blocks < 1 ? 1 : blocks < most ? blocks : most);
}

/* A grid with the items of a sample along x, samples along y. */
constexpr unsigned SAMPLES = 65535; /* maximum blocks along y */

struct sample_grid {
    dim3 blocks;
    unsigned threads;
};

inline sample_grid grid_for_samples(int n, size_t items)
{
    size_t threads = (items + WARP - 1) / WARP * WARP;
    threads = threads < WARP ? WARP : threads < THREADS ? threads : THREADS;
    size_t blocks = (items + threads - 1) / threads;
    return {dim3((unsigned) (blocks < 1 ? 1 : blocks), n < 1                    ? 1
                                                       : (unsigned) n < SAMPLES ? (unsigned) n
                                                                                : SAMPLES),
            (unsigned) threads};
}

/* ---- warp sums, equal on every lane ---- */

template <typename R> __device__ inline R warp_sum(R x)
{
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

__device__ inline float warp_max(float x)
{
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2)
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
    return x;
}

/* ---- the sum over a block's threads, equal on every thread ---- */

template <typename R> __device__ inline R block_sum(R x)
{
    __shared__ R of_warp[THREADS / WARP];
    x = warp_sum(x);
    __syncthreads(); /* earlier sums have been read */
    if (threadIdx.x % WARP == 0)
        of_warp[threadIdx.x / WARP] = x;
    __syncthreads();
    R sum = 0;
    for (unsigned w = 0; w < THREADS / WARP; w++)
        sum += of_warp[w];
    return sum;
}

/* ---- dispatch: calls body, which returns the launch's error ---- */

/* With a value of the type. */
template <typename Body> inline cudaError_t for_type(hpct_precision type, Body body)
{
    switch (type) {
    case HPCT_FP32:
        return body(float());
    case HPCT_BF16:
        return body(__nv_bfloat16());
    case HPCT_FP16:
        return body(__half());
    default:
        return cudaErrorInvalidValue;
    }
}

/* The width of packs as a type, for dispatch. */
template <int V> struct width_of {
    static constexpr int value = V;
};

/* With a value of the type and the width of packs: the widest if memory is aligned and `size`, the
 * length of rows, is a multiple of it (0: always), else single values. */
template <typename Body>
inline cudaError_t for_packs(hpct_precision type, bool aligned, size_t size, Body body)
{
    return for_type(type, [&](auto zero) {
        constexpr int wide = WIDE<decltype(zero)>;
        return aligned && size % wide == 0 ? body(zero, width_of<wide>())
                                           : body(zero, width_of<1>());
    });
}

/* for_type of an operation's activations. */
template <typename Body> inline hpct_status for_op(const hpct_op *op, const char *what, Body body)
{
    return hpct_cuda_launched(for_type(op->build.values, body), op, what);
}

#endif
