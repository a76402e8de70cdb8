/* nn/backend/cuda/transpose.h - transposes a matrix on the host: between Keras' kernels, whose last
 * axis is the output, and those whose first axis is. */
#ifndef HPCT_NN_BACKEND_CUDA_TRANSPOSE_H
#define HPCT_NN_BACKEND_CUDA_TRANSPOSE_H

#include <stddef.h>

/* to[columns][rows] = from[rows][columns], in tiles that fit the cache. */
static inline void hpct_cuda_transpose(size_t rows, size_t columns, const float *from, float *to)
{
    enum { SIDE = 32 };
    for (size_t r = 0; r < rows; r += SIDE)
        for (size_t c = 0; c < columns; c += SIDE)
            for (size_t k = r; k < r + SIDE && k < rows; k++)
                for (size_t i = c; i < c + SIDE && i < columns; i++)
                    to[i * rows + k] = from[k * columns + i];
}

#endif
