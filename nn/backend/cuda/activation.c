/* Activations of single elements and Rescaling: one pass over memory each way. */
#include "nn/backend/cuda/ops.h"

#include "base/status.h"

#define ROW(kind, ...) [HPCT_OP_##kind] = HPCT_CUDA_ELEMENT_##kind

static const hpct_cuda_element elements[HPCT_OP_KINDS] = {HPCT_GRAPH_ELEMENT_ROWS(ROW)};

static hpct_cuda_curve curve_of(const hpct_op *op)
{
    return (hpct_cuda_curve){.element = elements[op->spec.kind],
                             .slope = op->spec.slope,
                             .threshold = op->spec.threshold,
                             .most = op->spec.most};
}

static hpct_status forward(hpct_op *op, const hpct_op_call *call)
{
    return hpct_cuda_launched(
        hpct_cuda_launch_element(hpct_cuda_current_queue(), hpct_cuda_number_of(op), curve_of(op),
                                 hpct_cuda_dst_count(op, call->n), call->src[0], call->dst),
        op, "forward");
}

static hpct_status backward(hpct_op *op, const hpct_op_call *call)
{
    if (call->diff_src[0] == NULL)
        return HPCT_OK;
    const float *data = op->backward_reads_src ? call->src[0] : call->dst;
    return hpct_cuda_launched(hpct_cuda_launch_element_backward(
                                  hpct_cuda_current_queue(), hpct_cuda_number_of(op), curve_of(op),
                                  hpct_cuda_dst_count(op, call->n), data, call->diff_dst,
                                  hpct_cuda_adds(call, 0), call->diff_src[0]),
                              op, "backward");
}

static hpct_status rescale(const hpct_op *op, const hpct_op_call *call, const char *what,
                           float offset, const float *src, bool add, float *dst)
{
    return hpct_cuda_launched(hpct_cuda_launch_rescale(hpct_cuda_current_queue(),
                                                       hpct_cuda_number_of(op),
                                                       hpct_cuda_dst_count(op, call->n),
                                                       op->spec.scale, offset, src, add, dst),
                              op, what);
}

static hpct_status rescaling_forward(hpct_op *op, const hpct_op_call *call)
{
    return rescale(op, call, "forward", op->spec.offset, call->src[0], false, call->dst);
}

static hpct_status rescaling_backward(hpct_op *op, const hpct_op_call *call)
{
    return call->diff_src[0] == NULL ? HPCT_OK
                                     : rescale(op, call, "backward", 0, call->diff_dst,
                                               hpct_cuda_adds(call, 0), call->diff_src[0]);
}

hpct_status hpct_cuda_make_activation(hpct_op **out, const hpct_op_spec *spec,
                                      const hpct_op_build *build)
{
    static const hpct_op_class element = {
        .forward = forward, .backward = backward, .destroy = hpct_op_free};
    static const hpct_op_class rescaling = {
        .forward = rescaling_forward, .backward = rescaling_backward, .destroy = hpct_op_free};
    bool rescales = spec->kind == HPCT_OP_RESCALING;
    return hpct_cuda_new_op(out, rescales ? &rescaling : &element, spec, build);
}
