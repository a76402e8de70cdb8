/* Softmax along the last axis. */
#include "nn/backend/cuda/ops.h"

#include "base/status.h"

static size_t rows_of(const hpct_op *op, int n)
{
    return (size_t) n * (size_t) op->spec.dense.rows;
}

static hpct_status forward(hpct_op *op, const hpct_op_call *call)
{
    return hpct_cuda_launched(
        hpct_cuda_launch_softmax(hpct_cuda_current_queue(), hpct_cuda_number_of(op),
                                 rows_of(op, call->n), op->spec.dense.out, call->src[0], call->dst),
        op, "forward");
}

static hpct_status backward(hpct_op *op, const hpct_op_call *call)
{
    if (call->diff_src[0] == NULL)
        return HPCT_OK;
    return hpct_cuda_launched(hpct_cuda_launch_softmax_backward(
                                  hpct_cuda_current_queue(), hpct_cuda_number_of(op),
                                  rows_of(op, call->n), op->spec.dense.out, call->dst,
                                  call->diff_dst, hpct_cuda_adds(call, 0), call->diff_src[0]),
                              op, "backward");
}

hpct_status hpct_cuda_make_softmax(hpct_op **out, const hpct_op_spec *spec,
                                   const hpct_op_build *build)
{
    static const hpct_op_class class = {
        .forward = forward, .backward = backward, .destroy = hpct_op_free};
    return hpct_cuda_new_op(out, &class, spec, build);
}
