/* Conv2D by cuDNN. The arena keeps the kernel as cuDNN wants it for pictures with channels last,
 * [out][height][width][in / groups]; with activations in a shorter type there are copies of kernel
 * and bias in it.
 *
 * Each direction of each batch size takes the first of these ways that cuDNN has an engine for: the
 * convolution as it is; the same on a copy of the picture with its padding in it (paddings that
 * differ between the two ends); an own kernel, straight from the sum (nn/cuda/direct.h). What an
 * Add behind it adds, bias and ReLU are in cuDNN's engine or in own kernels after it, and an engine
 * that leaves moments is taken, by what each was measured to take and a pass over memory takes at
 * least. The kernel's gradient leaves cuDNN in fp32, or where that is slower in the activations'
 * type, and is then made fp32. */
#include "nn/cuda/cuda.h"

#include "base/status.h"
#include "nn/cuda/bias.h"
#include "nn/cuda/direct.h"
#include "nn/cuda/dnn_graph.h"
#include "nn/cuda/import.h"
#include "nn/cuda/ops.h"
#include "nn/cuda/window.h"

#include <stdio.h>
#include <stdlib.h>

#define APART ((size_t) 256)       /* bytes, of buffers in the scratch */
#define WIDEN_SECONDS 3e-6         /* what making a gradient fp32 takes at least */
#define PASS_BYTES_PER_SECOND 5e12 /* no GPU of today reads its memory faster */

typedef struct stage {
    hpct_dnn_plan *plan; /* NULL: the direct kernel */
    bool padded;         /* it works on a picture with the padding in it */
    bool fused;          /* forward: sum, bias and ReLU are in it */
    bool low;            /* weights: the gradient has the activations' type */
    bool moments;        /* forward: it leaves them */
} stage;

typedef struct conv_op {
    hpct_op op;
    cudaDataType_t type;             /* of the activations */
    hpct_window padded;              /* of pictures with their padding in them */
    stage *forward, *data, *weights; /* by batch size */
    /* Parts of the scratch: the padded picture, the kernel's gradient in the activations' type,
     * the sums of the bias' gradient; at `workspace` the rest. */
    size_t picture_bytes, low_bytes, sums_bytes, workspace;
    size_t bias_copy; /* where it lies in the copies */
} conv_op;

static conv_op *conv_of(hpct_op *op)
{
    return (conv_op *) op;
}

static size_t apart(size_t bytes)
{
    return (bytes + APART - 1) / APART * APART;
}

static size_t rows_of(const conv_op *conv, int n)
{
    return (size_t) n * (size_t) hpct_window_cells(&conv->op.spec.window);
}

static hpct_status named(const hpct_op *op, hpct_status status)
{
    const hpct_window *w = &op->spec.window;
    char what[160];
    if (status == HPCT_OK)
        return status;
    snprintf(what, sizeof what, "conv2d %dx%dx%d to %dx%dx%d, kernel %dx%d", w->in_h, w->in_w,
             w->in_c, w->out_h, w->out_w, w->out_c, w->kernel_h, w->kernel_w);
    return hpct_fail_within(status, what);
}

/* ---- scratch ---- */

static void *picture_of(const hpct_op_call *call)
{
    return call->scratch;
}

static void *low_of(const conv_op *conv, const hpct_op_call *call)
{
    return (char *) call->scratch + conv->picture_bytes;
}

static void *sums_of(const conv_op *conv, const hpct_op_call *call)
{
    return (char *) low_of(conv, call) + conv->low_bytes;
}

static void *workspace_of(const conv_op *conv, const hpct_op_call *call)
{
    return (char *) call->scratch + conv->workspace;
}

/* ---- padding ---- */

