/* nn/cuda/update.h - what the update's launches take of a call. */
#ifndef HPCT_NN_CUDA_UPDATE_H
#define HPCT_NN_CUDA_UPDATE_H

#include "nn/cuda/cuda.h"
#include "nn/cuda/kernels.h"

/* Without `now`. */
hpct_update_args hpct_cuda_update_args(const hpct_update_call *call);

#endif
