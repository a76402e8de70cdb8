/* nn/backend/cuda/direct.h - direct convolutions, for those without a cuDNN engine and for
 * operations on a part of the output cells: any stride, dilation, padding and groups; fp32 sums in
 * an order that depends on the sizes only. Slow with many channels. Images are [n][h][w][c] of
 * `type`, parameters and their gradients fp32, kernels [out][kernel_h][kernel_w][in / groups].
 * Asynchronous. */
#ifndef HPCT_NN_BACKEND_CUDA_DIRECT_H
#define HPCT_NN_BACKEND_CUDA_DIRECT_H

#include "nn/backend/cuda/direct_shape.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

cudaError_t hpct_cuda_direct_forward(cudaStream_t stream, cudaDataType_t type,
                                     const hpct_cuda_direct *conv, const void *src,
                                     const float *kernel, const float *bias /* or NULL */,
                                     bool relu, void *dst);
cudaError_t hpct_cuda_direct_data(cudaStream_t stream, cudaDataType_t type,
                                  const hpct_cuda_direct *conv, const void *diff_dst,
                                  const float *kernel, void *diff_src);
/* `scratch`: hpct_cuda_direct_scratch_bytes(conv). */
cudaError_t hpct_cuda_direct_weights(cudaStream_t stream, cudaDataType_t type,
                                     const hpct_cuda_direct *conv, const void *src,
                                     const void *diff_dst, float *diff_kernel, float *scratch);
size_t hpct_cuda_direct_scratch_bytes(const hpct_cuda_direct *conv);

#ifdef __cplusplus
}
#endif

#endif
