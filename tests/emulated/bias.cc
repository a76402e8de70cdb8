/* Its kernels and launchers as functions of the host. */
#include "tests/unit/cuda_on_host.h"

#include "nn/cuda/bias.cu"
