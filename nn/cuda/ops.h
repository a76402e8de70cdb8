/* nn/cuda/ops.h - what the files of operations with own kernels share: the head of an operation,
 * and nn's numbers and draws as the launchers take them. */
#ifndef HPCT_NN_CUDA_OPS_H
#define HPCT_NN_CUDA_OPS_H

#include "nn/cuda/cuda.h"
#include "nn/cuda/kernels.h"

/* HPCT_OK, or the error of a launch with the operation's kind. */
hpct_status hpct_cuda_launched(cudaError_t error, const hpct_op *op, const char *what);

static inline hpct_queue hpct_cuda_queue(void)
{
    return (hpct_queue){hpct_gpu.stream, hpct_gpu.multiprocessors};
}

static inline hpct_number hpct_cuda_number(hpct_precision values)
{
    static const hpct_number numbers[HPCT_PRECISIONS] = {[HPCT_FP32] = HPCT_NUMBER_FP32,
                                                         [HPCT_BF16] = HPCT_NUMBER_BF16,
                                                         [HPCT_FP16] = HPCT_NUMBER_FP16};
    return numbers[values];
}

/* Type and number of an operation's values. */
static inline hpct_number hpct_cuda_number_of(const hpct_op *op)
{
    return hpct_cuda_number(op->build.values);
}

static inline size_t hpct_cuda_dst_count(const hpct_op *op, int n)
{
    return (size_t) n * hpct_op_dst_floats(&op->spec);
}

static inline bool hpct_cuda_adds(const hpct_op_call *call, int input)
{
    return call->add != NULL && call->add[input];
}

/* Where backward leaves that of a parameter: one that is fused is updated itself, by the rate that
 * hpct_gpu.now has (hpct_cuda_tell_rate). */
static inline hpct_gradient hpct_cuda_gradient(const hpct_op *op, const hpct_op_call *call,
                                               int which)
{
    return op->param_fused[which] ? (hpct_gradient){call->param[which], &hpct_gpu.now->minus_rate}
                                  : (hpct_gradient){call->grad[which], NULL};
}

/* Before backward of an operation that updates parameters, in a step that is not recorded. */
hpct_status hpct_cuda_tell_rate(const hpct_op *op, const hpct_op_call *call);

hpct_loss_args hpct_cuda_loss_args(const hpct_loss_call *call);

hpct_drawing hpct_cuda_drawing(const hpct_op *op, const hpct_op_call *call);

/* An operation of that class whose parameters lie as Keras has them. Its backward leaves diff_dst
 * alone and can add to diff_src; NULL without memory. `class` may use the functions below. */
hpct_op *hpct_cuda_new_op(const hpct_op_class *class, const hpct_op_spec *spec,
                          const hpct_op_build *build);
void hpct_cuda_destroy_op(hpct_op *op);
hpct_status hpct_cuda_import(hpct_op *op, int which, const float *keras, float *arena);
hpct_status hpct_cuda_export(hpct_op *op, int which, const float *arena, float *keras);

/* Copies of the kernel, and of the bias where it is one's own, in the activations' type: says
 * where, and how many bytes. */
void hpct_cuda_lay_copies(hpct_op *op, bool bias);
void hpct_cuda_drop_copies(hpct_op *op);

/* The largest of the batch sizes that it is built for. */
int hpct_cuda_largest_batch(const hpct_op_build *build);

#endif
