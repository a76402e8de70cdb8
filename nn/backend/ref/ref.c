/* The reference backend: kernels.h behind the backend table. Parameters have Keras' layout. */
#include "nn/backend/ref/ref.h"

#include "base/fp16.h"
#include "base/status.h"
#include "nn/backend/bf16.h"
#include "nn/backend/collective.h"
#include "nn/backend/line.h"
#include "nn/backend/ref/kernels.h"
#include "nn/backend/ref/norm.h"

#include <stdlib.h>
#include <string.h>

static size_t dst_count(const hpct_op *op, int n)
{
    return (size_t) n * hpct_op_dst_floats(&op->spec);
}

/* A fused ReLU. */
static const hpct_op_spec relu = {.kind = HPCT_OP_RELU};

void hpct_ref_finish_forward(const hpct_op *op, const hpct_op_call *call)
{
    if (op->spec.relu)
        hpct_ref_element_forward(&relu, dst_count(op, call->n), call->dst, call->dst);
}

void hpct_ref_start_backward(const hpct_op *op, const hpct_op_call *call)
{
    if (op->spec.relu)
        hpct_ref_element_backward(&relu, dst_count(op, call->n), call->dst, call->diff_dst,
                                  call->diff_dst);
}

/* The fused ADD. */
static void add_other(const hpct_op *op, const hpct_op_call *call)
{
    size_t count = dst_count(op, call->n);
    if (!op->build.adds)
        return;
    hpct_ref_add_forward(count, 2, (const float *const[]){call->dst, call->src[1]}, call->dst);
    if (op->build.adds_relu)
        hpct_ref_element_forward(&relu, count, call->dst, call->dst);
}

static hpct_status conv2d_forward(hpct_op *op, const hpct_op_call *call)
{
    hpct_ref_conv2d_forward(&op->spec.window, call->n, call->src[0], call->param[HPCT_OP_KERNEL],
                            op->build.leaves_bias ? NULL : call->param[HPCT_OP_BIAS], call->dst);
    hpct_ref_finish_forward(op, call);
    add_other(op, call);
    return HPCT_OK;
}

static hpct_status conv2d_backward(hpct_op *op, const hpct_op_call *call)
{
    hpct_ref_start_backward(op, call);
    if (!op->build.frozen)
        hpct_ref_conv2d_backward_weights(&op->spec.window, call->n, call->src[0], call->diff_dst,
                                         call->grad[HPCT_OP_KERNEL], call->grad[HPCT_OP_BIAS]);
    if (op->build.leaves_bias && !op->build.frozen)
        memset(call->grad[HPCT_OP_BIAS], 0, op->param_floats[HPCT_OP_BIAS] * sizeof(float));
    if (call->diff_src[0] != NULL)
        hpct_ref_conv2d_backward_data(&op->spec.window, call->n, call->diff_dst,
                                      call->param[HPCT_OP_KERNEL], call->diff_src[0]);
    return HPCT_OK;
}

/* The convolution's backward, and the reverse. */
static hpct_status conv2d_transpose_forward(hpct_op *op, const hpct_op_call *call)
{
    size_t count = dst_count(op, call->n), channels = (size_t) op->spec.window.in_c;
    hpct_ref_conv2d_backward_data(&op->spec.window, call->n, call->src[0],
                                  call->param[HPCT_OP_KERNEL], call->dst);
    for (size_t i = 0; i < count && !op->spec.no_bias; i++)
        call->dst[i] += call->param[HPCT_OP_BIAS][i % channels];
    return HPCT_OK;
}

static hpct_status conv2d_transpose_backward(hpct_op *op, const hpct_op_call *call)
{
    size_t count = dst_count(op, call->n), channels = (size_t) op->spec.window.in_c;
    hpct_ref_conv2d_backward_weights(&op->spec.window, call->n, call->diff_dst, call->src[0],
                                     call->grad[HPCT_OP_KERNEL], NULL);
    for (size_t c = 0; c < channels && !op->spec.no_bias; c++) {
        double sum = 0;
        for (size_t i = c; i < count; i += channels)
            sum += (double) call->diff_dst[i];
        call->grad[HPCT_OP_BIAS][c] = (float) sum;
    }
    if (call->diff_src[0] != NULL)
        hpct_ref_conv2d_forward(&op->spec.window, call->n, call->diff_dst,
                                call->param[HPCT_OP_KERNEL], NULL, call->diff_src[0]);
    return HPCT_OK;
}

