/* cuDNN plans for Conv2D.
 *
 * Each direction and batch size uses the first of these ways for which cuDNN has an engine: the
 * convolution itself; the convolution of a copy of the images with padding included (for paddings
 * that differ at the two ends); a direct kernel (nn/backend/cuda/direct.cu). For small windows own
 * kernels may be faster (conv2d_small.c). A fused ADD, bias and ReLU are in cuDNN's engine or in
 * own kernels after it; engines that accumulate into the source's gradient are used if their
 * measured time is below that of the separate engine plus the minimum time of the saved passes. The
 * kernel gradient is written by cuDNN in the activations' type, and then converted to fp32. */
#include "nn/backend/cuda/conv2d_parts.h"

#include "base/status.h"
#include "nn/backend/cuda/ops.h"
#include "nn/backend/cuda/window.h"
#include "nn/backend/without.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WIDEN_SECONDS 3e-6  /* minimum time to convert a gradient to fp32 */
#define LAUNCH_SECONDS 1e-6 /* minimum time of another kernel, besides its bytes */

void hpct_cuda_conv_free_stages(hpct_cuda_conv_stage *stages, int count)
{
    for (int i = 0; stages != NULL && i < count; i++)
        hpct_dnn_plan_free(stages[i].plan);
    free(stages);
}

bool hpct_cuda_conv_window(const hpct_graph_window *w, hpct_dnn_window *out)
{
    *out = (hpct_dnn_window){
        .stride = {w->stride_h, w->stride_w},
        .dilation = {w->dilation_h, w->dilation_w},
        .pad_before = {w->pad_top, w->pad_left},
        .pad_after = {hpct_cuda_window_pad_after(
                          w->in_h, w->out_h, hpct_graph_window_reach(w->kernel_h, w->dilation_h),
                          w->stride_h, w->pad_top),
                      hpct_cuda_window_pad_after(
                          w->in_w, w->out_w, hpct_graph_window_reach(w->kernel_w, w->dilation_w),
                          w->stride_w, w->pad_left)}};
    return out->pad_after[0] >= 0 && out->pad_after[1] >= 0;
}

void hpct_cuda_conv_say(const hpct_cuda_conv *conv, int n, char *text, size_t size)
{
    const hpct_graph_window *w = &conv->op.spec.window;
    snprintf(text, size,
             "%d of %dx%dx%d to %dx%dx%d, %dx%d by %d,%d apart %d,%d from %d,%d groups %d type "
             "%d%s%s",
             n, w->in_h, w->in_w, w->in_c, w->out_h, w->out_w, w->out_c, w->kernel_h, w->kernel_w,
             w->stride_h, w->stride_w, w->dilation_h, w->dilation_w, w->pad_top, w->pad_left,
             w->groups, (int) hpct_cuda_data_type(conv->op.build.values),
             hpct_cuda_conv_has_bias(conv) ? " bias" : "", conv->op.spec.relu ? " relu" : "");
}

/* Variant of the graph. */
typedef struct want {
    hpct_dnn_way way;
    const hpct_graph_window *window;
    int n;
    bool fused, added;
    cudnnDataType_t kernel; /* type of the kernel or its gradient */
} want;

/* Returns the tensor of the sum: dst, or a virtual one if operations follow. */
static int add_to(hpct_dnn_graph *graph, int src, int other, bool goes_on, const int64_t size[4],
                  int dst)
{
    int sum = goes_on ? hpct_dnn_tensor(graph, CUDNN_DATA_FLOAT, size, true) : dst;
    hpct_dnn_add(graph, src, other, sum);
    return sum;
}

