/* nn/backend/cuda/bias.h - bias and ReLU after convolutions and products: in forward, if no library
 * fuses them; in backward, the mask and the bias gradient in one pass. Matrices are [rows][columns]
 * of `type` (CUDA_R_32F, CUDA_R_16BF, CUDA_R_16F), row-major, 16-byte aligned; biases and their
 * gradients fp32. The order of sums depends on the sizes only. Asynchronous. */
#ifndef HPCT_NN_BACKEND_CUDA_BIAS_H
#define HPCT_NN_BACKEND_CUDA_BIAS_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* dst[r][c] += bias[c] unless bias is NULL; then, with `relu`, dst = max(0, dst). */
cudaError_t hpct_cuda_bias_add(cudaStream_t stream, cudaDataType_t type, size_t rows,
                               size_t columns, const float *bias, bool relu, void *dst);

/* Unless dst is NULL, sets diff[r][c] to 0 where dst[r][c] <= 0. Then, unless bias is NULL, bias[c]
 * = sum of diff[r][c] over r. `partials`: hpct_cuda_bias_scratch_bytes(type, rows, columns) bytes
 * of scratch, 16-byte aligned. */
cudaError_t hpct_cuda_bias_mask_and_sum(cudaStream_t stream, cudaDataType_t type, size_t rows,
                                        size_t columns, const void *dst, void *diff, float *bias,
                                        float *partials);
size_t hpct_cuda_bias_scratch_bytes(cudaDataType_t type, size_t rows, size_t columns);

#ifdef __cplusplus
}
#endif

#endif
