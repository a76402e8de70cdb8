/* The GPU module's kernels and their launchers as functions of the host. */
#include "tests/unit/cuda_on_host.h"

#include "nn/cuda/elements_kernels.cu"
#include "nn/cuda/gather_kernels.cu"
#include "nn/cuda/join_kernels.cu"
#include "nn/cuda/loss_kernels.cu"
#include "nn/cuda/moment_kernels.cu"
#include "nn/cuda/norm_kernels.cu"
#include "nn/cuda/norm_line_kernels.cu"
#include "nn/cuda/random_kernels.cu"
#include "nn/cuda/rows_kernels.cu"
#include "nn/cuda/update_kernels.cu"
#include "nn/cuda/window_kernels.cu"