/* Between pictures without and with their padding. */
static hpct_status copy_pictures(const conv_op *conv, int n, const void *from, void *to, bool pad)
{
    const hpct_window *w = &conv->op.spec.window, *p = &conv->padded;
    size_t cell = hpct_cuda_value_bytes(conv->op.build.values) * (size_t) w->in_c,
           row = cell * (size_t) w->in_w, padded_row = cell * (size_t) p->in_w;
    struct cudaPitchedPtr small = {.pitch = row, .xsize = row, .ysize = (size_t) w->in_h},
                          large = {
                              .pitch = padded_row, .xsize = padded_row, .ysize = (size_t) p->in_h};
    struct cudaPos start = {0},
                   inside = {.x = cell * (size_t) w->pad_left, .y = (size_t) w->pad_top};
    struct cudaMemcpy3DParms copy = {
        .srcPos = pad ? start : inside,
        .dstPos = pad ? inside : start,
        .srcPtr = pad ? small : large,
        .dstPtr = pad ? large : small,
        .extent = {.width = row, .height = (size_t) w->in_h, .depth = (size_t) n},
        .kind = cudaMemcpyDeviceToDevice};
    copy.srcPtr.ptr = (void *) (uintptr_t) from;
    copy.dstPtr.ptr = to;
    return HPCT_CUDA(cudaMemcpy3DAsync(&copy, hpct_gpu.stream));
}

static size_t padded_bytes(const conv_op *conv, int n)
{
    const hpct_window *p = &conv->padded;
    return (size_t) n * (size_t) p->in_h * (size_t) p->in_w * (size_t) p->in_c *
           hpct_cuda_value_bytes(conv->op.build.values);
}

/* The source as the stage wants it. */
static hpct_status source_for(const conv_op *conv, const stage *s, const hpct_op_call *call,
                              void **src)
{
    *src = (void *) (uintptr_t) call->src[0];
    if (!s->padded)
        return HPCT_OK;
    *src = picture_of(call);
    hpct_status status =
        HPCT_CUDA(cudaMemsetAsync(*src, 0, padded_bytes(conv, call->n), hpct_gpu.stream));
    return status == HPCT_OK ? copy_pictures(conv, call->n, call->src[0], *src, true) : status;
}

/* ---- the step ---- */

static hpct_direct direct_of(const conv_op *conv, int n)
{
    const hpct_window *w = &conv->op.spec.window;
    return (hpct_direct){.n = n,
                         .in_h = w->in_h,
                         .in_w = w->in_w,
                         .in_c = w->in_c,
                         .out_h = w->out_h,
                         .out_w = w->out_w,
                         .out_c = w->out_c,
                         .kernel_h = w->kernel_h,
                         .kernel_w = w->kernel_w,
                         .stride_h = w->stride_h,
                         .stride_w = w->stride_w,
                         .dilation_h = w->dilation_h,
                         .dilation_w = w->dilation_w,
                         .pad_top = w->pad_top,
                         .pad_left = w->pad_left,
                         .groups = w->groups,
                         .first_cell = w->first_cell,
                         .cells = hpct_window_cells(w)};
}

/* The kernel in the activations' type. */
static void *kernel_of(const conv_op *conv, const hpct_op_call *call)
{
    return conv->type == CUDA_R_32F ? (void *) call->param[HPCT_OP_KERNEL] : call->copies;
}

static void *bias_of(const conv_op *conv, const hpct_op_call *call)
{
    return conv->type == CUDA_R_32F ? (char *) call->param[HPCT_OP_BIAS]
                                    : (char *) call->copies + conv->bias_copy;
}

static hpct_status refresh(hpct_op *op, const hpct_op_call *call)
{
    hpct_status status = hpct_cuda_to_values(op->build.values, op->param_floats[HPCT_OP_KERNEL],
                                             call->param[HPCT_OP_KERNEL], call->copies);
    if (status == HPCT_OK && !op->spec.no_bias)
        status = hpct_cuda_to_values(op->build.values, op->param_floats[HPCT_OP_BIAS],
                                     call->param[HPCT_OP_BIAS], bias_of(conv_of(op), call));
    return status;
}

