/* Conv2D fused with the BatchNormalization before it (HPCT_FUSION_CONV_NORM), in cuDNN's engines:
 *
 *   forward  applies scale, shift and ReLU to its source, and computes the moments of its result;
 *   weights  transforms its source the same way;
 *   data     ends with the ReLU's backward, and computes the sums with which the normalization's
 *            backward begins (nn/graph/op.h, norm_sums).
 *
 * The normalized images are never stored: in forward this saves a pass that writes and one that
 * reads them, in backward two that read. cuDNN has engines for all three in fp16 (precompiled ones
 * in 9.19 on an H100), with scale and shift in fp16, too. They are used if all three together were
 * measured to be faster than the separate convolution and those passes. */
#include "nn/backend/cuda/conv2d_parts.h"

#include "base/status.h"
#include "nn/backend/cuda/kernels.h"
#include "nn/backend/cuda/ops.h"
#include "nn/backend/norm_line.h"

#include <stdlib.h>

/* ---- offsets in the workspace: moments, then per-channel vectors of the source ---- */

typedef enum vector { SCALE, SHIFT, GAMMA, DIFF_BETA, DIFF_GAMMA, VECTORS } vector;

static size_t step_of(const hpct_conv *conv)
{
    return hpct_norm_line_step((size_t) conv->op.spec.window.in_c);
}

static size_t vector_at(const hpct_conv *conv, vector which) /* in floats */
{
    return hpct_norm_line_step(2 * (size_t) conv->op.spec.window.out_c) +
           (size_t) which * step_of(conv);
}

static float *vector_of(const hpct_conv *conv, const hpct_op_call *call, vector which)
{
    return (float *) call->workspace + vector_at(conv, which);
}

/* Destination of unused outputs, in scratch. */
static float *unused_of(const hpct_conv *conv, const hpct_op_call *call)
{
    return (float *) (void *) ((char *) hpct_conv_low(conv, call) + conv->low_bytes);
}

/* ---- graphs ---- */

typedef struct sizes {
    int64_t src[4], kernel[4], dst[4], in[4], out[4];
    cudnnDataType_t type;
    hpct_dnn_window window;
} sizes;

static bool find_sizes(const hpct_conv *conv, int n, sizes *s)
{
    const hpct_window *w = &conv->op.spec.window;
    *s = (sizes){.src = {n, w->in_c, w->in_h, w->in_w},
                 .kernel = {w->out_c, w->in_c, w->kernel_h, w->kernel_w},
                 .dst = {n, w->out_c, w->out_h, w->out_w},
                 .in = {1, w->in_c, 1, 1},
                 .out = {1, w->out_c, 1, 1},
                 .type = hpct_cuda_dnn_type(conv->op.build.values)};
    return hpct_conv_window(w, &s->window);
}

static int inside(hpct_dnn_graph *graph, const int64_t size[4])
{
    return hpct_dnn_tensor(graph, CUDNN_DATA_FLOAT, size, true);
}

/* The normalized src, as a virtual tensor. */
static int normalize(hpct_dnn_graph *graph, const sizes *s, int src, int scale, int shift)
{
    int scaled = inside(graph, s->src), shifted = inside(graph, s->src),
        made = inside(graph, s->src);
    hpct_dnn_multiply(graph, src, scale, scaled);
    hpct_dnn_add(graph, scaled, shift, shifted);
    hpct_dnn_relu(graph, shifted, made);
    return made;
}

/* Pointers: src, kernel, dst, scale, shift, sum, squares. */
static void describe_forward(hpct_dnn_graph *graph, const sizes *s)
{
    int src = hpct_dnn_tensor(graph, s->type, s->src, false),
        kernel = hpct_dnn_tensor(graph, s->type, s->kernel, false),
        dst = hpct_dnn_tensor(graph, s->type, s->dst, false),
        scale = hpct_dnn_tensor(graph, s->type, s->in, false),
        shift = hpct_dnn_tensor(graph, s->type, s->in, false),
        sum = hpct_dnn_tensor(graph, CUDNN_DATA_FLOAT, s->out, false),
        squares = hpct_dnn_tensor(graph, CUDNN_DATA_FLOAT, s->out, false);
    hpct_dnn_convolution(graph, HPCT_DNN_FORWARD, &s->window,
                         normalize(graph, s, src, scale, shift), kernel, dst);
    hpct_dnn_moments(graph, dst, sum, squares);
}

/* Pointers: src, gradient of the kernel, diff_dst, scale, shift. */
static void describe_weights(hpct_dnn_graph *graph, const sizes *s)
{
    int src = hpct_dnn_tensor(graph, s->type, s->src, false),
        kernel = hpct_dnn_tensor(graph, s->type, s->kernel, false),
        diff_dst = hpct_dnn_tensor(graph, s->type, s->dst, false),
        scale = hpct_dnn_tensor(graph, s->type, s->in, false),
        shift = hpct_dnn_tensor(graph, s->type, s->in, false);
    hpct_dnn_convolution(graph, HPCT_DNN_WEIGHTS, &s->window,
                         normalize(graph, s, src, scale, shift), kernel, diff_dst);
}

