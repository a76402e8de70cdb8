/* nn/backend/cuda/conv2d_parts.h - shared by the files of Conv2D: conv2d.c executes it,
 * conv2d_plans.c finds cuDNN plans, conv2d_small.c has kernels for small windows. */
#ifndef HPCT_NN_BACKEND_CUDA_CONV2D_PARTS_H
#define HPCT_NN_BACKEND_CUDA_CONV2D_PARTS_H

#include "nn/backend/cuda/buffers.h"
#include "nn/backend/cuda/cuda.h"
#include "nn/backend/cuda/dnn_graph.h"

/* One direction (forward, data, weights) for one batch size. */
typedef struct hpct_cuda_conv_stage {
    hpct_dnn_plan *plan;    /* NULL: direct kernel, */
    bool small;             /* or the kernel for small windows */
    bool padded;            /* works on a copy of the image with padding included */
    bool fused;             /* forward: sum, bias and ReLU are fused */
    bool low;               /* weights: the gradient is of the activations' type */
    char why[HPCT_DNN_WHY]; /* padded, or a direct kernel */
} hpct_cuda_conv_stage;

typedef struct hpct_cuda_conv {
    hpct_op op;
    hpct_graph_window padded;                       /* window on images with padding included */
    hpct_cuda_conv_stage *forward, *data, *weights; /* by batch size */
    /* Parts of the scratch: padded image, kernel gradient in the activations' type, partial sums of
     * the bias gradient; the rest from offset `workspace`. */
    size_t picture_bytes, low_bytes, sums_bytes, workspace;
    char slow[512]; /* op.slow */
} hpct_cuda_conv;

static inline hpct_cuda_conv *hpct_cuda_conv_of(hpct_op *op)
{
    return (hpct_cuda_conv *) op;
}

static inline size_t hpct_cuda_conv_rows(const hpct_cuda_conv *conv, int n)
{
    return (size_t) n * (size_t) hpct_graph_window_cells(&conv->op.spec.window);
}

/* Whether the convolution adds a bias. */
static inline bool hpct_cuda_conv_has_bias(const hpct_cuda_conv *conv)
{
    return !conv->op.spec.no_bias && !conv->op.build.leaves_bias;
}

static inline void hpct_cuda_conv_at_least(size_t *bytes, size_t needed)
{
    if (*bytes < needed)
        *bytes = needed;
}

/* Bytes of a batch of images with padding included. */
size_t hpct_cuda_conv_padded_bytes(const hpct_cuda_conv *conv, int n);

/* In the call's scratch. */
void *hpct_cuda_conv_workspace(const hpct_cuda_conv *conv, const hpct_op_call *call);

/* Text that identifies the convolution, for keys of choices. */
void hpct_cuda_conv_say(const hpct_cuda_conv *conv, int n, char *text, size_t size);

/* Creates plans for all batch sizes, and computes the scratch and its parts. */
hpct_status hpct_cuda_conv_make_plans(hpct_cuda_conv *conv);
void hpct_cuda_conv_free_stages(hpct_cuda_conv_stage *stages, int count);

/* Minimum time of `passes` passes over `count` activations. */
double hpct_cuda_conv_pass_seconds(const hpct_cuda_conv *conv, size_t count, int passes);

/* Converts to cuDNN's window; false if impossible, as the windows do not reach the end of the
 * image. */
bool hpct_cuda_conv_window(const hpct_graph_window *window, hpct_dnn_window *out);

/* ---- what is said of the plans (conv2d_report.c) ---- */

/* Sets op.slow. Measures direct kernels. */
hpct_status hpct_cuda_conv_tell_slow(hpct_cuda_conv *conv);
void hpct_cuda_conv_tell(const hpct_op *op, int batch, char *text, size_t size);

/* ---- small windows (conv2d_small.c) ---- */

/* Selects the small-window kernels for forward, or for the whole backward, instead of the stage's
 * plan, which takes `besides` further seconds, if they are faster or there is no plan. */
hpct_status hpct_cuda_conv_take_small(const hpct_cuda_conv *conv, int n, bool backward,
                                      double besides, hpct_cuda_conv_stage *s);
hpct_status hpct_cuda_conv_small_forward(const hpct_cuda_conv *conv, const hpct_op_call *call);
hpct_status hpct_cuda_conv_small_backward(const hpct_cuda_conv *conv, const hpct_op_call *call);

#endif
