/* RandomRotation, RandomZoom, RandomTranslation (RANDOM_AFFINE), RandomContrast and
 * RandomBrightness (RANDOM_TONE). */
#include "nn/backend/cuda/ops.h"

#include "base/status.h"

static cudaError_t vary(const hpct_op *op, const hpct_op_call *call)
{
    const hpct_graph_picture *p = &op->spec.picture;
    hpct_cuda_varied varied = {
        .h = p->in_h, .w = p->in_w, .channels = p->channels, .variation = p->variation};
    hpct_cuda_drawing drawing = hpct_cuda_drawing_of(op, call);
    return op->spec.kind == HPCT_OP_RANDOM_AFFINE
               ? hpct_cuda_launch_affine(hpct_cuda_current_queue(), hpct_cuda_number_of(op),
                                         drawing, &varied, call->n, call->src[0], call->dst)
               : hpct_cuda_launch_tone(hpct_cuda_current_queue(), hpct_cuda_number_of(op), drawing,
                                       &varied, call->n, call->src[0], call->dst);
}

static hpct_status forward(hpct_op *op, const hpct_op_call *call)
{
    cudaError_t error =
        call->training
            ? vary(op, call)
            : hpct_cuda_launch_rescale(hpct_cuda_current_queue(), hpct_cuda_number_of(op),
                                       hpct_cuda_dst_count(op, call->n), 1, 0, call->src[0], false,
                                       call->dst);
    return hpct_cuda_launched(error, op, "forward");
}

/* There are no weights before it. */
static hpct_status backward(hpct_op *op, const hpct_op_call *call)
{
    return call->diff_src[0] == NULL ? HPCT_OK
                                     : hpct_fail(HPCT_ERR_INTERNAL, "%s has no gradient",
                                                 hpct_op_kind_name(op->spec.kind));
}

hpct_status hpct_cuda_make_variation(hpct_op **out, const hpct_op_spec *spec,
                                     const hpct_op_build *build)
{
    static const hpct_op_class class = {
        .forward = forward, .backward = backward, .destroy = hpct_op_free};
    return hpct_cuda_new_op(out, &class, spec, build);
}
