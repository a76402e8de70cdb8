/* The GPU module's kernels and their launchers as functions of the host; those of normalization and
 * windows are in cuda_norms_on_host.cc. */
#include "tests/gpu_without/kernels/cuda_on_host.h"

#include "nn/backend/cuda/channel_kernels.cu"
#include "nn/backend/cuda/elements_kernels.cu"
#include "nn/backend/cuda/gather_kernels.cu"
#include "nn/backend/cuda/join_kernels.cu"
#include "nn/backend/cuda/loss_kernels.cu"
#include "nn/backend/cuda/moment_kernels.cu"
#include "nn/backend/cuda/penalty_kernels.cu"
#include "nn/backend/cuda/random_kernels.cu"
#include "nn/backend/cuda/rows_kernels.cu"
#include "nn/backend/cuda/self_test_kernels.cu"
#include "nn/backend/cuda/small_kernels.cu"
#include "nn/backend/cuda/update_kernels.cu"
#include "nn/backend/cuda/variation_kernels.cu"
