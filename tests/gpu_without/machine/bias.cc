/* Its kernels and launchers as functions of the host. */
#include "tests/gpu_without/kernels/cuda_on_host.h"

#include "nn/backend/cuda/bias.cu"
