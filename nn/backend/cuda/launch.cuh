/* nn/backend/cuda/launch.cuh - kernel launches and device variables, which tests that run kernels
 * on the host define differently (tests/gpu_without/kernels/cuda_on_host.h). Private to
 * nn/backend/cuda's .cu files. */
#ifndef HPCT_NN_BACKEND_CUDA_LAUNCH_CUH
#define HPCT_NN_BACKEND_CUDA_LAUNCH_CUH

#include <cuda_runtime.h>
#include <type_traits>

/* An argument as a parameter's type: pointers to activations have their type, numbers are
 * converted. */
template <typename P, typename A> inline P as_parameter(const A &argument)
{
    if constexpr (std::is_pointer_v<P> && std::is_pointer_v<A>)
        return reinterpret_cast<P>(argument);
    else
        return static_cast<P>(argument);
}

#ifndef HPCT_CUDA_LAUNCH_ON
template <typename... P, typename... A>
inline cudaError_t launch_on(cudaStream_t stream, void (*kernel)(P...), dim3 grid, dim3 block,
                             const A &...arguments)
{
    kernel<<<grid, block, 0, stream>>>(as_parameter<P>(arguments)...);
    return cudaGetLastError();
}

#define HPCT_CUDA_LAUNCH_ON(stream, kernel, grid, block, ...)                                      \
    launch_on(stream, kernel, grid, block, __VA_ARGS__)
#define HPCT_CUDA_OF_DEVICE static __device__ /* of a static device variable */
#endif

#endif
