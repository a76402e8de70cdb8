/* nn/cuda/bias.h - bias and ReLU at the end of convolutions and products: added forward where no
 * library fuses them, and backward the mask and the bias' gradient in one pass. Matrices are
 * [rows][columns] of `type` (CUDA_R_32F, CUDA_R_16BF, CUDA_R_16F), row-major, beginning at
 * multiples of 16 bytes; biases and their gradients fp32. Sums are in an order that depends on the
 * sizes alone. Everything is only enqueued. */
#ifndef HPCT_NN_CUDA_BIAS_H
#define HPCT_NN_CUDA_BIAS_H

#include "nn/cuda/gradient.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* dst[r][c] += bias[c] unless bias is NULL; with `relu` then the maximum of that and 0. */
cudaError_t hpct_bias_add(cudaStream_t stream, cudaDataType_t type, size_t rows, size_t columns,
                          const float *bias, bool relu, void *dst);

/* Unless dst is NULL diff[r][c] becomes 0 where dst[r][c] is not above 0; the bias' gradient is
 * then, unless nobody wants it, the sum of diff[r][c] over r. `partials`:
 * hpct_bias_scratch_bytes(type, rows, columns) of memory, 16-byte aligned, which is free again
 * after it. */
cudaError_t hpct_bias_mask_and_sum(cudaStream_t stream, cudaDataType_t type, size_t rows,
                                   size_t columns, const void *dst, void *diff, hpct_gradient bias,
                                   float *partials);
size_t hpct_bias_scratch_bytes(cudaDataType_t type, size_t rows, size_t columns);

#ifdef __cplusplus
}
#endif

#endif
