/* Casts, four numbers a thread where both ends are aligned for that: 16 and 8 bytes an access. */
#include "nn/cuda/wire.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace
{

constexpr unsigned THREADS = 256;
constexpr size_t MOST_BLOCKS = 4096; /* the rest is a loop */

struct bf16 {
    static __device__ uint16_t encode(float x)
    {
        return __bfloat16_as_ushort(__float2bfloat16_rn(x));
    }
    static __device__ float decode(uint16_t x)
    {
        return __bfloat162float(__ushort_as_bfloat16(x));
    }
};

struct fp16 {
    static __device__ uint16_t encode(float x)
    {
        return __half_as_ushort(__float2half_rn(x));
    }
    static __device__ float decode(uint16_t x)
    {
        return __half2float(__ushort_as_half(x));
    }
};

/* `fours` of the numbers by four, the rest one by one. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    encode_all(size_t count, size_t fours, const float *__restrict__ src,
               uint16_t *__restrict__ dst)
{
    size_t step = (size_t) gridDim.x * THREADS, first = (size_t) blockIdx.x * THREADS + threadIdx.x;
    for (size_t i = first; i < fours; i += step) {
        float4 x = reinterpret_cast<const float4 *>(src)[i];
        reinterpret_cast<ushort4 *>(dst)[i] =
            make_ushort4(T::encode(x.x), T::encode(x.y), T::encode(x.z), T::encode(x.w));
    }
    for (size_t i = 4 * fours + first; i < count; i += step)
        dst[i] = T::encode(src[i]);
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    decode_all(size_t count, size_t fours, const uint16_t *__restrict__ src,
               float *__restrict__ dst)
{
    size_t step = (size_t) gridDim.x * THREADS, first = (size_t) blockIdx.x * THREADS + threadIdx.x;
    for (size_t i = first; i < fours; i += step) {
        ushort4 x = reinterpret_cast<const ushort4 *>(src)[i];
        reinterpret_cast<float4 *>(dst)[i] =
            make_float4(T::decode(x.x), T::decode(x.y), T::decode(x.z), T::decode(x.w));
    }
    for (size_t i = 4 * fours + first; i < count; i += step)
        dst[i] = T::decode(src[i]);
}

size_t fours_of(size_t count, const void *floats, const void *shorts)
{
    return (uintptr_t) floats % 16 == 0 && (uintptr_t) shorts % 8 == 0 ? count / 4 : 0;
}

unsigned blocks_of(size_t count, size_t fours)
{
    size_t work = fours > 0 ? fours : count, blocks = (work + THREADS - 1) / THREADS;
    return (unsigned) (blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS);
}

} // namespace

cudaError_t hpct_launch_encode(cudaStream_t stream, bool in_fp16, size_t count, const float *src,
                               uint16_t *dst)
{
    size_t fours = fours_of(count, src, dst);
    if (count == 0)
        return cudaSuccess;
    if (in_fp16)
        encode_all<fp16><<<blocks_of(count, fours), THREADS, 0, stream>>>(count, fours, src, dst);
    else
        encode_all<bf16><<<blocks_of(count, fours), THREADS, 0, stream>>>(count, fours, src, dst);
    return cudaGetLastError();
}

cudaError_t hpct_launch_decode(cudaStream_t stream, bool in_fp16, size_t count, const uint16_t *src,
                               float *dst)
{
    size_t fours = fours_of(count, dst, src);
    if (count == 0)
        return cudaSuccess;
    if (in_fp16)
        decode_all<fp16><<<blocks_of(count, fours), THREADS, 0, stream>>>(count, fours, src, dst);
    else
        decode_all<bf16><<<blocks_of(count, fours), THREADS, 0, stream>>>(count, fours, src, dst);
    return cudaGetLastError();
}