/* *out is NULL if there is no engine. */
static hpct_status find_plan(const hpct_cuda_conv *conv, const want *what, hpct_dnn_plan **out,
                             char why[HPCT_DNN_WHY])
{
    const hpct_graph_window *w = what->window;
    cudnnDataType_t type = hpct_cuda_dnn_type(conv->op.build.values);
    int64_t src_size[] = {what->n, w->in_c, w->in_h, w->in_w},
            kernel_size[] = {w->out_c, w->in_c / w->groups, w->kernel_h, w->kernel_w},
            dst_size[] = {what->n, w->out_c, w->out_h, w->out_w}, bias_size[] = {1, w->out_c, 1, 1};
    bool bias = what->fused && hpct_cuda_conv_has_bias(conv),
         sum = what->fused && conv->op.build.adds,
         relu = what->fused && (conv->op.spec.relu || conv->op.build.adds_relu);
    hpct_dnn_window window;
    hpct_dnn_graph *graph = NULL;
    *out = NULL;
    if (!hpct_cuda_conv_window(w, &window)) {
        snprintf(why, HPCT_DNN_WHY, "its windows do not reach the end of the picture");
        return HPCT_OK;
    }
    HPCT_TRY(hpct_dnn_graph_new(&graph));
    int src = hpct_dnn_tensor(graph, type, src_size, false),
        kernel = hpct_dnn_tensor(graph, what->kernel, kernel_size, false),
        dst = hpct_dnn_tensor(graph, type, dst_size, false), at = dst;
    if (sum || bias || relu)
        at = hpct_dnn_tensor(graph, CUDNN_DATA_FLOAT, dst_size, true);
    if (what->added)
        hpct_dnn_convolution_added(graph, &window, src, kernel, dst);
    else
        hpct_dnn_convolution(graph, what->way, &window, src, kernel, at);
    if (sum) {
        int other = hpct_dnn_tensor(graph, type, dst_size, false);
        at = add_to(graph, at, other, bias || relu, dst_size, dst);
    }
    if (bias) {
        int vector = hpct_dnn_tensor(graph, type, bias_size, false);
        at = add_to(graph, at, vector, relu, dst_size, dst);
    }
    if (relu)
        hpct_dnn_relu(graph, at, dst);
    return hpct_dnn_find(out, graph, why);
}

/* The convolution itself, else with padding included in the image. */
static hpct_status find_stage(const hpct_cuda_conv *conv, hpct_dnn_way way, int n, bool fused,
                              cudnnDataType_t kernel, hpct_cuda_conv_stage *s)
{
    want what = {
        .way = way, .window = &conv->op.spec.window, .n = n, .fused = fused, .kernel = kernel};
    *s = (hpct_cuda_conv_stage){.fused = fused};
    hpct_status status = find_plan(conv, &what, &s->plan, s->why);
    bool larger = conv->padded.in_h > what.window->in_h || conv->padded.in_w > what.window->in_w;
    if (status != HPCT_OK || s->plan != NULL || !larger)
        return status;
    char ignored[HPCT_DNN_WHY]; /* the first reason is the one */
    what.window = &conv->padded;
    s->padded = true;
    return find_plan(conv, &what, &s->plan, ignored);
}

/* Replaces *s by *other if that is faster although it takes `besides` further seconds; frees the
 * other plan. */
static void take_faster(hpct_cuda_conv_stage *s, hpct_cuda_conv_stage *other, double besides)
{
    double seconds = other->plan != NULL ? hpct_dnn_seconds(other->plan) : 0;
    bool better =
        other->plan != NULL && (s->plan == NULL || /* else both must be measured */
                                (seconds > 0 && seconds + besides < hpct_dnn_seconds(s->plan)));
    hpct_dnn_plan_free(better ? s->plan : other->plan);
    if (better)
        *s = *other;
}

double hpct_cuda_conv_pass_seconds(const hpct_cuda_conv *conv, size_t count, int passes)
{
    return passes * (double) (count * hpct_backend_precision_bytes(conv->op.build.values)) /
           hpct_cuda_gpu.bytes_per_second;
}

/* Time of passes over the result. */
static double pass_seconds(const hpct_cuda_conv *conv, int n, int passes)
{
    return hpct_cuda_conv_pass_seconds(conv, hpct_cuda_dst_count(&conv->op, n), passes);
}

/* With ADD, bias and ReLU in the engine, or in own kernels if that is faster. */
static hpct_status find_forward(const hpct_cuda_conv *conv, int n, hpct_cuda_conv_stage *s)
{
    cudnnDataType_t type = hpct_cuda_dnn_type(conv->op.build.values);
    bool finish = hpct_cuda_conv_has_bias(conv) || conv->op.spec.relu, adds = conv->op.build.adds;
    HPCT_TRY(find_stage(conv, HPCT_DNN_FORWARD, n, true, type, s));
    if (!finish && !adds)
        return HPCT_OK;
    hpct_cuda_conv_stage plain;
    hpct_status status = find_stage(conv, HPCT_DNN_FORWARD, n, false, type, &plain);
    if (status == HPCT_OK)
        take_faster(s, &plain, pass_seconds(conv, n, (finish ? 2 : 0) + (adds ? 3 : 0)));
    return status;
}

/* With the gradient in the activations' type. */
static hpct_status find_weights(const hpct_cuda_conv *conv, int n, hpct_cuda_conv_stage *s)
{
    hpct_status status =
        find_stage(conv, HPCT_DNN_WEIGHTS, n, false, hpct_cuda_dnn_type(conv->op.build.values), s);
    s->low = s->plan != NULL && conv->op.build.values != HPCT_FP32;
    return status;
}

