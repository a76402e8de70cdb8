/* MaxPooling2D, AveragePooling2D and ZeroPadding2D. Max pooling saves the index of each maximum for
 * backward, one byte for usual windows. */
#include "nn/backend/cuda/ops.h"

#include "base/status.h"

static hpct_cuda_sliding sliding_of(const hpct_op_spec *spec)
{
    const hpct_graph_window *w = &spec->window;
    return (hpct_cuda_sliding){.in_h = w->in_h,
                               .in_w = w->in_w,
                               .out_h = w->out_h,
                               .out_w = w->out_w,
                               .channels = w->in_c,
                               .kernel_h = w->kernel_h,
                               .kernel_w = w->kernel_w,
                               .stride_h = w->stride_h,
                               .stride_w = w->stride_w,
                               .pad_top = w->pad_top,
                               .pad_left = w->pad_left,
                               .pad_zeros = w->pad_zeros};
}

static hpct_status forward(hpct_op *op, const hpct_op_call *call)
{
    hpct_cuda_queue queue = hpct_cuda_current_queue();
    hpct_cuda_number type = hpct_cuda_number_of(op);
    hpct_cuda_sliding w = sliding_of(&op->spec);
    const float *src = call->src[0];
    cudaError_t error =
        op->spec.kind == HPCT_OP_MAX_POOL2D
            ? hpct_cuda_launch_max_pool(queue, type, &w, call->n, src, call->dst, call->workspace)
        : op->spec.kind == HPCT_OP_AVERAGE_POOL2D
            ? hpct_cuda_launch_average_pool(queue, type, &w, call->n, src, call->dst)
            : hpct_cuda_launch_pad(queue, type, &w, call->n, src, call->dst);
    return hpct_cuda_launched(error, op, "forward");
}

static hpct_status backward(hpct_op *op, const hpct_op_call *call)
{
    hpct_cuda_queue queue = hpct_cuda_current_queue();
    hpct_cuda_number type = hpct_cuda_number_of(op);
    hpct_cuda_sliding w = sliding_of(&op->spec);
    const float *diff = call->diff_dst;
    float *out = call->diff_src[0];
    bool add = hpct_cuda_adds(call, 0);
    if (out == NULL)
        return HPCT_OK;
    cudaError_t error =
        op->spec.kind == HPCT_OP_MAX_POOL2D
            ? hpct_cuda_launch_max_pool_backward(queue, type, &w, call->n, call->workspace, diff,
                                                 add, out)
        : op->spec.kind == HPCT_OP_AVERAGE_POOL2D
            ? hpct_cuda_launch_average_pool_backward(queue, type, &w, call->n, diff, add, out)
            : hpct_cuda_launch_pad_backward(queue, type, &w, call->n, diff, add, out);
    return hpct_cuda_launched(error, op, "backward");
}

static hpct_status make(hpct_op **out, const hpct_op_spec *spec, const hpct_op_build *build)
{
    static const hpct_op_class class = {
        .forward = forward, .backward = backward, .destroy = hpct_op_free};
    return hpct_cuda_new_op(out, &class, spec, build);
}

hpct_status hpct_cuda_make_pool(hpct_op **out, const hpct_op_spec *spec, const hpct_op_build *build)
{
    hpct_status status = make(out, spec, build);
    hpct_cuda_sliding w = sliding_of(spec);
    if (status == HPCT_OK && spec->kind == HPCT_OP_MAX_POOL2D)
        (*out)->workspace_bytes = (size_t) hpct_op_largest_batch(build) * hpct_op_dst_floats(spec) *
                                  hpct_cuda_max_pool_note_bytes(&w);
    return status;
}

hpct_status hpct_cuda_make_pad2d(hpct_op **out, const hpct_op_spec *spec,
                                 const hpct_op_build *build)
{
    return make(out, spec, build);
}