/* What an Add of both would do, where no engine does it. */
static hpct_status add_other(const hpct_op *op, const hpct_op_call *call)
{
    hpct_join join = {.count = 2, .relu = op->build.adds_relu, .src = {call->dst, call->src[1]}};
    if (!op->build.adds)
        return HPCT_OK;
    return hpct_cuda_check(hpct_launch_add(hpct_cuda_queue(), hpct_cuda_number_of(op),
                                           hpct_cuda_dst_count(op, call->n), &join, call->dst),
                           "add");
}

static hpct_status forward(hpct_op *op, const hpct_op_call *call)
{
    conv_op *conv = conv_of(op);
    const stage *s = &conv->forward[call->batch];
    const float *bias = op->spec.no_bias ? NULL : call->param[HPCT_OP_BIAS];
    if (s->plan == NULL) {
        hpct_direct direct = direct_of(conv, call->n);
        hpct_status made = HPCT_CUDA(hpct_direct_forward(hpct_gpu.stream, conv->type, &direct,
                                                         call->src[0], call->param[HPCT_OP_KERNEL],
                                                         bias, op->spec.relu, call->dst));
        return named(op, made == HPCT_OK ? add_other(op, call) : made);
    }
    void *pointers[6] = {NULL, kernel_of(conv, call), call->dst};
    int num = 3;
    if (op->build.adds)
        pointers[num++] = (void *) (uintptr_t) call->src[1];
    if (bias != NULL)
        pointers[num++] = bias_of(conv, call);
    if (s->moments) { /* and then nothing is added */
        pointers[num++] = call->workspace;
        pointers[num] = (float *) call->workspace + op->spec.window.out_c;
    }
    hpct_status status = source_for(conv, s, call, &pointers[0]);
    if (status == HPCT_OK)
        status = hpct_dnn_execute(s->plan, pointers, workspace_of(conv, call));
    if (status == HPCT_OK && !s->fused)
        status = HPCT_CUDA(hpct_bias_add(hpct_gpu.stream, conv->type, rows_of(conv, call->n),
                                         (size_t) op->spec.window.out_c, bias, op->spec.relu,
                                         call->dst));
    if (status == HPCT_OK && !s->fused)
        status = add_other(op, call);
    return named(op, status);
}

static hpct_status backward_data(conv_op *conv, const hpct_op_call *call)
{
    const stage *s = &conv->data[call->batch];
    if (s->plan == NULL) {
        hpct_direct direct = direct_of(conv, call->n);
        return HPCT_CUDA(hpct_direct_data(hpct_gpu.stream, conv->type, &direct, call->diff_dst,
                                          call->param[HPCT_OP_KERNEL], call->diff_src[0]));
    }
    void *pointers[] = {s->padded ? picture_of(call) : call->diff_src[0], kernel_of(conv, call),
                        call->diff_dst};
    hpct_status status = hpct_dnn_execute(s->plan, pointers, workspace_of(conv, call));
    if (status != HPCT_OK || !s->padded)
        return status;
    return copy_pictures(conv, call->n, pointers[0], call->diff_src[0], false);
}

static hpct_status backward_weights(conv_op *conv, const hpct_op_call *call)
{
    const stage *s = &conv->weights[call->batch];
    float *grad = call->grad[HPCT_OP_KERNEL];
    if (s->plan == NULL) {
        hpct_direct direct = direct_of(conv, call->n);
        return HPCT_CUDA(hpct_direct_weights(hpct_gpu.stream, conv->type, &direct, call->src[0],
                                             call->diff_dst, grad, workspace_of(conv, call)));
    }
    void *pointers[] = {NULL, s->low ? low_of(conv, call) : grad, call->diff_dst};
    hpct_status status = source_for(conv, s, call, &pointers[0]);
    if (status == HPCT_OK)
        status = hpct_dnn_execute(s->plan, pointers, workspace_of(conv, call));
    if (status == HPCT_OK && s->low)
        status = hpct_cuda_from_values(conv->op.build.values, conv->op.param_floats[HPCT_OP_KERNEL],
                                       pointers[1], grad);
    return status;
}