static hpct_status max_pool2d_forward(hpct_op *op, const hpct_op_call *call)
{
    hpct_ref_max_pool2d_forward(&op->spec.window, call->n, call->src[0], call->dst);
    return HPCT_OK;
}

static hpct_status max_pool2d_backward(hpct_op *op, const hpct_op_call *call)
{
    if (call->diff_src[0] != NULL)
        hpct_ref_max_pool2d_backward(&op->spec.window, call->n, call->src[0], call->diff_dst,
                                     call->diff_src[0]);
    return HPCT_OK;
}

static hpct_status average_pool2d_forward(hpct_op *op, const hpct_op_call *call)
{
    hpct_ref_average_pool2d_forward(&op->spec.window, call->n, call->src[0], call->dst);
    return HPCT_OK;
}

static hpct_status average_pool2d_backward(hpct_op *op, const hpct_op_call *call)
{
    if (call->diff_src[0] != NULL)
        hpct_ref_average_pool2d_backward(&op->spec.window, call->n, call->diff_dst,
                                         call->diff_src[0]);
    return HPCT_OK;
}

static hpct_status dense_forward(hpct_op *op, const hpct_op_call *call)
{
    hpct_ref_dense_forward(call->n * op->spec.dense.rows, op->spec.dense.in, op->spec.dense.out,
                           call->src[0], call->param[HPCT_OP_KERNEL], call->param[HPCT_OP_BIAS],
                           call->dst);
    hpct_ref_finish_forward(op, call);
    return HPCT_OK;
}

static hpct_status dense_backward(hpct_op *op, const hpct_op_call *call)
{
    int rows = call->n * op->spec.dense.rows, in = op->spec.dense.in, out = op->spec.dense.out;
    hpct_ref_start_backward(op, call);
    if (!op->build.frozen)
        hpct_ref_dense_backward_weights(rows, in, out, call->src[0], call->diff_dst,
                                        call->grad[HPCT_OP_KERNEL], call->grad[HPCT_OP_BIAS]);
    if (call->diff_src[0] != NULL)
        hpct_ref_dense_backward_data(rows, in, out, call->diff_dst, call->param[HPCT_OP_KERNEL],
                                     call->diff_src[0]);
    return HPCT_OK;
}

static size_t line_size(const hpct_op *op)
{
    return (size_t) op->spec.line.rows * (size_t) op->spec.line.channels;
}

static hpct_status prelu_forward(hpct_op *op, const hpct_op_call *call)
{
    hpct_ref_prelu_forward(call->n, line_size(op), op->param_floats[0], call->src[0],
                           call->param[0], call->dst);
    return HPCT_OK;
}

static hpct_status prelu_backward(hpct_op *op, const hpct_op_call *call)
{
    hpct_ref_prelu_backward(call->n, line_size(op), op->param_floats[0], call->src[0],
                            call->param[0], call->diff_dst, call->diff_src[0], call->grad[0]);
    return HPCT_OK;
}

static hpct_status normalization_forward(hpct_op *op, const hpct_op_call *call)
{
    hpct_backend_line_fill(&op->spec, call->param, call->scratch);
    hpct_ref_normalization_forward((size_t) call->n * (size_t) op->spec.line.rows,
                                   (size_t) op->spec.line.channels, call->scratch, call->src[0],
                                   call->dst);
    return HPCT_OK;
}

static hpct_status normalization_backward(hpct_op *op, const hpct_op_call *call)
{
    hpct_backend_line_fill(&op->spec, call->param, call->scratch);
    if (call->diff_src[0] != NULL)
        hpct_ref_normalization_backward((size_t) call->n * (size_t) op->spec.line.rows,
                                        (size_t) op->spec.line.channels, call->scratch,
                                        call->diff_dst, call->diff_src[0]);
    return HPCT_OK;
}

static hpct_status element_forward(hpct_op *op, const hpct_op_call *call)
{
    hpct_ref_element_forward(&op->spec, dst_count(op, call->n), call->src[0], call->dst);
    return HPCT_OK;
}

