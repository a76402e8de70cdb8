/* The same of normalization and windows: a file of their own, which is compiled beside the other.
 */
#include "tests/gpu_without/kernels/cuda_on_host.h"

#include "nn/backend/cuda/group_norm_kernels.cu"
#include "nn/backend/cuda/norm_join_kernels.cu"
#include "nn/backend/cuda/norm_kernels.cu"
#include "nn/backend/cuda/window_kernels.cu"
