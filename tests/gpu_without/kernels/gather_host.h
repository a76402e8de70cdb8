/* tests/gpu_without/kernels/gather_host.h - what the host's input pipeline makes of a picture. */
#ifndef HPCT_TESTS_GPU_WITHOUT_KERNELS_GATHER_HOST_H
#define HPCT_TESTS_GPU_WITHOUT_KERNELS_GATHER_HOST_H

#include "nn/run/resident.h"

/* to[to_height][to_width][channels]; false when there is no memory. */
bool gather_host(const hpct_backend_pictures *pictures, hpct_drawn drawn, float *to);

#endif
