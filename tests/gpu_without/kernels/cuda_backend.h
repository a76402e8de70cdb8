/* tests/gpu_without/kernels/cuda_backend.h - a backend of the GPU module's operations with own
 * kernels, which run on the host (tests/gpu_without/kernels/cuda_on_host.h). */
#ifndef HPCT_TESTS_GPU_WITHOUT_KERNELS_CUDA_BACKEND_H
#define HPCT_TESTS_GPU_WITHOUT_KERNELS_CUDA_BACKEND_H

#include "nn/backend/backend.h"

/* Conv2D and Dense, which are libraries', are not among its operations. */
extern const hpct_backend cuda_backend_on_host;
extern const hpct_backend *const cuda_backends_on_host[]; /* it alone, ended by NULL */

#endif
