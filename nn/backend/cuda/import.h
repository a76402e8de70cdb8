/* nn/backend/cuda/import.h - converts kernels of Conv2D and Dense between Keras' layout on the
 * host, [in][out], and the arena's, [out][in]; `in` is the number of elements per output.
 * Synchronous. */
#ifndef HPCT_NN_BACKEND_CUDA_IMPORT_H
#define HPCT_NN_BACKEND_CUDA_IMPORT_H

#include "nn/graph/op.h"

/* As in hpct_op_class, for operations with a kernel of param_rows rows in this layout, and
 * optionally a bias. */
hpct_status hpct_cuda_import_param(hpct_op *op, int which, const float *keras, float *arena);
hpct_status hpct_cuda_export_param(hpct_op *op, int which, const float *arena, float *keras);

#endif