static hpct_status element_backward(hpct_op *op, const hpct_op_call *call)
{
    if (call->diff_src[0] != NULL)
        hpct_ref_element_backward(&op->spec, dst_count(op, call->n),
                                  op->backward_reads_src ? call->src[0] : call->dst, call->diff_dst,
                                  call->diff_src[0]);
    return HPCT_OK;
}

static hpct_status softmax_forward(hpct_op *op, const hpct_op_call *call)
{
    hpct_ref_softmax_forward(call->n * op->spec.dense.rows, op->spec.dense.out, call->src[0],
                             call->dst);
    return HPCT_OK;
}

static hpct_status softmax_backward(hpct_op *op, const hpct_op_call *call)
{
    if (call->diff_src[0] != NULL)
        hpct_ref_softmax_backward(call->n * op->spec.dense.rows, op->spec.dense.out, call->dst,
                                  call->diff_dst, call->diff_src[0]);
    return HPCT_OK;
}

static void drop(const hpct_op *op, const hpct_op_call *call, const float *src, float *dst)
{
    size_t rows = (size_t) op->spec.dense.rows, size = (size_t) op->spec.dense.out;
    hpct_graph_draw draw = hpct_op_draw(op, call);
    hpct_backend_dropout dropout = hpct_backend_dropout_make(&draw, op->spec.rate);
    if (call->training)
        hpct_ref_dropout(&dropout, (int) call->first_sample, call->n, rows, size, src, dst);
    else
        memcpy(dst, src, dst_count(op, call->n) * sizeof *dst);
}

static hpct_status dropout_forward(hpct_op *op, const hpct_op_call *call)
{
    drop(op, call, call->src[0], call->dst);
    return HPCT_OK;
}

static hpct_status dropout_backward(hpct_op *op, const hpct_op_call *call)
{
    if (call->diff_src[0] != NULL)
        drop(op, call, call->diff_dst, call->diff_src[0]);
    return HPCT_OK;
}

static hpct_status gaussian_noise_forward(hpct_op *op, const hpct_op_call *call)
{
    hpct_graph_draw draw = hpct_op_draw(op, call);
    if (call->training)
        hpct_ref_gaussian_noise(&draw, op->spec.rate, (int) call->first_sample, call->n,
                                hpct_op_dst_floats(&op->spec), call->src[0], call->dst);
    else
        memcpy(call->dst, call->src[0], dst_count(op, call->n) * sizeof *call->dst);
    return HPCT_OK;
}

static hpct_status gaussian_noise_backward(hpct_op *op, const hpct_op_call *call)
{
    float *diff_src = call->diff_src[0];
    size_t count = dst_count(op, call->n);
    if (diff_src != NULL && call->add[0])
        hpct_ref_add_to(count, call->diff_dst, diff_src);
    else if (diff_src != NULL && diff_src != call->diff_dst)
        memcpy(diff_src, call->diff_dst, count * sizeof *diff_src);
    return HPCT_OK;
}

static hpct_status permute_forward(hpct_op *op, const hpct_op_call *call)
{
    hpct_backend_permute t = hpct_backend_permute_make(&op->spec, false);
    hpct_ref_permute(&t, dst_count(op, call->n), call->src[0], false, call->dst);
    return HPCT_OK;
}

static hpct_status permute_backward(hpct_op *op, const hpct_op_call *call)
{
    hpct_backend_permute t = hpct_backend_permute_make(&op->spec, true);
    if (call->diff_src[0] != NULL)
        hpct_ref_permute(&t, dst_count(op, call->n), call->diff_dst, call->add[0],
                         call->diff_src[0]);
    return HPCT_OK;
}

static hpct_status rescaling_forward(hpct_op *op, const hpct_op_call *call)
{
    hpct_ref_rescaling(dst_count(op, call->n), op->spec.scale, op->spec.offset, call->src[0],
                       call->dst);
    return HPCT_OK;
}

static hpct_status rescaling_backward(hpct_op *op, const hpct_op_call *call)
{
    if (call->diff_src[0] != NULL)
        hpct_ref_rescaling(dst_count(op, call->n), op->spec.scale, 0, call->diff_dst,
                           call->diff_src[0]);
    return HPCT_OK;
}

