/* nn/cuda/value.cuh - numbers of an activation's type in kernels: to and from fp32, and as many of
 * them together as one thread moves at once. */
#ifndef HPCT_NN_CUDA_VALUE_CUH
#define HPCT_NN_CUDA_VALUE_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace hpct
{

__device__ inline float load(float value)
{
    return value;
}

__device__ inline float load(__nv_bfloat16 value)
{
    return __bfloat162float(value);
}

__device__ inline float load(__half value)
{
    return __half2float(value);
}

__device__ inline void store(float *to, float value)
{
    *to = value;
}

__device__ inline void store(__nv_bfloat16 *to, float value)
{
    *to = __float2bfloat16_rn(value);
}

__device__ inline void store(__half *to, float value)
{
    *to = __float2half_rn(value);
}

template <typename T, int V> struct __align__(sizeof(T) * V) pack
{
    T v[V];
};

} // namespace hpct

#endif