static hpct_status backward(hpct_op *op, const hpct_op_call *call)
{
    conv_op *conv = conv_of(op);
    hpct_status status = HPCT_CUDA(hpct_bias_mask_and_sum(
        hpct_gpu.stream, conv->type, rows_of(conv, call->n), (size_t) op->spec.window.out_c,
        op->spec.relu ? call->dst : NULL, call->diff_dst,
        op->spec.no_bias ? NULL : call->grad[HPCT_OP_BIAS], sums_of(conv, call)));
    if (status == HPCT_OK && call->diff_src[0] != NULL)
        status = backward_data(conv, call);
    if (status == HPCT_OK)
        status = backward_weights(conv, call);
    return named(op, status);
}

/* ---- building ---- */

static void free_stages(stage *stages, int count)
{
    for (int i = 0; stages != NULL && i < count; i++)
        hpct_dnn_plan_free(stages[i].plan);
    free(stages);
}

static void destroy(hpct_op *op)
{
    conv_op *conv = conv_of(op);
    free_stages(conv->forward, op->build.num_batch_sizes);
    free_stages(conv->data, op->build.num_batch_sizes);
    free_stages(conv->weights, op->build.num_batch_sizes);
    free(conv);
}

/* What a graph is made of besides the operation. */
typedef struct want {
    hpct_dnn_way way;
    const hpct_window *window;
    int n;
    bool fused, moments;
    cudnnDataType_t kernel; /* its type */
} want;

/* Where the sum is then: in dst, or inside where something follows. */
static int add_to(hpct_dnn_graph *graph, int src, int other, bool goes_on, const int64_t size[4],
                  int dst)
{
    int sum = goes_on ? hpct_dnn_tensor(graph, CUDNN_DATA_FLOAT, size, true) : dst;
    hpct_dnn_add(graph, src, other, sum);
    return sum;
}

/* *out is NULL when there is no engine. */
static hpct_status find_plan(const conv_op *conv, const want *what, hpct_dnn_plan **out)
{
    const hpct_window *w = what->window;
    cudnnDataType_t type = hpct_cuda_dnn_type(conv->op.build.values);
    int64_t src_size[] = {what->n, w->in_c, w->in_h, w->in_w},
            kernel_size[] = {w->out_c, w->in_c / w->groups, w->kernel_h, w->kernel_w},
            dst_size[] = {what->n, w->out_c, w->out_h, w->out_w}, bias_size[] = {1, w->out_c, 1, 1};
    bool bias = what->fused && !conv->op.spec.no_bias, sum = what->fused && conv->op.build.adds,
         relu = what->fused && (conv->op.spec.relu || conv->op.build.adds_relu);
    hpct_dnn_window window = {
        .stride = {w->stride_h, w->stride_w},
        .dilation = {w->dilation_h, w->dilation_w},
        .pad_before = {w->pad_top, w->pad_left},
        .pad_after = {
            hpct_window_pad_after(w->in_h, w->out_h, hpct_window_reach(w->kernel_h, w->dilation_h),
                                  w->stride_h, w->pad_top),
            hpct_window_pad_after(w->in_w, w->out_w, hpct_window_reach(w->kernel_w, w->dilation_w),
                                  w->stride_w, w->pad_left)}};
    hpct_dnn_graph *graph = NULL;
    *out = NULL;
    if (window.pad_after[0] < 0 || window.pad_after[1] < 0)
        return HPCT_OK;
    hpct_status status = hpct_dnn_graph_new(&graph);
    if (status != HPCT_OK)
        return status;
    int src = hpct_dnn_tensor(graph, type, src_size, false),
        kernel = hpct_dnn_tensor(graph, what->kernel, kernel_size, false),
        dst = hpct_dnn_tensor(graph, type, dst_size, false), at = dst;
    if (sum || bias || relu)
        at = hpct_dnn_tensor(graph, CUDNN_DATA_FLOAT, dst_size, true);
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
    if (what->moments) {
        int first = hpct_dnn_tensor(graph, CUDNN_DATA_FLOAT, bias_size, false),
            squares = hpct_dnn_tensor(graph, CUDNN_DATA_FLOAT, bias_size, false);
        hpct_dnn_moments(graph, dst, first, squares);
    }
    return hpct_dnn_find(out, graph);
}