static hpct_backend_box box_of(const hpct_op *op, const hpct_op_call *call, int s)
{
    const hpct_graph_picture *p = &op->spec.picture;
    uint32_t words[4];
    hpct_op_draw_words(op, call, (size_t) s, words);
    return op->spec.kind == HPCT_OP_RESIZING ? hpct_backend_box_whole(p)
           : call->training                  ? hpct_backend_box_random(p, words)
                                             : hpct_backend_box_centre(p);
}

static hpct_status picture_forward(hpct_op *op, const hpct_op_call *call)
{
    size_t in = hpct_op_src_floats(&op->spec, 0), out = hpct_op_dst_floats(&op->spec);
    for (int s = 0; s < call->n; s++) {
        hpct_backend_box box = box_of(op, call, s);
        hpct_ref_resize_forward(&op->spec.picture, &box, call->src[0] + (size_t) s * in,
                                call->dst + (size_t) s * out);
    }
    return HPCT_OK;
}

/* RESIZING's alone. */
static hpct_status picture_backward(hpct_op *op, const hpct_op_call *call)
{
    size_t in = hpct_op_src_floats(&op->spec, 0), out = hpct_op_dst_floats(&op->spec);
    for (int s = 0; call->diff_src[0] != NULL && s < call->n; s++)
        hpct_ref_resize_backward(&op->spec.picture, call->diff_dst + (size_t) s * out,
                                 call->diff_src[0] + (size_t) s * in);
    return HPCT_OK;
}

/* Inference: as it is. */
static hpct_status variation_forward(hpct_op *op, const hpct_op_call *call)
{
    size_t size = hpct_op_dst_floats(&op->spec);
    for (int s = 0; s < call->n; s++) {
        const float *src = call->src[0] + (size_t) s * size;
        float *dst = call->dst + (size_t) s * size;
        uint32_t words[4];
        hpct_op_draw_words(op, call, (size_t) s, words);
        if (!call->training)
            memcpy(dst, src, size * sizeof *dst);
        else if (op->spec.kind == HPCT_OP_RANDOM_TONE)
            hpct_ref_tone(&op->spec.picture, words, src, dst);
        else
            hpct_ref_affine(&op->spec.picture, words, src, dst);
    }
    return HPCT_OK;
}

static hpct_status add_forward(hpct_op *op, const hpct_op_call *call)
{
    if (op->spec.join.count == 2 && call->norms != NULL &&
        (call->norms[0] != NULL || call->norms[1] != NULL)) {
        hpct_ref_add_with_norms(op, call);
        hpct_ref_finish_forward(op, call);
        return HPCT_OK;
    }
    hpct_ref_add_forward(dst_count(op, call->n), op->spec.join.count, call->src, call->dst);
    hpct_ref_finish_forward(op, call);
    return HPCT_OK;
}

static hpct_status add_backward(hpct_op *op, const hpct_op_call *call)
{
    size_t count = dst_count(op, call->n);
    hpct_ref_start_backward(op, call);
    for (int k = 0; k < op->spec.join.count; k++) {
        float *diff_src = call->diff_src[k];
        if (diff_src == NULL || diff_src == call->diff_dst)
            continue;
        if (call->add[k])
            hpct_ref_add_to(count, call->diff_dst, diff_src);
        else
            memcpy(diff_src, call->diff_dst, count * sizeof *diff_src);
    }
    return HPCT_OK;
}

static hpct_status multiply_forward(hpct_op *op, const hpct_op_call *call)
{
    hpct_ref_multiply_forward(&op->spec, call->n, call->src[0], call->src[1], call->dst);
    return HPCT_OK;
}

static hpct_status multiply_backward(hpct_op *op, const hpct_op_call *call)
{
    for (int k = 0; k < 2; k++) {
        if (call->diff_src[k] != NULL)
            hpct_ref_multiply_backward(&op->spec, call->n, k, call->src[1 - k], call->diff_dst,
                                       call->add[k], call->diff_src[k]);
    }
    return HPCT_OK;
}

