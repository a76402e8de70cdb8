/* nn/backend/cuda/update.h - conversion of an update call to the launchers' arguments. */
#ifndef HPCT_NN_BACKEND_CUDA_UPDATE_H
#define HPCT_NN_BACKEND_CUDA_UPDATE_H

#include "nn/backend/cuda/cuda.h"
#include "nn/backend/cuda/kernels.h"

/* Without `now`. */
hpct_cuda_update_args hpct_cuda_update_args_of(const hpct_backend_update_call *call);

#endif
