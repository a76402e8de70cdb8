/* nn/backend/cuda/ops.h - operations with own kernels: their forward and backward, in C++ with the
 * kernels (.cu), and what they share. */
#ifndef HPCT_NN_BACKEND_CUDA_OPS_H
#define HPCT_NN_BACKEND_CUDA_OPS_H

#include "nn/backend/cuda/cuda.h"
#include "nn/backend/cuda/kernels.h"

/* HPCT_OK, or the launch error with the operation's kind. */
hpct_status hpct_cuda_launched(cudaError_t error, const hpct_op *op, const char *what);

static inline size_t hpct_cuda_dst_count(const hpct_op *op, int n)
{
    return (size_t) n * hpct_op_dst_floats(&op->spec);
}

static inline bool hpct_cuda_adds(const hpct_op_call *call, int input)
{
    return call->add != NULL && call->add[input];
}

static inline float *hpct_cuda_norm_param(const hpct_op *op, float *const *params,
                                          hpct_graph_norm_param which)
{
    int index = hpct_op_norm_param(&op->spec, which);
    return index < 0 ? NULL : params[index];
}

/* What random operations draw from. */
typedef struct hpct_cuda_drawing {
    uint64_t seed;
    uint32_t tag, step, first_sample; /* tag: hpct_graph_draw_tag's */
    const hpct_cuda_moment *now;      /* if not NULL: source of seed, step and first_sample */
} hpct_cuda_drawing;

hpct_cuda_drawing hpct_cuda_drawing_of(const hpct_op *op, const hpct_op_call *call);

/* Makes an operation with own kernels, which can accumulate into diff_src. */
hpct_status hpct_cuda_make_own(hpct_op **out, const hpct_op_spec *spec, const hpct_op_build *build);

/* Their forward and backward, which is called only if a gradient is wanted, and what sets the
 * bytes of their workspace and scratch. */
typedef hpct_status hpct_cuda_pass(hpct_op *op, const hpct_op_call *call);
typedef void hpct_cuda_prepare(hpct_op *op);
hpct_cuda_pass hpct_cuda_element_forward, hpct_cuda_element_backward;
hpct_cuda_pass hpct_cuda_rescaling_forward, hpct_cuda_rescaling_backward;
hpct_cuda_pass hpct_cuda_max_pool_forward, hpct_cuda_max_pool_backward;
hpct_cuda_prepare hpct_cuda_max_pool_prepare;
hpct_cuda_pass hpct_cuda_average_pool_forward, hpct_cuda_average_pool_backward;
hpct_cuda_pass hpct_cuda_pad_forward, hpct_cuda_pad_backward;
hpct_cuda_pass hpct_cuda_softmax_forward, hpct_cuda_softmax_backward;
hpct_cuda_pass hpct_cuda_concatenate_forward, hpct_cuda_concatenate_backward;
hpct_cuda_pass hpct_cuda_permute_forward, hpct_cuda_permute_backward;
hpct_cuda_pass hpct_cuda_add_forward, hpct_cuda_add_backward;
hpct_cuda_prepare hpct_cuda_add_prepare;
hpct_cuda_pass hpct_cuda_multiply_forward, hpct_cuda_multiply_backward;
hpct_cuda_pass hpct_cuda_normalization_forward, hpct_cuda_normalization_backward;
hpct_cuda_pass hpct_cuda_prelu_forward, hpct_cuda_prelu_backward;
hpct_cuda_pass hpct_cuda_batch_norm_forward, hpct_cuda_batch_norm_backward;
hpct_cuda_prepare hpct_cuda_batch_norm_prepare;
hpct_cuda_pass hpct_cuda_group_norm_forward, hpct_cuda_group_norm_backward;
hpct_cuda_prepare hpct_cuda_group_norm_prepare;
hpct_cuda_pass hpct_cuda_dropout_forward, hpct_cuda_dropout_backward;
hpct_cuda_pass hpct_cuda_noise_forward, hpct_cuda_noise_backward;
hpct_cuda_pass hpct_cuda_crop_forward, hpct_cuda_crop_backward;
hpct_cuda_pass hpct_cuda_vary_forward;

/* Of an Add with a BATCH_NORM fused downstream. */
hpct_cuda_pass hpct_cuda_add_normed;
hpct_status hpct_cuda_add_normed_backward(hpct_op *op, const hpct_op_call *call,
                                          const hpct_cuda_join *join);

/* Plans copies of the kernel, and with `bias` of the bias, in the activations' type: offsets and
 * bytes. */
void hpct_cuda_lay_copies(hpct_op *op, bool bias);
void hpct_cuda_drop_copies(hpct_op *op);

#endif