/* As it is, else with the padding in the picture. */
static hpct_status find_stage(const conv_op *conv, hpct_dnn_way way, int n, bool fused,
                              cudnnDataType_t kernel, stage *s)
{
    want what = {
        .way = way, .window = &conv->op.spec.window, .n = n, .fused = fused, .kernel = kernel};
    *s = (stage){.fused = fused};
    hpct_status status = find_plan(conv, &what, &s->plan);
    bool larger = conv->padded.in_h > what.window->in_h || conv->padded.in_w > what.window->in_w;
    if (status != HPCT_OK || s->plan != NULL || !larger)
        return status;
    what.window = &conv->padded;
    s->padded = true;
    return find_plan(conv, &what, &s->plan);
}

/* Takes the other stage, which costs so many seconds besides, where it is faster all the same;
 * frees what is not taken. */
static void take_faster(stage *s, stage *other, double besides)
{
    double seconds = other->plan != NULL ? hpct_dnn_seconds(other->plan) : 0;
    bool better =
        other->plan != NULL && (s->plan == NULL || /* or both were measured */
                                (seconds > 0 && seconds + besides < hpct_dnn_seconds(s->plan)));
    hpct_dnn_plan_free(better ? s->plan : other->plan);
    if (better)
        *s = *other;
}

/* Of so many passes over the result, at least. */
static double pass_seconds(const conv_op *conv, int n, int passes)
{
    size_t count = rows_of(conv, n) * (size_t) conv->op.spec.window.out_c;
    return passes * (double) (count * hpct_cuda_value_bytes(conv->op.build.values)) /
           PASS_BYTES_PER_SECOND;
}

/* With what follows in the engine, or in kernels of our own where that is faster. */
static hpct_status find_forward(const conv_op *conv, int n, stage *s)
{
    cudnnDataType_t type = hpct_cuda_dnn_type(conv->op.build.values);
    bool finish = !conv->op.spec.no_bias || conv->op.spec.relu, adds = conv->op.build.adds;
    hpct_status status = find_stage(conv, HPCT_DNN_FORWARD, n, true, type, s);
    if (status != HPCT_OK || (!finish && !adds))
        return status;
    stage plain;
    status = find_stage(conv, HPCT_DNN_FORWARD, n, false, type, &plain);
    if (status == HPCT_OK)
        take_faster(s, &plain, pass_seconds(conv, n, (finish ? 2 : 0) + (adds ? 3 : 0)));
    return status;
}

/* The gradient in fp32, or in the activations' type where that is faster. */
static hpct_status find_weights(const conv_op *conv, int n, stage *s)
{
    hpct_status status = find_stage(conv, HPCT_DNN_WEIGHTS, n, false, CUDNN_DATA_FLOAT, s);
    if (status != HPCT_OK || conv->type == CUDA_R_32F)
        return status;
    stage low;
    status = find_stage(conv, HPCT_DNN_WEIGHTS, n, false, hpct_cuda_dnn_type(conv->op.build.values),
                        &low);
    low.low = true;
    if (status == HPCT_OK)
        take_faster(s, &low, WIDEN_SECONDS);
    return status;
}

static void at_least(size_t *bytes, size_t needed)
{
    if (*bytes < needed)
        *bytes = needed;
}

static hpct_status find_way(const conv_op *conv, hpct_dnn_way way, int n, stage *s)
{
    cudnnDataType_t type = hpct_cuda_dnn_type(conv->op.build.values);
    return way == HPCT_DNN_FORWARD   ? find_forward(conv, n, s)
           : way == HPCT_DNN_WEIGHTS ? find_weights(conv, n, s)
                                     : find_stage(conv, way, n, false, type, s);
}

/* Makes the stage's plan, and grows the scratch by what it takes. What an earlier run had found and
 * cannot be made any more is looked for once more. */
