/* nn/cuda/import.h - kernels of Conv2D and Dense between Keras' layout on the host, [in][out], and
 * the arena's, [out][in]; `in` counts all numbers that one output has. Both wait. */
#ifndef HPCT_NN_CUDA_IMPORT_H
#define HPCT_NN_CUDA_IMPORT_H

#include <hpctrain/status.h>
#include <stddef.h>

hpct_status hpct_import_turned(size_t in, size_t out, const float *keras, float *arena);
hpct_status hpct_export_turned(size_t in, size_t out, const float *arena, float *keras);

#endif
