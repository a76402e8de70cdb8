/* nn/cuda/conv2d_parts.h - what the files of Conv2D share: conv2d.c makes the step, conv2d_plans.c
 * finds cuDNN's plans for it, conv2d_small.c has own kernels for those of small windows,
 * conv2d_norm.c does both where a normalization before it is worked out in the same engines. */
#ifndef HPCT_NN_CUDA_CONV2D_PARTS_H
#define HPCT_NN_CUDA_CONV2D_PARTS_H

#include "nn/cuda/cuda.h"
#include "nn/cuda/direct.h"
#include "nn/cuda/dnn_graph.h"

/* A direction for one batch size. */
typedef struct hpct_conv_stage {
    hpct_dnn_plan *plan; /* NULL: the direct kernel, */
    bool small;          /* or that of a small window */
    bool padded;         /* it works on a picture with the padding in it */
    bool fused;          /* forward: sum, bias and ReLU are in it */
    bool low;            /* weights: the gradient has the activations' type */
    bool moments;        /* forward: it leaves them */
} hpct_conv_stage;

typedef struct hpct_conv {
    hpct_op op;
    cudaDataType_t type;                       /* of the activations */
    hpct_window padded;                        /* of pictures with their padding in them */
    hpct_conv_stage *forward, *data, *weights; /* by batch size */
    /* Parts of the scratch: the padded picture, the kernel's gradient in the activations' type,
     * the sums of the bias' gradient; at `workspace` the rest. */
    size_t picture_bytes, low_bytes, sums_bytes, workspace;
} hpct_conv;

#define HPCT_CONV_APART ((size_t) 256) /* bytes, of buffers in the scratch */

static inline size_t hpct_conv_apart(size_t bytes)
{
    return (bytes + HPCT_CONV_APART - 1) / HPCT_CONV_APART * HPCT_CONV_APART;
}

static inline hpct_conv *hpct_conv_of(hpct_op *op)
{
    return (hpct_conv *) op;
}

static inline size_t hpct_conv_rows(const hpct_conv *conv, int n)
{
    return (size_t) n * (size_t) hpct_window_cells(&conv->op.spec.window);
}

/* Whether it adds a bias itself. */
static inline bool hpct_conv_has_bias(const hpct_conv *conv)
{
    return !conv->op.spec.no_bias && !conv->op.build.leaves_bias;
}

static inline void hpct_conv_at_least(size_t *bytes, size_t needed)
{
    if (*bytes < needed)
        *bytes = needed;
}

/* Bytes of a batch of its pictures with the padding in them. */
size_t hpct_conv_padded_bytes(const hpct_conv *conv, int n);

/* What of the scratch is where, in a call. */
void *hpct_conv_low(const hpct_conv *conv, const hpct_op_call *call);
void *hpct_conv_workspace(const hpct_conv *conv, const hpct_op_call *call);
/* The kernel in the activations' type. */
void *hpct_conv_kernel(const hpct_conv *conv, const hpct_op_call *call);

/* Makes the kernel's gradient, which is in hpct_conv_low, fp32, and that of a bias which has none
 * 0.
 */
hpct_status hpct_conv_widen_gradient(const hpct_conv *conv, const hpct_op_call *call);

/* What follows from spec and build alone; nothing to free but the operation. */
void hpct_conv_describe(hpct_conv *conv, const hpct_op_spec *spec, const hpct_op_build *build);

/* The convolution in words, for keys of choices. */
void hpct_conv_say(const hpct_conv *conv, int n, char *text, size_t size);

/* Plans for all batch sizes, and the sizes of the scratch and what is in it. */
hpct_status hpct_conv_make_plans(hpct_conv *conv);
void hpct_conv_free_stages(hpct_conv_stage *stages, int count);

/* Whether forward may leave moments: in 16 bits alone, as of fp32 more would be lost in the
 * difference of the two sums than there is to gain; and the second vector begins at 16 bytes. */
bool hpct_conv_may_leave_moments(const hpct_conv *conv);

/* Seconds of all three directions of a batch of n, and of passes over its result that come with
 * them, as measured; 0 where that was not possible. Nothing is taken. */
hpct_status hpct_conv_seconds(hpct_conv *conv, int n, double *seconds);
/* Of so many passes over so many activations, at least. */
double hpct_conv_pass_seconds(const hpct_conv *conv, size_t count, int passes);

/* As cuDNN has it; false where that cannot be said, since it does not reach the picture's end. */
bool hpct_conv_window(const hpct_window *window, hpct_dnn_window *out);

/* ---- small windows (conv2d_small.c) ---- */

/* Takes own kernels for forward, or for the whole of backward, in the place of the stage's plan,
 * which takes so many seconds besides, where they are faster or there is no plan. */
hpct_status hpct_conv_take_small(const hpct_conv *conv, int n, bool backward, double besides,
                                 hpct_conv_stage *s);
hpct_status hpct_conv_small_forward(const hpct_conv *conv, const hpct_op_call *call);
hpct_status hpct_conv_small_backward(const hpct_conv *conv, const hpct_op_call *call);

/* ---- with build.norm (conv2d_norm.c) ---- */

hpct_status hpct_conv_make_normed_plans(hpct_conv *conv);
hpct_status hpct_conv_normed_forward(const hpct_conv *conv, const hpct_op_call *call);
hpct_status hpct_conv_normed_backward(const hpct_conv *conv, const hpct_op_call *call);

#endif
