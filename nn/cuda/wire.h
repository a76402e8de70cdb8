/* nn/cuda/wire.h - gradients to 16 bits and back, for NCCL (agent/comm/nccl_calls.c). Launchers in
 * C: they enqueue on the stream, and return what launching said. Memory is the device's; pointers
 * are aligned as their numbers are. */
#ifndef HPCT_NN_CUDA_WIRE_H
#define HPCT_NN_CUDA_WIRE_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* dst[count] in bf16, or fp16, to the nearest, ties to even. */
cudaError_t hpct_launch_encode(cudaStream_t stream, bool fp16, size_t count, const float *src,
                               uint16_t *dst);
cudaError_t hpct_launch_decode(cudaStream_t stream, bool fp16, size_t count, const uint16_t *src,
                               float *dst);

#ifdef __cplusplus
}
#endif

#endif
