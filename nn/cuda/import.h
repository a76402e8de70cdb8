/* nn/cuda/import.h - kernels of Conv2D and Dense between Keras' layout on the host, [in][out], and
 * the arena's, [out][in]; `in` counts all numbers that one output has. Both wait. */
#ifndef HPCT_NN_CUDA_IMPORT_H
#define HPCT_NN_CUDA_IMPORT_H

#include "nn/op.h"

/* As hpct_op_class has them, of operations with a kernel that lies so, in param_rows rows, and
 * perhaps a bias. */
hpct_status hpct_import_param(hpct_op *op, int which, const float *keras, float *arena);
hpct_status hpct_export_param(hpct_op *op, int which, const float *arena, float *keras);

#endif