/* Pointers: src, kernel, diff_dst, mean, inverse, gamma, beta, diff_src, diff_gamma, diff_beta, and
 * three unused ones. */
static void describe_data(hpct_dnn_graph *graph, const sizes *s)
{
    int src = hpct_dnn_tensor(graph, s->type, s->src, false),
        kernel = hpct_dnn_tensor(graph, s->type, s->kernel, false),
        diff_dst = hpct_dnn_tensor(graph, s->type, s->dst, false), in[4], out[5];
    for (int i = 0; i < 4; i++)
        in[i] = hpct_dnn_tensor(graph, CUDNN_DATA_FLOAT, s->in, false);
    int diff_src = hpct_dnn_tensor(graph, s->type, s->src, false);
    for (int i = 0; i < 5; i++)
        out[i] = hpct_dnn_tensor(graph, CUDNN_DATA_FLOAT, s->in, false);
    int behind = inside(graph, s->src), from_mean = inside(graph, s->src),
        normal = inside(graph, s->src), scaled = inside(graph, s->src),
        shifted = inside(graph, s->src);
    hpct_dnn_convolution(graph, HPCT_DNN_DATA, &s->window, behind, kernel, diff_dst);
    hpct_dnn_subtract(graph, src, in[0], from_mean);
    hpct_dnn_multiply(graph, from_mean, in[1], normal);
    hpct_dnn_multiply(graph, normal, in[2], scaled);
    hpct_dnn_add(graph, scaled, in[3], shifted);
    hpct_dnn_relu_backward(graph, shifted, behind, diff_src);
    hpct_dnn_sum_norm(graph, src, diff_src,
                      &(hpct_dnn_norm_sums){.mean = in[0],
                                            .inverse = in[1],
                                            .gamma = in[2],
                                            .diff_gamma = out[0],
                                            .diff_beta = out[1],
                                            .unused = {out[2], out[3], out[4]}});
}

/* *out is NULL if there is no engine. */
static hpct_status find(const hpct_conv *conv, hpct_dnn_way way, int n, hpct_dnn_plan **out)
{
    static void (*const describe[])(hpct_dnn_graph *, const sizes *) = {
        [HPCT_DNN_FORWARD] = describe_forward,
        [HPCT_DNN_DATA] = describe_data,
        [HPCT_DNN_WEIGHTS] = describe_weights,
    };
    sizes s;
    hpct_dnn_graph *graph = NULL;
    *out = NULL;
    if (!find_sizes(conv, n, &s))
        return HPCT_OK;
    HPCT_TRY(hpct_dnn_graph_new(&graph));
    describe[way](graph, &s);
    return hpct_dnn_find(out, graph);
}

/* ---- measurement of the benefit ---- */

/* Seconds of all three; 0 if one is missing or was not measured. */
static hpct_status normed_seconds(const hpct_conv *conv, int n, double *seconds)
{
    hpct_status status = HPCT_OK;
    bool all = true;
    *seconds = 0;
    for (int way = 0; way < HPCT_DNN_WAYS && all && status == HPCT_OK; way++) {
        hpct_dnn_plan *plan = NULL;
        status = find(conv, (hpct_dnn_way) way, n, &plan);
        all = plan != NULL && hpct_dnn_seconds(plan) > 0;
        *seconds += all ? hpct_dnn_seconds(plan) : 0;
        hpct_dnn_plan_free(plan);
    }
    *seconds = all ? *seconds : 0;
    return status;
}

/* Whether the plans can be made, beyond times kept from earlier runs. */
static bool can_make(const hpct_conv *conv, int n)
{
    bool all = true;
    for (int way = 0; way < HPCT_DNN_WAYS && all; way++) {
        hpct_dnn_plan *plan = NULL;
        all = find(conv, (hpct_dnn_way) way, n, &plan) == HPCT_OK &&
              hpct_dnn_take(&plan) == HPCT_OK && plan != NULL;
        hpct_dnn_plan_free(plan);
    }
    return all;
}

/* Decided by the first batch size, training's: fusion applies to the whole build. */
bool hpct_cuda_takes_norm(const hpct_op_spec *spec, const hpct_op_build *build)
{
    const hpct_window *w = &spec->window;
    int n = build->batch_sizes[0];
    hpct_conv plain, normed;
    hpct_op_build without = *build;
    double with = 0, own = 0;
    if (build->values != HPCT_FP16 || !build->norm->relu || spec->relu || w->groups > 1 ||
        w->cells > 0 || w->out_c % 4 != 0 /* alignment of the second moments vector: 16 bytes */ ||
        !(spec->no_bias || build->leaves_bias))
        return false;
    without.norm = NULL;
    hpct_conv_describe(&plain, spec, &without);
    hpct_conv_describe(&normed, spec, build);
    if (normed_seconds(&normed, n, &with) != HPCT_OK || with <= 0 ||
        hpct_conv_seconds(&plain, n, &own) != HPCT_OK || own <= 0)
        return false;
    own += hpct_conv_pass_seconds(&plain, (size_t) n * hpct_op_src_floats(spec, 0), 4);
    bool all = with < own;
    for (int i = 0; i < build->num_batch_sizes && all; i++)
        all = can_make(&normed, build->batch_sizes[i]);
    return all;
}

