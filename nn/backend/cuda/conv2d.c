/* Conv2D by cuDNN. The arena has the kernel in cuDNN's layout for channels-last images,
 * [out][height][width][in / groups]; with 16-bit activations there are copies of kernel and bias in
 * that type.
 *
 * conv2d_plans.c describes the alternatives for each direction and batch size. */
#include "nn/backend/cuda/conv2d_parts.h"

#include "base/fnv.h"
#include "base/status.h"
#include "nn/backend/cuda/import.h"
#include "nn/backend/cuda/ops.h"
#include "nn/backend/cuda/window.h"

#include <stdio.h>
#include <stdlib.h>

static hpct_status named(const hpct_op *op, hpct_status status)
{
    const hpct_graph_window *w = &op->spec.window;
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

static void *low_of(const hpct_cuda_conv *conv, const hpct_op_call *call)
{
    return (char *) call->scratch + conv->picture_bytes;
}

static void *sums_of(const hpct_cuda_conv *conv, const hpct_op_call *call)
{
    return (char *) low_of(conv, call) + conv->low_bytes;
}

void *hpct_cuda_conv_workspace(const hpct_cuda_conv *conv, const hpct_op_call *call)
{
    return (char *) call->scratch + conv->workspace;
}

/* ---- padding ---- */

/* Copies images to buffers with padding, or back. */
static hpct_status copy_pictures(const hpct_cuda_conv *conv, int n, const void *from, void *to,
                                 bool pad)
{
    const hpct_graph_window *w = &conv->op.spec.window, *p = &conv->padded;
    size_t cell = hpct_backend_precision_bytes(conv->op.build.values) * (size_t) w->in_c,
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
    return HPCT_CUDA(cudaMemcpy3DAsync(&copy, hpct_cuda_gpu.stream));
}

size_t hpct_cuda_conv_padded_bytes(const hpct_cuda_conv *conv, int n)
{
    const hpct_graph_window *p = &conv->padded;
    return (size_t) n * (size_t) p->in_h * (size_t) p->in_w * (size_t) p->in_c *
           hpct_backend_precision_bytes(conv->op.build.values);
}

/* The source, copied with padding if the stage needs it. */
static hpct_status source_for(const hpct_cuda_conv *conv, const hpct_cuda_conv_stage *s,
                              const hpct_op_call *call, void **src)
{
    *src = (void *) (uintptr_t) call->src[0];
    if (!s->padded)
        return HPCT_OK;
    *src = picture_of(call);
    HPCT_TRY(HPCT_CUDA(cudaMemsetAsync(*src, 0, hpct_cuda_conv_padded_bytes(conv, call->n),
                                       hpct_cuda_gpu.stream)));
    return copy_pictures(conv, call->n, call->src[0], *src, true);
}

/* ---- execution ---- */

/* The kernel in the activations' type. */
static void *kernel_of(const hpct_cuda_conv *conv, const hpct_op_call *call)
{
    return conv->op.build.values == HPCT_FP32 ? (void *) call->param[HPCT_OP_KERNEL] : call->copies;
}

static void *bias_of(const hpct_cuda_conv *conv, const hpct_op_call *call)
{
    return conv->op.build.values == HPCT_FP32
               ? (char *) call->param[HPCT_OP_BIAS]
               : (char *) call->copies + conv->op.copy_offset[HPCT_OP_BIAS];
}

/* The fused ADD, if it is not in the engine. */
static hpct_status add_other(const hpct_op *op, const hpct_op_call *call)
{
    hpct_cuda_join join = {
        .count = 2, .relu = op->build.adds_relu, .src = {call->dst, call->src[1]}};
    if (!op->build.adds)
        return HPCT_OK;
    return hpct_cuda_check(
        hpct_cuda_launch_add(op->build.values, hpct_cuda_dst_count(op, call->n), &join, call->dst),
        "add");
}

static hpct_status forward(hpct_op *op, const hpct_op_call *call)
{
    hpct_cuda_conv *conv = hpct_cuda_conv_of(op);
    const hpct_cuda_conv_stage *s = &conv->forward[call->batch];
    const float *bias = hpct_cuda_conv_has_bias(conv) ? call->param[HPCT_OP_BIAS] : NULL;
    if (s->small)
        return named(op, hpct_cuda_conv_small_forward(conv, call));
    if (s->plan == NULL) {
        hpct_cuda_direct direct = hpct_cuda_window_direct(&conv->op.spec.window, call->n);
        hpct_status made = HPCT_CUDA(
            hpct_cuda_direct_forward(conv->op.build.values, &direct, call->src[0],
                                     call->param[HPCT_OP_KERNEL], bias, op->spec.relu, call->dst));
        return named(op, made == HPCT_OK ? add_other(op, call) : made);
    }
    void *pointers[5] = {NULL, kernel_of(conv, call), call->dst};
    int num = 3;
    if (op->build.adds)
        pointers[num++] = (void *) (uintptr_t) call->src[1];
    if (bias != NULL)
        pointers[num] = bias_of(conv, call);
    hpct_status status = source_for(conv, s, call, &pointers[0]);
    if (status == HPCT_OK)
        status = hpct_dnn_execute(s->plan, pointers, hpct_cuda_conv_workspace(conv, call));
    if (status == HPCT_OK && !s->fused)
        status = HPCT_CUDA(
            hpct_cuda_bias_add(conv->op.build.values, hpct_cuda_conv_rows(conv, call->n),
                               (size_t) op->spec.window.out_c, bias, op->spec.relu, call->dst));
    if (status == HPCT_OK && !s->fused)
        status = add_other(op, call);
    return named(op, status);
}

static hpct_status backward_data(hpct_cuda_conv *conv, const hpct_op_call *call)
{
    const hpct_cuda_conv_stage *s = &conv->data[call->batch];
    if (s->plan == NULL) {
        hpct_cuda_direct direct = hpct_cuda_window_direct(&conv->op.spec.window, call->n);
        return HPCT_CUDA(hpct_cuda_direct_data(conv->op.build.values, &direct, call->diff_dst,
                                               call->param[HPCT_OP_KERNEL], call->diff_src[0]));
    }
    void *pointers[] = {s->padded ? picture_of(call) : call->diff_src[0], kernel_of(conv, call),
                        call->diff_dst};
    /* first contribution, but the engine accumulates: zero it */
    if (conv->op.adds_diff_src && !hpct_cuda_adds(call, 0))
        HPCT_TRY(
            HPCT_CUDA(cudaMemsetAsync(call->diff_src[0], 0,
                                      (size_t) call->n * hpct_op_src_floats(&conv->op.spec, 0) *
                                          hpct_backend_precision_bytes(conv->op.build.values),
                                      hpct_cuda_gpu.stream)));
    HPCT_TRY(hpct_dnn_execute(s->plan, pointers, hpct_cuda_conv_workspace(conv, call)));
    if (!s->padded)
        return HPCT_OK;
    return copy_pictures(conv, call->n, pointers[0], call->diff_src[0], false);
}

static hpct_status widen_gradient(const hpct_cuda_conv *conv, const hpct_op_call *call)
{
    const hpct_op *op = &conv->op;
    bool zero = op->build.leaves_bias;
    return hpct_cuda_check(hpct_cuda_launch_widen(op->build.values,
                                                  op->param_floats[HPCT_OP_KERNEL],
                                                  low_of(conv, call), call->grad[HPCT_OP_KERNEL],
                                                  zero ? op->param_floats[HPCT_OP_BIAS] : 0,
                                                  zero ? call->grad[HPCT_OP_BIAS] : NULL),
                           "kernel's gradient");
}

static hpct_status backward_weights(hpct_cuda_conv *conv, const hpct_op_call *call)
{
    const hpct_cuda_conv_stage *s = &conv->weights[call->batch];
    float *grad = call->grad[HPCT_OP_KERNEL];
    if (s->plan == NULL) {
        hpct_cuda_direct direct = hpct_cuda_window_direct(&conv->op.spec.window, call->n);
        return HPCT_CUDA(hpct_cuda_direct_weights(conv->op.build.values, &direct, call->src[0],
                                                  call->diff_dst, grad,
                                                  hpct_cuda_conv_workspace(conv, call)));
    }
    void *pointers[] = {NULL, s->low ? low_of(conv, call) : grad, call->diff_dst};
    HPCT_TRY(source_for(conv, s, call, &pointers[0]));
    HPCT_TRY(hpct_dnn_execute(s->plan, pointers, hpct_cuda_conv_workspace(conv, call)));
    return s->low ? widen_gradient(conv, call) : HPCT_OK;
}

/* With the ReLU's backward. A bias left to the BATCH_NORM has gradient zero: summing it would cost
 * a pass over memory. */
static hpct_status backward_bias(const hpct_cuda_conv *conv, const hpct_op_call *call)
{
    const hpct_op *op = &conv->op;
    bool frozen = op->build.frozen, leaves = op->build.leaves_bias && !frozen;
    float *bias = op->spec.no_bias || frozen ? NULL : call->grad[HPCT_OP_BIAS];
    if (leaves && conv->weights[call->batch].low)
        return HPCT_OK; /* zeroed by widen_gradient */
    if (leaves)
        return HPCT_CUDA(cudaMemsetAsync(call->grad[HPCT_OP_BIAS], 0,
                                         op->param_floats[HPCT_OP_BIAS] * sizeof(float),
                                         hpct_cuda_gpu.stream));
    return HPCT_CUDA(hpct_cuda_bias_mask_and_sum(
        conv->op.build.values, hpct_cuda_conv_rows(conv, call->n), (size_t) op->spec.window.out_c,
        op->spec.relu ? call->dst : NULL, call->diff_dst, bias, sums_of(conv, call)));
}

static hpct_status backward(hpct_op *op, const hpct_op_call *call)
{
    hpct_cuda_conv *conv = hpct_cuda_conv_of(op);
    if (call->grad[HPCT_OP_KERNEL] == NULL && !op->build.frozen) /* nn/backend/transposed.h */
        return named(op, backward_data(conv, call));
    bool small = conv->weights[call->batch].small;
    hpct_status status = small && !op->build.leaves_bias ? HPCT_OK : backward_bias(conv, call);
    if (status == HPCT_OK && small)
        return named(op, hpct_cuda_conv_small_backward(conv, call));
    if (status == HPCT_OK && call->diff_src[0] != NULL)
        status = backward_data(conv, call);
    if (status == HPCT_OK && !op->build.frozen)
        status = backward_weights(conv, call);
    return named(op, status);
}

/* ---- creation ---- */

static void destroy(hpct_op *op)
{
    hpct_cuda_conv *conv = hpct_cuda_conv_of(op);
    hpct_cuda_conv_free_stages(conv->forward, op->build.num_batch_sizes);
    hpct_cuda_conv_free_stages(conv->data, op->build.num_batch_sizes);
    hpct_cuda_conv_free_stages(conv->weights, op->build.num_batch_sizes);
    free(conv);
}

static void describe(hpct_cuda_conv *conv, const hpct_op_spec *spec, const hpct_op_build *build)
{
    static const char layout[] = "conv2d [out][height][width][in]";
    hpct_op *op = &conv->op;
    *conv = (hpct_cuda_conv){.padded = hpct_cuda_window_with_padding(&spec->window)};
    op->spec = *spec;
    op->build = *build;
    op->precision = build->values;
    op->num_params = spec->no_bias ? 1 : 2;
    op->param_floats[HPCT_OP_KERNEL] = hpct_op_param_floats(spec, HPCT_OP_KERNEL);
    op->param_floats[HPCT_OP_BIAS] = (size_t) spec->window.out_c;
    op->param_rows[HPCT_OP_KERNEL] = (size_t) spec->window.out_c;
    op->param_layout[HPCT_OP_KERNEL] = hpct_fnv(HPCT_FNV_START, layout, sizeof layout);
    if (conv->op.build.values != HPCT_FP32)
        hpct_cuda_lay_copies(op, hpct_cuda_conv_has_bias(conv));
    op->omits_grads = true;
    op->backward_reads_src = !build->frozen;
    op->backward_reads_dst = spec->relu;
    op->backward_keeps_diff_dst = !spec->relu;
}

hpct_status hpct_cuda_make_conv2d(hpct_op **out, const hpct_op_spec *spec,
                                  const hpct_op_build *build)
{
    static const hpct_op_class class = {.forward = forward,
                                        .backward = backward,
                                        .import_param = hpct_cuda_import_param,
                                        .export_param = hpct_cuda_export_param,
                                        .destroy = destroy,
                                        .describe = hpct_cuda_conv_tell};
    size_t num = (size_t) build->num_batch_sizes;
    hpct_cuda_conv *conv = calloc(1, sizeof *conv);
    if (conv == NULL)
        return hpct_fail_memory(sizeof *conv);
    hpct_op *op = *out = &conv->op;
    describe(conv, spec, build);
    op->class = &class;
    conv->forward = calloc(num, sizeof *conv->forward);
    conv->data = calloc(num, sizeof *conv->data);
    conv->weights = calloc(num, sizeof *conv->weights);
    if (conv->forward == NULL || conv->data == NULL || conv->weights == NULL)
        return hpct_fail_memory(3 * num * sizeof *conv->forward);
    return named(op, hpct_cuda_conv_make_plans(conv));
}