static hpct_status concatenate_forward(hpct_op *op, const hpct_op_call *call)
{
    hpct_ref_concatenate_forward((size_t) call->n * (size_t) op->spec.join.rows,
                                 op->spec.join.count, op->spec.join.size, call->src, call->dst);
    return HPCT_OK;
}

static hpct_status concatenate_backward(hpct_op *op, const hpct_op_call *call)
{
    for (int k = 0; k < op->spec.join.count; k++) {
        if (call->diff_src[k] != NULL)
            hpct_ref_concatenate_backward((size_t) call->n * (size_t) op->spec.join.rows,
                                          op->spec.join.count, op->spec.join.size, k,
                                          call->diff_dst, call->add[k], call->diff_src[k]);
    }
    return HPCT_OK;
}

static hpct_status pad2d_forward(hpct_op *op, const hpct_op_call *call)
{
    hpct_ref_pad2d_forward(&op->spec.window, call->n, call->src[0], call->dst);
    return HPCT_OK;
}

static hpct_status pad2d_backward(hpct_op *op, const hpct_op_call *call)
{
    if (call->diff_src[0] != NULL)
        hpct_ref_pad2d_backward(&op->spec.window, call->n, call->diff_dst, call->add[0],
                                call->diff_src[0]);
    return HPCT_OK;
}

#define CLASS(kind)                                                                                \
    {                                                                                              \
        .forward = kind##_forward, .backward = kind##_backward, .destroy = hpct_op_free            \
    }
#define ELEMENT(kind, ...) [HPCT_OP_##kind] = CLASS(element)
#define VARIATION                                                                                  \
    {                                                                                              \
        .forward = variation_forward, .destroy = hpct_op_free                                      \
    }

static const hpct_op_class classes[HPCT_OP_KINDS] = {
    [HPCT_OP_CONV2D] = CLASS(conv2d),
    [HPCT_OP_MAX_POOL2D] = CLASS(max_pool2d),
    [HPCT_OP_AVERAGE_POOL2D] = CLASS(average_pool2d),
    [HPCT_OP_DENSE] = CLASS(dense),
    [HPCT_OP_SOFTMAX] = CLASS(softmax),
    [HPCT_OP_PRELU] = CLASS(prelu),
    [HPCT_OP_MULTIPLY] = CLASS(multiply),
    [HPCT_OP_NORMALIZATION] = CLASS(normalization),
    [HPCT_OP_DROPOUT] = CLASS(dropout),
    [HPCT_OP_RESCALING] = CLASS(rescaling),
    [HPCT_OP_RESIZING] = CLASS(picture),
    [HPCT_OP_RANDOM_CROP] = CLASS(picture),
    [HPCT_OP_RANDOM_FLIP] = VARIATION,
    [HPCT_OP_RANDOM_AFFINE] = VARIATION,
    [HPCT_OP_RANDOM_TONE] = VARIATION,
    [HPCT_OP_ADD] = CLASS(add),
    [HPCT_OP_CONCATENATE] = CLASS(concatenate),
    [HPCT_OP_BATCH_NORM] = CLASS(hpct_ref_normalize),
    [HPCT_OP_PAD2D] = CLASS(pad2d),
    [HPCT_OP_GROUP_NORM] = CLASS(hpct_ref_group),
    [HPCT_OP_CONV2D_TRANSPOSE] = CLASS(conv2d_transpose),
    [HPCT_OP_PERMUTE] = CLASS(permute),
    [HPCT_OP_GAUSSIAN_NOISE] = CLASS(gaussian_noise),
    HPCT_GRAPH_ELEMENT_ROWS(ELEMENT),
};

/* ---- bf16, fp16: the operands of Conv2D and Dense are rounded, the arithmetic is the same ---- */

static size_t padded(size_t floats)
{
    return (floats + 15) / 16 * 16;
}

static float *round_to(hpct_precision precision, float *to, const float *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] = precision == HPCT_BF16 ? hpct_backend_bf16_value(hpct_backend_bf16_of(from[i]))
                                       : hpct_fp16_value(hpct_fp16_of(from[i]));
    return to;
}

/* A call with rounded operands, in scratch. */
typedef struct rounded {
    hpct_op_call call;
    const float *src[2]; /* the second one is not rounded */
    float *param[2];
} rounded;

