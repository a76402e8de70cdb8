/* nn/backend/cuda/ops.h - shared by operations with own kernels: construction, and conversion of
 * nn's types and draws to the launchers'. */
#ifndef HPCT_NN_BACKEND_CUDA_OPS_H
#define HPCT_NN_BACKEND_CUDA_OPS_H

#include "nn/backend/cuda/cuda.h"
#include "nn/backend/cuda/kernels.h"

/* HPCT_OK, or the launch error with the operation's kind. */
hpct_status hpct_cuda_launched(cudaError_t error, const hpct_op *op, const char *what);

static inline hpct_cuda_queue hpct_cuda_current_queue(void)
{
    return (hpct_cuda_queue){hpct_cuda_gpu.stream, hpct_cuda_gpu.multiprocessors};
}

static inline hpct_cuda_number hpct_cuda_number_for(hpct_precision values)
{
    static const hpct_cuda_number numbers[HPCT_PRECISIONS] = {[HPCT_FP32] = HPCT_CUDA_NUMBER_FP32,
                                                              [HPCT_BF16] = HPCT_CUDA_NUMBER_BF16,
                                                              [HPCT_FP16] = HPCT_CUDA_NUMBER_FP16};
    return numbers[values];
}

/* Type of an operation's activations. */
static inline hpct_cuda_number hpct_cuda_number_of(const hpct_op *op)
{
    return hpct_cuda_number_for(op->build.values);
}

static inline size_t hpct_cuda_dst_count(const hpct_op *op, int n)
{
    return (size_t) n * hpct_op_dst_floats(&op->spec);
}

static inline bool hpct_cuda_adds(const hpct_op_call *call, int input)
{
    return call->add != NULL && call->add[input];
}

hpct_cuda_drawing hpct_cuda_drawing_of(const hpct_op *op, const hpct_op_call *call);

/* hpct_op_new of an operation that can accumulate into diff_src. `class` may use the functions
 * below. */
hpct_status hpct_cuda_new_op(hpct_op **out, const hpct_op_class *class, const hpct_op_spec *spec,
                             const hpct_op_build *build);
hpct_status hpct_cuda_import(hpct_op *op, int which, const float *keras, float *arena);
hpct_status hpct_cuda_export(hpct_op *op, int which, const float *arena, float *keras);

/* Plans copies of the kernel, and with `bias` of the bias, in the activations' type: offsets and
 * bytes. */
void hpct_cuda_lay_copies(hpct_op *op, bool bias);
void hpct_cuda_drop_copies(hpct_op *op);

#endif