static hpct_status take_stage(conv_op *conv, hpct_dnn_way way, int n, stage *s, size_t *workspace)
{
    bool found = s->plan != NULL;
    hpct_status status = hpct_dnn_take(&s->plan);
    if (status == HPCT_OK && found && s->plan == NULL) {
        status = find_way(conv, way, n, s);
        if (status == HPCT_OK)
            status = hpct_dnn_take(&s->plan);
    }
    if (status != HPCT_OK || s->plan == NULL)
        return status;
    at_least(workspace, hpct_dnn_workspace_bytes(s->plan));
    if (s->padded)
        at_least(&conv->picture_bytes, apart(padded_bytes(conv, n)));
    if (s->low)
        at_least(&conv->low_bytes, apart(conv->op.param_floats[HPCT_OP_KERNEL] *
                                         hpct_cuda_value_bytes(conv->op.build.values)));
    return HPCT_OK;
}

/* Plans for the i-th batch size; forward's are found, and taken later. A part of the cells has own
 * kernels. */
static hpct_status make_batch(conv_op *conv, int i, size_t *workspace)
{
    const hpct_op_build *build = &conv->op.build;
    const hpct_window *w = &conv->op.spec.window;
    int n = build->batch_sizes[i];
    hpct_status status = HPCT_OK;
    if (w->cells == 0)
        status = find_way(conv, HPCT_DNN_FORWARD, n, &conv->forward[i]);
    if (status == HPCT_OK && w->cells == 0 && build->training && build->needs_diff_src)
        status = find_way(conv, HPCT_DNN_DATA, n, &conv->data[i]);
    if (status == HPCT_OK && w->cells == 0 && build->training)
        status = find_way(conv, HPCT_DNN_WEIGHTS, n, &conv->weights[i]);
    if (status == HPCT_OK)
        status = take_stage(conv, HPCT_DNN_DATA, n, &conv->data[i], workspace);
    if (status == HPCT_OK)
        status = take_stage(conv, HPCT_DNN_WEIGHTS, n, &conv->weights[i], workspace);
    if (status != HPCT_OK || !build->training)
        return status;
    hpct_direct direct = direct_of(conv, n);
    if (conv->weights[i].plan == NULL)
        at_least(workspace, hpct_direct_scratch_bytes(&direct));
    if (!conv->op.spec.no_bias)
        at_least(&conv->sums_bytes,
                 apart(hpct_bias_scratch_bytes(conv->type, rows_of(conv, n), (size_t) w->out_c)));
    return status;
}

/* A plan that leaves moments, too. */
static hpct_status find_moments(const conv_op *conv, int n, stage *s)
{
    want what = {.way = HPCT_DNN_FORWARD,
                 .window = &conv->op.spec.window,
                 .n = n,
                 .fused = true,
                 .moments = true,
                 .kernel = hpct_cuda_dnn_type(conv->op.build.values)};
    *s = (stage){.fused = true, .moments = true};
    return find_plan(conv, &what, &s->plan);
}

/* All batch sizes leave moments, or none: where that takes less than another pass over the results
 * would. In 16 bits alone: of fp32 more would be lost in the difference of the two sums than there
 * is to gain. */
static hpct_status leave_moments(conv_op *conv, size_t *workspace)
{
    hpct_op *op = &conv->op;
    int num = op->build.num_batch_sizes;
    size_t most = 0;
    double gain = 0;
    bool all = op->build.moments && conv->type != CUDA_R_32F && op->spec.window.cells == 0 &&
               op->spec.window.out_c % 4 == 0; /* the second vector begins at 16 bytes */
    stage *with = all ? calloc((size_t) num, sizeof *with) : NULL;
    if (all && with == NULL)
        return hpct_fail_memory((size_t) num * sizeof *with);
    hpct_status status = HPCT_OK;
    for (int i = 0; i < num && all && status == HPCT_OK; i++) {
        int n = op->build.batch_sizes[i];
        status = find_moments(conv, n, &with[i]);
        const hpct_dnn_plan *plain = conv->forward[i].plan;
        all = with[i].plan != NULL && hpct_dnn_seconds(with[i].plan) > 0 && plain != NULL &&
              hpct_dnn_seconds(plain) > 0;
        if (!all)
            break;
        gain += hpct_dnn_seconds(plain) + pass_seconds(conv, n, 1) - hpct_dnn_seconds(with[i].plan);
    }
    for (int i = 0; i < num && all && gain > 0 && status == HPCT_OK; i++) {
        status = hpct_dnn_take(&with[i].plan);
        all = with[i].plan != NULL;
        if (all)
            at_least(&most, hpct_dnn_workspace_bytes(with[i].plan));
    }
    op->leaves_moments = all && status == HPCT_OK && gain > 0;
    free_stages(op->leaves_moments ? conv->forward : with, num);
    if (op->leaves_moments) {
        conv->forward = with;
        at_least(workspace, most);
        op->workspace_bytes = 2 * (size_t) op->spec.window.out_c * sizeof(float);
    }
    return status;
}