hpct_status hpct_conv_make_normed_plans(hpct_conv *conv)
{
    hpct_op *op = &conv->op;
    hpct_conv_stage *const stages[] = {[HPCT_DNN_FORWARD] = conv->forward,
                                       [HPCT_DNN_DATA] = conv->data,
                                       [HPCT_DNN_WEIGHTS] = conv->weights};
    size_t workspace = 0;
    for (int i = 0; i < op->build.num_batch_sizes; i++) {
        conv->weights[i].low = true;
        for (int way = 0; way < HPCT_DNN_WAYS; way++) {
            hpct_dnn_plan **plan = &stages[way][i].plan;
            HPCT_TRY(find(conv, (hpct_dnn_way) way, op->build.batch_sizes[i], plan));
            HPCT_TRY(hpct_dnn_take(plan));
            if (*plan == NULL)
                return hpct_fail(HPCT_ERR_INTERNAL,
                                 "cuDNN has no engine that works out a normalization");
            hpct_conv_at_least(&workspace, hpct_dnn_workspace_bytes(*plan));
        }
    }
    op->leaves_moments = true;
    op->leaves_norm_sums = true;
    op->norm_sums[0] = vector_at(conv, DIFF_BETA) * sizeof(float);
    op->workspace_bytes = vector_at(conv, VECTORS) * sizeof(float);
    conv->low_bytes =
        hpct_conv_apart(op->param_floats[HPCT_OP_KERNEL] * hpct_cuda_value_bytes(op->build.values));
    conv->sums_bytes = hpct_conv_apart(3 * step_of(conv) * sizeof(float));
    conv->workspace = conv->low_bytes + conv->sums_bytes;
    op->scratch_bytes = conv->workspace + workspace;
    return HPCT_OK;
}

/* ---- execution ---- */

static hpct_norm_line line_of(const hpct_conv *conv, const hpct_op_call *call)
{
    return hpct_norm_line_in(call->norms[0], (size_t) conv->op.spec.window.in_c);
}

static void *changeable(const void *pointer)
{
    return (void *) (uintptr_t) pointer;
}

hpct_status hpct_conv_normed_forward(const hpct_conv *conv, const hpct_op_call *call)
{
    const hpct_op *op = &conv->op;
    float *moments = call->workspace, *scale = vector_of(conv, call, SCALE),
          *shift = vector_of(conv, call, SHIFT);
    void *const pointers[] = {changeable(call->src[0]),
                              hpct_conv_kernel(conv, call),
                              call->dst,
                              scale,
                              shift,
                              moments,
                              moments + op->spec.window.out_c};
    HPCT_TRY(hpct_cuda_launched(
        hpct_launch_norm_vectors(hpct_cuda_queue(), hpct_cuda_number_of(op), op->spec.window.in_c,
                                 line_of(conv, call), scale, shift, vector_of(conv, call, GAMMA)),
        op, "vectors"));
    return hpct_dnn_execute(conv->forward[call->batch].plan, pointers,
                            hpct_conv_workspace(conv, call));
}

hpct_status hpct_conv_normed_backward(const hpct_conv *conv, const hpct_op_call *call)
{
    hpct_norm_line line = line_of(conv, call);
    float *unused = unused_of(conv, call);
    size_t step = step_of(conv);
    void *const data[] = {changeable(call->src[0]),
                          hpct_conv_kernel(conv, call),
                          call->diff_dst,
                          changeable(line.mean),
                          changeable(line.inverse),
                          vector_of(conv, call, GAMMA),
                          changeable(line.shift),
                          call->diff_src[0],
                          vector_of(conv, call, DIFF_GAMMA),
                          vector_of(conv, call, DIFF_BETA),
                          unused,
                          unused + step,
                          unused + 2 * step};
    void *const weights[] = {changeable(call->src[0]), hpct_conv_low(conv, call), call->diff_dst,
                             vector_of(conv, call, SCALE), vector_of(conv, call, SHIFT)};
    HPCT_TRY(hpct_dnn_execute(conv->data[call->batch].plan, data, hpct_conv_workspace(conv, call)));
    HPCT_TRY(hpct_dnn_execute(conv->weights[call->batch].plan, weights,
                              hpct_conv_workspace(conv, call)));
    return hpct_conv_widen_gradient(conv, call);
}
