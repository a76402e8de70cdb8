/* nn/cuda/which.h - which of the devices that CUDA shows is this process's own. Knows no CUDA. */
#ifndef HPCT_NN_CUDA_WHICH_H
#define HPCT_NN_CUDA_WHICH_H

#include <hpctrain/status.h>

/* *device: CUDA's number of it, below `count`, the devices there are. own: HPC_TRAIN_GPU, one entry
 * of `visible`, CUDA_VISIBLE_DEVICES, or a number where that is not set; either may be NULL.
 * HPCT_ERR_CONFIG when it is none of them. */
hpct_status hpct_cuda_which(const char *own, const char *visible, int count, int *device);

#endif