hpct_status hpct_cuda_make_conv2d(hpct_op **out, const hpct_op_spec *spec,
                                  const hpct_op_build *build)
{
    static const hpct_op_class class = {.forward = forward,
                                        .backward = backward,
                                        .import_param = hpct_import_param,
                                        .export_param = hpct_export_param,
                                        .destroy = destroy},
                               low_class = {.forward = forward,
                                            .backward = backward,
                                            .refresh = refresh,
                                            .import_param = hpct_import_param,
                                            .export_param = hpct_export_param,
                                            .destroy = destroy};
    static const char layout[] = "conv2d [out][height][width][in]";
    size_t num = (size_t) build->num_batch_sizes, workspace = 0;
    conv_op *conv = calloc(1, sizeof *conv);
    if (conv == NULL)
        return hpct_fail_memory(sizeof *conv);
    hpct_op *op = *out = &conv->op;
    conv->type = hpct_cuda_data_type(build->values);
    conv->padded = hpct_window_with_padding(&spec->window);
    bool low = conv->type != CUDA_R_32F;
    op->class = low ? &low_class : &class;
    op->spec = *spec;
    op->build = *build;
    op->precision = build->values;
    op->num_params = spec->no_bias ? 1 : 2;
    op->param_floats[HPCT_OP_KERNEL] = hpct_op_param_floats(spec, HPCT_OP_KERNEL);
    op->param_floats[HPCT_OP_BIAS] = (size_t) spec->window.out_c;
    op->param_rows[HPCT_OP_KERNEL] = (size_t) spec->window.out_c;
    op->param_layout[HPCT_OP_KERNEL] = hpct_hash(HPCT_HASH_START, layout, sizeof layout);
    size_t bytes = hpct_cuda_value_bytes(build->values);
    conv->bias_copy = apart(op->param_floats[HPCT_OP_KERNEL] * bytes);
    if (low)
        op->copies_bytes =
            conv->bias_copy + (spec->no_bias ? 0 : op->param_floats[HPCT_OP_BIAS] * bytes);
    op->backward_reads_src = true;
    op->backward_reads_dst = spec->relu;
    op->backward_keeps_diff_dst = !spec->relu;
    conv->forward = calloc(num, sizeof *conv->forward);
    conv->data = calloc(num, sizeof *conv->data);
    conv->weights = calloc(num, sizeof *conv->weights);
    if (conv->forward == NULL || conv->data == NULL || conv->weights == NULL)
        return hpct_fail_memory(3 * num * sizeof *conv->forward);
    hpct_status status = HPCT_OK;
    for (int i = 0; i < build->num_batch_sizes && status == HPCT_OK; i++)
        status = make_batch(conv, i, &workspace);
    if (status == HPCT_OK)
        status = leave_moments(conv, &workspace);
    for (int i = 0; i < build->num_batch_sizes && status == HPCT_OK && !op->leaves_moments; i++)
        status = take_stage(conv, HPCT_DNN_FORWARD, build->batch_sizes[i], &conv->forward[i],
                            &workspace);
    conv->workspace = conv->picture_bytes + conv->low_bytes + conv->sums_bytes;
    op->scratch_bytes = conv->workspace + workspace;
    return named(op, status);
}
