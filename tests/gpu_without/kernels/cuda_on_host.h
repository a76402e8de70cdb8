/* tests/gpu_without/kernels/cuda_on_host.h - CUDA kernels as functions of the host: included before
 * a .cu file that a C++ compiler reads. Blocks run one after the other, their threads as fibers
 * that take turns at barriers and shuffles. What is computed is what a GPU would; each access is
 * looked at for races (tests/gpu_without/kernels/cuda_watch.h). */
#ifndef HPCT_TESTS_GPU_WITHOUT_KERNELS_CUDA_ON_HOST_H
#define HPCT_TESTS_GPU_WITHOUT_KERNELS_CUDA_ON_HOST_H

#include <cmath>
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <functional>
#include <math.h>
#include <string.h>
#include <tuple>
#include <utility>

#undef __shared__
#define __shared__ static
#define HPCT_CUDA_OF_DEVICE static __attribute__((section("hpct_of_device"), used))
#undef __launch_bounds__
#define __launch_bounds__(...)
#undef __grid_constant__
#define __grid_constant__
#define cudaFuncGetAttributes(attributes, function) ((void) (attributes), cudaSuccess)
#define cudaGetSymbolAddress(address, symbol)                                                      \
    (*(address) = hpct_host_symbol((void *) &(symbol)), cudaSuccess)

/* Of the fiber that runs. */
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

/* Runs a kernel now; where it is watched, bytes of memory that it reads and writes
 * (tests/gpu_without/kernels/cuda_watch.h). */
size_t hpct_host_run(dim3 grid, dim3 block, const std::function<void()> &kernel, bool watched);

/* What a launch does, and where a variable of the device is: at once and itself
 * where the program has no other. */
void hpct_host_launch(cudaStream_t stream, dim3 grid, dim3 block, std::function<void()> kernel,
                      const char *launcher);
void *hpct_host_symbol(void *variable);

#define HPCT_CUDA_LAUNCH_ON(stream, kernel, grid, block, ...)                                      \
    (hpct_host_launch(stream, dim3(grid), dim3(block), hpct_host_bind(kernel, __VA_ARGS__),        \
                      __PRETTY_FUNCTION__),                                                        \
     cudaGetLastError())

#include "nn/backend/cuda/launch.cuh"

/* A call with its arguments as they are now. */
template <typename... P, typename... A>
std::function<void()> hpct_host_bind(void (*kernel)(P...), const A &...arguments)
{
    std::tuple<P...> kept(as_parameter<P>(arguments)...);
    return [kernel, kept] { std::apply(kernel, kept); };
}

void __syncthreads();
void __syncwarp();
/* What the lane has at `from` of its warp. All live lanes call it. */
uint64_t hpct_host_shuffle(uint64_t mine, unsigned from);
unsigned hpct_host_lane();

template <typename R> inline R __shfl_sync(unsigned, R x, int lane)
{
    uint64_t bits = 0;
    memcpy(&bits, &x, sizeof x);
    bits = hpct_host_shuffle(bits, (unsigned) lane);
    memcpy(&x, &bits, sizeof x);
    return x;
}

template <typename R> inline R __shfl_xor_sync(unsigned mask, R x, int with)
{
    return __shfl_sync(mask, x, (int) hpct_host_lane() ^ with);
}

void __threadfence();
unsigned atomicAdd(unsigned *to, unsigned more);

#endif