static hpct_status find_way(const hpct_cuda_conv *conv, hpct_dnn_way way, int n,
                            hpct_cuda_conv_stage *s)
{
    cudnnDataType_t type = hpct_cuda_dnn_type(conv->op.build.values);
    return way == HPCT_DNN_FORWARD   ? find_forward(conv, n, s)
           : way == HPCT_DNN_WEIGHTS ? find_weights(conv, n, s)
                                     : find_stage(conv, way, n, false, type, s);
}

/* Small-window kernels, if faster than the plan and its extra passes: forward, bias and ReLU after
 * the engine; backward, both before it; copies of padded images, conversion of the gradient to
 * fp32. */
static hpct_status take_small(const hpct_cuda_conv *conv, hpct_dnn_way way, int n,
                              hpct_cuda_conv_stage *s)
{
    bool bias = hpct_cuda_conv_has_bias(conv), relu = conv->op.spec.relu;
    bool backward = way == HPCT_DNN_WEIGHTS;
    int passes = backward ? relu ? 3 : bias ? 1 : 0 : !s->fused && (bias || relu) ? 2 : 0;
    int launches = backward && passes > 0 ? 2 : passes > 0 ? 1 : 0;
    if (way == HPCT_DNN_DATA)
        return HPCT_OK;
    double besides = pass_seconds(conv, n, passes) + (s->low ? WIDEN_SECONDS : 0) +
                     (launches + (s->padded ? 2 : 0)) * LAUNCH_SECONDS;
    return hpct_cuda_conv_take_small(conv, n, backward, besides, s);
}

/* Makes the stage's plan, and enlarges the scratch as needed. If an earlier run's choice cannot be
 * made any more, searches again. */
static hpct_status take_stage(hpct_cuda_conv *conv, hpct_dnn_way way, int n,
                              hpct_cuda_conv_stage *s, size_t *workspace)
{
    bool found = s->plan != NULL;
    hpct_status status = hpct_dnn_take(&s->plan);
    if (status == HPCT_OK && found && s->plan == NULL) {
        status = find_way(conv, way, n, s);
        if (status == HPCT_OK)
            status = take_small(conv, way, n, s);
        if (status == HPCT_OK)
            status = hpct_dnn_take(&s->plan);
    }
    if (status != HPCT_OK || s->plan == NULL) {
        s->padded = s->low = false; /* of the plan that there is not */
        return status;
    }
    hpct_cuda_conv_at_least(workspace, hpct_dnn_workspace_bytes(s->plan));
    if (s->padded)
        hpct_cuda_conv_at_least(&conv->picture_bytes,
                                hpct_cuda_align_up(hpct_cuda_conv_padded_bytes(conv, n)));
    if (s->low)
        hpct_cuda_conv_at_least(
            &conv->low_bytes,
            hpct_cuda_align_up(conv->op.param_floats[HPCT_OP_KERNEL] *
                               hpct_backend_precision_bytes(conv->op.build.values)));
    return HPCT_OK;
}

/* Makes plans for the i-th batch size; forward's are only found, and made later. Operations on a
 * part of the cells use own kernels. */
static hpct_status make_batch(hpct_cuda_conv *conv, int i, size_t *workspace)
{
    const hpct_op_build *build = &conv->op.build;
    const hpct_graph_window *w = &conv->op.spec.window;
    int n = build->batch_sizes[i];
    if (w->cells == 0)
        HPCT_TRY(find_way(conv, HPCT_DNN_FORWARD, n, &conv->forward[i]));
    if (w->cells == 0 && build->training && build->needs_diff_src && !conv->op.adds_diff_src)
        HPCT_TRY(find_way(conv, HPCT_DNN_DATA, n, &conv->data[i]));
    if (w->cells == 0 && build->training && !build->frozen)
        HPCT_TRY(find_way(conv, HPCT_DNN_WEIGHTS, n, &conv->weights[i]));
    HPCT_TRY(take_small(conv, HPCT_DNN_FORWARD, n, &conv->forward[i]));
    HPCT_TRY(take_small(conv, HPCT_DNN_WEIGHTS, n, &conv->weights[i]));
    if (!conv->op.adds_diff_src)
        HPCT_TRY(take_stage(conv, HPCT_DNN_DATA, n, &conv->data[i], workspace));
    HPCT_TRY(take_stage(conv, HPCT_DNN_WEIGHTS, n, &conv->weights[i], workspace));
    if (!build->training)
        return HPCT_OK;
    hpct_cuda_direct direct = hpct_cuda_window_direct(&conv->op.spec.window, n);
    if (conv->weights[i].plan == NULL && !build->frozen)
        hpct_cuda_conv_at_least(workspace, conv->weights[i].small
                                               ? hpct_cuda_small_scratch_bytes(&direct)
                                               : hpct_cuda_direct_scratch_bytes(&direct));
    if (hpct_cuda_conv_has_bias(conv))
        hpct_cuda_conv_at_least(
            &conv->sums_bytes,
            hpct_cuda_align_up(hpct_cuda_bias_scratch_bytes(
                conv->op.build.values, hpct_cuda_conv_rows(conv, n), (size_t) w->out_c)));
    return HPCT_OK;
}

