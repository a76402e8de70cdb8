/* nn/cuda/launch.cuh - how kernels are launched and what a device keeps between them, which tests
 * that run kernels on the host have otherwise (tests/unit/cuda_on_host.h). Private to nn/cuda's .cu
 * files. */
#ifndef HPCT_NN_CUDA_LAUNCH_CUH
#define HPCT_NN_CUDA_LAUNCH_CUH

#ifndef HPCT_LAUNCH_ON
#define HPCT_LAUNCH_ON(stream, kernel, grid, block, ...)                                           \
    kernel<<<(grid), (block), 0, (stream)>>>(__VA_ARGS__)
#define HPCT_OF_DEVICE static __device__ /* a variable */
#endif

#endif
