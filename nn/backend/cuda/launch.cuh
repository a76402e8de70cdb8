/* nn/backend/cuda/launch.cuh - kernel launches and device variables, which tests that run kernels
 * on the host define differently (tests/gpu_without/kernels/cuda_on_host.h). Private to
 * nn/backend/cuda's .cu files. */
#ifndef HPCT_NN_BACKEND_CUDA_LAUNCH_CUH
#define HPCT_NN_BACKEND_CUDA_LAUNCH_CUH

#ifndef HPCT_CUDA_LAUNCH_ON
#define HPCT_CUDA_LAUNCH_ON(stream, kernel, grid, block, ...)                                      \
    kernel<<<(grid), (block), 0, (stream)>>>(__VA_ARGS__)
#define HPCT_CUDA_OF_DEVICE static __device__ /* of a static device variable */
#endif

#endif