/* Makes the plans of all batch sizes; *all is false if one is impossible. */
static hpct_status take_all(hpct_cuda_conv_stage *stages, int num, size_t *workspace, bool *all)
{
    size_t most = 0;
    hpct_status status = HPCT_OK;
    for (int i = 0; i < num && *all; i++) {
        status = hpct_dnn_take(&stages[i].plan);
        *all = status == HPCT_OK && stages[i].plan != NULL;
        if (*all)
            hpct_cuda_conv_at_least(&most, hpct_dnn_workspace_bytes(stages[i].plan));
    }
    if (*all)
        hpct_cuda_conv_at_least(workspace, most);
    return status;
}

/* Finds an engine that accumulates into the source's gradient. *gain: seconds saved compared with
 * one that writes separately plus a pass that adds; not positive if either was not measured. */
static hpct_status find_added(const hpct_cuda_conv *conv, int n, hpct_cuda_conv_stage *s,
                              double *gain)
{
    want what = {.way = HPCT_DNN_DATA,
                 .window = &conv->op.spec.window,
                 .n = n,
                 .added = true,
                 .kernel = hpct_cuda_dnn_type(conv->op.build.values)};
    size_t count = (size_t) n * hpct_op_src_floats(&conv->op.spec, 0);
    hpct_cuda_conv_stage apart = {0};
    *s = (hpct_cuda_conv_stage){0};
    *gain = 0;
    hpct_status status = find_plan(conv, &what, &s->plan, s->why);
    if (status == HPCT_OK && s->plan != NULL)
        status = find_way(conv, HPCT_DNN_DATA, n, &apart);
    double own = s->plan != NULL ? hpct_dnn_seconds(s->plan) : 0,
           other = apart.plan != NULL ? hpct_dnn_seconds(apart.plan) : 0;
    if (own > 0 && other > 0)
        *gain = other + hpct_cuda_conv_pass_seconds(conv, count, 3) + LAUNCH_SECONDS - own;
    hpct_dnn_plan_free(apart.plan);
    return status;
}

/* Accumulating engines for the source's gradient: for all batch sizes, or none. */
static hpct_status add_within(hpct_cuda_conv *conv, size_t *workspace)
{
    hpct_op *op = &conv->op;
    int num = op->build.num_batch_sizes;
    bool all = op->build.shares_src && op->spec.window.cells == 0 &&
               !hpct_backend_without(HPCT_BACKEND_WITHOUT_SHARED_GRADIENT);
    hpct_cuda_conv_stage *with = all ? calloc((size_t) num, sizeof *with) : NULL;
    if (all && with == NULL)
        return hpct_fail_memory((size_t) num * sizeof *with);
    hpct_status status = HPCT_OK;
    for (int i = 0; i < num && all && status == HPCT_OK; i++) {
        double own = 0;
        status = find_added(conv, op->build.batch_sizes[i], &with[i], &own);
        all = status == HPCT_OK && own > 0;
    }
    if (all)
        status = take_all(with, num, workspace, &all);
    hpct_cuda_conv_free_stages(all ? conv->data : with, num);
    conv->data = all ? with : conv->data;
    op->adds_diff_src = all;
    return status;
}

/* Own kernels read the parameters, not the copies. */
static bool reads_copies(const hpct_cuda_conv *conv)
{
    bool any = false;
    for (int i = 0; i < conv->op.build.num_batch_sizes; i++)
        any = any || conv->forward[i].plan != NULL || conv->data[i].plan != NULL;
    return any;
}

hpct_status hpct_cuda_conv_make_plans(hpct_cuda_conv *conv)
{
    hpct_op *op = &conv->op;
    size_t workspace = 0;
    HPCT_TRY(add_within(conv, &workspace));
    for (int i = 0; i < op->build.num_batch_sizes; i++)
        HPCT_TRY(make_batch(conv, i, &workspace));
    for (int i = 0; i < op->build.num_batch_sizes; i++)
        HPCT_TRY(take_stage(conv, HPCT_DNN_FORWARD, op->build.batch_sizes[i], &conv->forward[i],
                            &workspace));
    conv->workspace = conv->picture_bytes + conv->low_bytes + conv->sums_bytes;
    op->scratch_bytes = conv->workspace + workspace;
    if (!reads_copies(conv))
        hpct_cuda_drop_copies(op);
    return hpct_cuda_conv_tell_slow(conv);
}
