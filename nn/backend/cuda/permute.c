/* Permute: a gather, in backward with the inverse order of axes. */
#include "nn/backend/cuda/ops.h"

#include "base/status.h"
#include "nn/backend/permute.h"

static hpct_status gather(const hpct_op *op, const hpct_op_call *call, bool back, const float *src,
                          bool add, float *dst)
{
    hpct_backend_permute permute = hpct_backend_permute_make(&op->spec, back);
    hpct_cuda_order order;
    _Static_assert(HPCT_CUDA_ORDER_AXES == HPCT_MAX_RANK, "every axis of a sample");
    for (int i = 0; i < HPCT_CUDA_ORDER_AXES; i++) {
        order.size[i] = (unsigned) permute.size[i];
        order.step[i] = permute.step[i];
    }
    return hpct_cuda_launched(
        hpct_cuda_launch_permute(hpct_cuda_current_queue(), hpct_cuda_number_of(op), &order,
                                 hpct_cuda_dst_count(op, call->n), src, add, dst),
        op, back ? "backward" : "forward");
}

static hpct_status forward(hpct_op *op, const hpct_op_call *call)
{
    return gather(op, call, false, call->src[0], false, call->dst);
}

static hpct_status backward(hpct_op *op, const hpct_op_call *call)
{
    if (call->diff_src[0] == NULL)
        return HPCT_OK;
    return gather(op, call, true, call->diff_dst, hpct_cuda_adds(call, 0), call->diff_src[0]);
}

hpct_status hpct_cuda_make_permute(hpct_op **out, const hpct_op_spec *spec,
                                   const hpct_op_build *build)
{
    static const hpct_op_class class = {
        .forward = forward, .backward = backward, .destroy = hpct_op_free};
    return hpct_cuda_new_op(out, &class, spec, build);
}
