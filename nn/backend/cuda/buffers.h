/* nn/backend/cuda/buffers.h - alignment of buffers that share an allocation. */
#ifndef HPCT_NN_BACKEND_CUDA_BUFFERS_H
#define HPCT_NN_BACKEND_CUDA_BUFFERS_H

#include <stddef.h>

#define HPCT_CUDA_ALIGNMENT ((size_t) 256) /* bytes */

static inline size_t hpct_cuda_align_up(size_t bytes)
{
    return (bytes + HPCT_CUDA_ALIGNMENT - 1) / HPCT_CUDA_ALIGNMENT * HPCT_CUDA_ALIGNMENT;
}

#endif
