/* Multiply, Normalization and PReLU: numbers that elements of a sample share. */
#include "nn/backend/cuda/ops.h"

#include "base/status.h"

/* ---- Multiply ---- */

static hpct_status multiply(const hpct_op *op, const hpct_op_call *call, const char *what,
                            const float *a, const float *b, bool add, float *dst)
{
    return hpct_cuda_launched(
        hpct_cuda_launch_multiply(hpct_cuda_current_queue(), hpct_cuda_number_of(op), call->n,
                                  hpct_op_dst_floats(&op->spec), op->spec.join.size[0],
                                  op->spec.join.broadcasts, a, b, add, dst),
        op, what);
}

static hpct_status multiply_forward(hpct_op *op, const hpct_op_call *call)
{
    return multiply(op, call, "forward", call->src[0], call->src[1], false, call->dst);
}

static hpct_status multiply_backward(hpct_op *op, const hpct_op_call *call)
{
    const float *a = call->src[0], *b = call->src[1], *diff = call->diff_dst;
    if (call->diff_src[0] != NULL)
        HPCT_TRY(
            multiply(op, call, "backward", diff, b, hpct_cuda_adds(call, 0), call->diff_src[0]));
    if (call->diff_src[1] == NULL)
        return HPCT_OK;
    if (!op->spec.join.broadcasts)
        return multiply(op, call, "backward", diff, a, hpct_cuda_adds(call, 1), call->diff_src[1]);
    return hpct_cuda_launched(
        hpct_cuda_launch_multiply_sums(hpct_cuda_current_queue(), hpct_cuda_number_of(op), call->n,
                                       (size_t) op->spec.join.rows, op->spec.join.size[0], a, diff,
                                       hpct_cuda_adds(call, 1), call->diff_src[1]),
        op, "backward");
}

hpct_status hpct_cuda_make_multiply(hpct_op **out, const hpct_op_spec *spec,
                                    const hpct_op_build *build)
{
    static const hpct_op_class class = {
        .forward = multiply_forward, .backward = multiply_backward, .destroy = hpct_op_free};
    return hpct_cuda_new_op(out, &class, spec, build);
}

/* ---- Normalization ---- */

#if HPCT_CUDA_LINE_MOST < HPCT_MAX_GIVEN
#error "a kernel takes fewer numbers than a layer may have"
#endif

static hpct_status normalize(const hpct_op *op, const hpct_op_call *call, bool back,
                             const float *src, float *dst)
{
    hpct_cuda_channel_line line = {.channels = (uint32_t) op->spec.line.channels,
                                   .epsilon = HPCT_GRAPH_LINE_EPSILON};
    for (uint32_t c = 0; op->spec.line.given && c < line.channels; c++) {
        line.given_mean[c] = op->spec.line.mean[c];
        line.given_scale[c] = op->spec.line.scale[c];
        line.given_offset[c] = op->spec.line.offset[c];
    }
    if (!op->spec.line.given) {
        line.mean = call->param[HPCT_GRAPH_LINE_MEAN];
        line.variance = call->param[HPCT_GRAPH_LINE_VARIANCE];
    }
    return hpct_cuda_launched(
        hpct_cuda_launch_channel_line(hpct_cuda_current_queue(), hpct_cuda_number_of(op), call->n,
                                      hpct_op_dst_floats(&op->spec), &line, back, src,
                                      back && hpct_cuda_adds(call, 0), dst),
        op, back ? "backward" : "forward");
}

static hpct_status normalization_forward(hpct_op *op, const hpct_op_call *call)
{
    return normalize(op, call, false, call->src[0], call->dst);
}

static hpct_status normalization_backward(hpct_op *op, const hpct_op_call *call)
{
    return call->diff_src[0] == NULL ? HPCT_OK
                                     : normalize(op, call, true, call->diff_dst, call->diff_src[0]);
}

/* ---- PReLU ---- */

static hpct_status prelu_forward(hpct_op *op, const hpct_op_call *call)
{
    return hpct_cuda_launched(
        hpct_cuda_launch_slopes(hpct_cuda_current_queue(), hpct_cuda_number_of(op), call->n,
                                hpct_op_dst_floats(&op->spec), op->param_floats[0], call->param[0],
                                call->src[0], call->src[0], false, call->dst),
        op, "forward");
}

static hpct_status prelu_backward(hpct_op *op, const hpct_op_call *call)
{
    size_t period = op->param_floats[0], size = hpct_op_dst_floats(&op->spec);
    HPCT_TRY(hpct_cuda_launched(
        hpct_cuda_launch_slope_sums(hpct_cuda_current_queue(), hpct_cuda_number_of(op),
                                    (size_t) call->n * size / period, period, call->src[0],
                                    call->diff_dst, call->grad[0]),
        op, "backward"));
    if (call->diff_src[0] == NULL)
        return HPCT_OK;
    return hpct_cuda_launched(
        hpct_cuda_launch_slopes(hpct_cuda_current_queue(), hpct_cuda_number_of(op), call->n, size,
                                period, call->param[0], call->src[0], call->diff_dst,
                                hpct_cuda_adds(call, 0), call->diff_src[0]),
        op, "backward");
}

hpct_status hpct_cuda_make_line(hpct_op **out, const hpct_op_spec *spec, const hpct_op_build *build)
{
    static const hpct_op_class normalization = {.forward = normalization_forward,
                                                .backward = normalization_backward,
                                                .import_param = hpct_cuda_import,
                                                .export_param = hpct_cuda_export,
                                                .destroy = hpct_op_free};
    static const hpct_op_class prelu = {.forward = prelu_forward,
                                        .backward = prelu_backward,
                                        .import_param = hpct_cuda_import,
                                        .export_param = hpct_cuda_export,
                                        .destroy = hpct_op_free};
    bool slopes = spec->kind == HPCT_OP_PRELU;
    return hpct_cuda_new_op(out, slopes ? &prelu : &normalization, spec, build);
}
