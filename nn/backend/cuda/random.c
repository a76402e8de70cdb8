/* Dropout, GaussianNoise, Resizing, RandomCrop and RandomFlip. Backward draws the same numbers
 * again. */
#include "nn/backend/cuda/ops.h"

#include "base/status.h"
#include "nn/backend/dropout.h"
#include "nn/backend/picture.h"

/* ---- Dropout ---- */

static hpct_status drop(const hpct_op *op, const hpct_op_call *call, const char *what,
                        const float *src, bool add, float *dst)
{
    hpct_cuda_queue queue = hpct_cuda_current_queue();
    hpct_cuda_number type = hpct_cuda_number_of(op);
    hpct_graph_draw draw = hpct_op_draw(op, call);
    hpct_backend_dropout dropout = hpct_backend_dropout_make(&draw, op->spec.rate);
    size_t rows = (size_t) op->spec.dense.rows, size = (size_t) op->spec.dense.out;
    cudaError_t error;
    if (!call->training)
        error = hpct_cuda_launch_rescale(queue, type, (size_t) call->n * rows * size, 1, 0, src,
                                         add, dst);
    else if (rows > 1)
        error = hpct_cuda_launch_dropout_rows(queue, type, hpct_cuda_drawing_of(op, call),
                                              dropout.threshold, dropout.scale, call->n, rows, size,
                                              src, add, dst);
    else
        error =
            hpct_cuda_launch_dropout(queue, type, hpct_cuda_drawing_of(op, call), dropout.threshold,
                                     dropout.scale, call->n, size, src, add, dst);
    return hpct_cuda_launched(error, op, what);
}

static hpct_status dropout_forward(hpct_op *op, const hpct_op_call *call)
{
    return drop(op, call, "forward", call->src[0], false, call->dst);
}

static hpct_status dropout_backward(hpct_op *op, const hpct_op_call *call)
{
    return call->diff_src[0] == NULL ? HPCT_OK
                                     : drop(op, call, "backward", call->diff_dst,
                                            hpct_cuda_adds(call, 0), call->diff_src[0]);
}

hpct_status hpct_cuda_make_dropout(hpct_op **out, const hpct_op_spec *spec,
                                   const hpct_op_build *build)
{
    static const hpct_op_class class = {
        .forward = dropout_forward, .backward = dropout_backward, .destroy = hpct_op_free};
    return hpct_cuda_new_op(out, &class, spec, build);
}

/* ---- GaussianNoise ---- */

static hpct_status noise_forward(hpct_op *op, const hpct_op_call *call)
{
    hpct_cuda_queue queue = hpct_cuda_current_queue();
    hpct_cuda_number type = hpct_cuda_number_of(op);
    size_t size = hpct_op_dst_floats(&op->spec);
    cudaError_t error =
        call->training
            ? hpct_cuda_launch_noise(queue, type, hpct_cuda_drawing_of(op, call),
                                     (float) op->spec.rate, call->n, size, call->src[0], call->dst)
            : hpct_cuda_launch_rescale(queue, type, (size_t) call->n * size, 1, 0, call->src[0],
                                       false, call->dst);
    return hpct_cuda_launched(error, op, "forward");
}

static hpct_status noise_backward(hpct_op *op, const hpct_op_call *call)
{
    if (call->diff_src[0] == NULL || call->diff_src[0] == call->diff_dst)
        return HPCT_OK;
    return hpct_cuda_launched(
        hpct_cuda_launch_rescale(hpct_cuda_current_queue(), hpct_cuda_number_of(op),
                                 hpct_cuda_dst_count(op, call->n), 1, 0, call->diff_dst,
                                 hpct_cuda_adds(call, 0), call->diff_src[0]),
        op, "backward");
}

hpct_status hpct_cuda_make_noise(hpct_op **out, const hpct_op_spec *spec,
                                 const hpct_op_build *build)
{
    static const hpct_op_class class = {
        .forward = noise_forward, .backward = noise_backward, .destroy = hpct_op_free};
    return hpct_cuda_new_op(out, &class, spec, build);
}

/* ---- images ---- */

static bool draws(const hpct_op *op, const hpct_op_call *call)
{
    return call->training && op->spec.kind != HPCT_OP_RESIZING;
}

/* hpct_backend_box_random is random only if the input is larger in both dimensions. */
static hpct_cuda_crop crop_of(const hpct_op *op, const hpct_op_call *call)
{
    const hpct_graph_picture *p = &op->spec.picture;
    bool crops = op->spec.kind == HPCT_OP_RANDOM_CROP;
    hpct_backend_box box = crops ? hpct_backend_box_centre(p) : hpct_backend_box_whole(p);
    hpct_cuda_crop crop = {.in_h = p->in_h,
                           .in_w = p->in_w,
                           .out_h = p->out_h,
                           .out_w = p->out_w,
                           .channels = p->channels,
                           .nearest = p->nearest,
                           .top = box.top,
                           .left = box.left,
                           .height = box.height,
                           .width = box.width};
    crop.draws = crops && draws(op, call) && p->in_h > p->out_h && p->in_w > p->out_w;
    if (crop.draws) {
        crop.height = p->out_h;
        crop.width = p->out_w;
    }
    return crop;
}

/* Without randomness all samples are copied unflipped. */
static cudaError_t flip(const hpct_op *op, const hpct_op_call *call, const float *src, bool add,
                        float *dst)
{
    const hpct_graph_picture *p = &op->spec.picture;
    bool turns = draws(op, call);
    return hpct_cuda_launch_flip(
        hpct_cuda_current_queue(), hpct_cuda_number_of(op), hpct_cuda_drawing_of(op, call), call->n,
        p->in_h, p->in_w, p->channels, turns && p->horizontal, turns && p->vertical, src, add, dst);
}

static hpct_status picture_forward(hpct_op *op, const hpct_op_call *call)
{
    hpct_cuda_crop crop = crop_of(op, call);
    cudaError_t error =
        op->spec.kind == HPCT_OP_RANDOM_FLIP
            ? flip(op, call, call->src[0], false, call->dst)
            : hpct_cuda_launch_crop(hpct_cuda_current_queue(), hpct_cuda_number_of(op),
                                    hpct_cuda_drawing_of(op, call), &crop, call->n, call->src[0],
                                    call->dst);
    return hpct_cuda_launched(error, op, "forward");
}

static hpct_status picture_backward(hpct_op *op, const hpct_op_call *call)
{
    hpct_cuda_crop crop = crop_of(op, call);
    bool add = hpct_cuda_adds(call, 0);
    if (call->diff_src[0] == NULL)
        return HPCT_OK;
    cudaError_t error =
        op->spec.kind == HPCT_OP_RANDOM_FLIP
            ? flip(op, call, call->diff_dst, add, call->diff_src[0])
            : hpct_cuda_launch_crop_backward(hpct_cuda_current_queue(), hpct_cuda_number_of(op),
                                             hpct_cuda_drawing_of(op, call), &crop, call->n,
                                             call->diff_dst, add, call->diff_src[0]);
    return hpct_cuda_launched(error, op, "backward");
}

hpct_status hpct_cuda_make_picture(hpct_op **out, const hpct_op_spec *spec,
                                   const hpct_op_build *build)
{
    static const hpct_op_class class = {
        .forward = picture_forward, .backward = picture_backward, .destroy = hpct_op_free};
    return hpct_cuda_new_op(out, &class, spec, build);
}