static void round_operands(const hpct_op *op, const hpct_op_call *call, bool backward, rounded *r)
{
    size_t in = (size_t) call->n * hpct_op_src_floats(&op->spec, 0),
           kernel = op->param_floats[HPCT_OP_KERNEL];
    float *scratch = call->scratch;
    r->call = *call;
    r->src[0] = round_to(op->precision, scratch, call->src[0], in);
    r->src[1] = op->build.adds ? call->src[1] : NULL;
    r->param[HPCT_OP_KERNEL] =
        round_to(op->precision, scratch + padded(in), call->param[HPCT_OP_KERNEL], kernel);
    r->param[HPCT_OP_BIAS] = op->spec.no_bias ? NULL : call->param[HPCT_OP_BIAS];
    r->call.src = r->src;
    r->call.param = r->param;
    if (backward)
        r->call.diff_dst = round_to(op->precision, scratch + padded(in) + padded(kernel),
                                    call->diff_dst, dst_count(op, call->n));
}

static hpct_status rounded_forward(hpct_op *op, const hpct_op_call *call)
{
    rounded r;
    round_operands(op, call, false, &r);
    return classes[op->spec.kind].forward(op, &r.call);
}

static hpct_status rounded_backward(hpct_op *op, const hpct_op_call *call)
{
    rounded r;
    round_operands(op, call, true, &r);
    return classes[op->spec.kind].backward(op, &r.call);
}

static void make_rounded(hpct_op *op)
{
    static const hpct_op_class class = {
        .forward = rounded_forward, .backward = rounded_backward, .destroy = hpct_op_free};
    int largest = hpct_op_largest_batch(&op->build);
    op->class = &class;
    op->precision = op->build.precision;
    op->backward_reads_src = true; /* rounded again */
    op->backward_keeps_diff_dst = true;
    op->scratch_bytes =
        sizeof(float) * (padded((size_t) largest * hpct_op_src_floats(&op->spec, 0)) +
                         padded(op->param_floats[HPCT_OP_KERNEL]) + dst_count(op, largest));
}

hpct_status hpct_ref_make_op(hpct_op **out, const hpct_op_spec *spec, const hpct_op_build *build)
{
    if (hpct_op_is_collective(spec))
        return hpct_backend_make_collective(out, spec, build);
    HPCT_TRY(hpct_op_new(out, sizeof **out, &classes[spec->kind], spec, build));
    hpct_op *op = *out;
    if (spec->kind == HPCT_OP_MAX_POOL2D) /* looks for the maxima again */
        op->backward_reads_src = true;
    if (spec->kind == HPCT_OP_NORMALIZATION)
        op->scratch_bytes = 3 * (size_t) spec->line.channels * sizeof(float);
    if (spec->kind == HPCT_OP_BATCH_NORM || spec->kind == HPCT_OP_GROUP_NORM)
        hpct_ref_lay_out_norm(op);
    if (build->precision != HPCT_FP32 &&
        (spec->kind == HPCT_OP_CONV2D || spec->kind == HPCT_OP_DENSE))
        make_rounded(op);
    return HPCT_OK;
}

hpct_status hpct_ref_loss(const hpct_backend_loss_call *call)
{
    hpct_ref_loss_rows(call, call->src, call->diff_src);
    if (call->penalty != NULL)
        call->sums->loss += call->n * ((double) call->penalty[0] + (double) call->penalty[1]);
    return HPCT_OK;
}

static hpct_status scale(size_t count, float factor, float *dst)
{
    hpct_ref_scale(count, factor, dst);
    return HPCT_OK;
}

static hpct_status check_precision(hpct_precision precision)
{
    (void) precision;
    return HPCT_OK;
}

const hpct_backend hpct_ref_backend = {
    .name = "ref",
    .check_precision = check_precision,
    .allocate = hpct_backend_host_allocate,
    .release = hpct_backend_host_release,
    .make_op = hpct_ref_make_op,
    .loss = hpct_ref_loss,
    .update = hpct_ref_update,
    .penalize = hpct_ref_penalize,
    .accumulate = hpct_ref_accumulate,
    .scale = scale,
};
