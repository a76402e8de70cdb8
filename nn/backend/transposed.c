/* The reversed calls of a CONV2D, and the bias. */
#include "nn/backend/transposed.h"

#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct transposed_op {
    hpct_op op;
    hpct_op *conv; /* from the result to the source, without bias */
    const hpct_backend_transposed_parts *parts;
    char slow[640]; /* op.slow */
} transposed_op;

static transposed_op *transposed_of(hpct_op *op)
{
    return (transposed_op *) op;
}

static size_t rows_of(const hpct_op *op, int n)
{
    return (size_t) n * (size_t) op->spec.window.in_h * (size_t) op->spec.window.in_w;
}

static hpct_status forward(hpct_op *op, const hpct_op_call *call)
{
    transposed_op *t = transposed_of(op);
    const float *src[HPCT_GRAPH_NODE_MAX_INPUTS] = {NULL};
    float *diff_src[HPCT_GRAPH_NODE_MAX_INPUTS] = {call->dst}, *grad[HPCT_OP_MAX_PARAMS] = {NULL};
    hpct_op_call back = *call;
    back.src = src;
    back.diff_dst = (float *) (uintptr_t) call->src[0]; /* which backward leaves as it is */
    back.diff_src = diff_src;
    back.add = (const bool[HPCT_GRAPH_NODE_MAX_INPUTS]){false};
    back.grad = grad;
    HPCT_TRY(t->conv->class->backward(t->conv, &back));
    if (op->spec.no_bias)
        return HPCT_OK;
    return t->parts->add_bias(op, rows_of(op, call->n), (size_t) op->spec.window.in_c,
                              call->param[HPCT_OP_BIAS], call->dst);
}

/* The gradient of the kernel: as that of a convolution of the result's gradient, whose result is
 * the source. */
static hpct_status backward_kernel(transposed_op *t, const hpct_op_call *call)
{
    const float *src[HPCT_GRAPH_NODE_MAX_INPUTS] = {call->diff_dst};
    float *diff_src[HPCT_GRAPH_NODE_MAX_INPUTS] = {NULL};
    hpct_op_call back = *call;
    back.src = src;
    back.diff_dst = (float *) (uintptr_t) call->src[0];
    back.diff_src = diff_src;
    back.add = (const bool[HPCT_GRAPH_NODE_MAX_INPUTS]){false};
    return t->conv->class->backward(t->conv, &back);
}

static hpct_status backward(hpct_op *op, const hpct_op_call *call)
{
    transposed_op *t = transposed_of(op);
    const float *src[HPCT_GRAPH_NODE_MAX_INPUTS] = {call->diff_dst};
    hpct_op_call ahead = *call;
    if (!op->spec.no_bias)
        HPCT_TRY(t->parts->sum_bias(op, rows_of(op, call->n), (size_t) op->spec.window.in_c,
                                    call->diff_dst, call->grad[HPCT_OP_BIAS], call->scratch));
    HPCT_TRY(backward_kernel(t, call));
    if (call->diff_src[0] == NULL)
        return HPCT_OK;
    ahead.src = src;
    ahead.dst = call->diff_src[0];
    return t->conv->class->forward(t->conv, &ahead);
}

static void destroy(hpct_op *op)
{
    hpct_op *conv = transposed_of(op)->conv;
    if (conv != NULL)
        conv->class->destroy(conv);
    free(op);
}

/* The convolution is made as if it had to pass a gradient on; of what it says of itself, what holds
 * for the reverse. */
static hpct_status make_conv(transposed_op *t)
{
    hpct_op *op = &t->op;
    hpct_op_spec spec = {.kind = HPCT_OP_CONV2D, .window = op->spec.window, .no_bias = true};
    hpct_op_build build = op->build;
    build.training = build.needs_diff_src = true;
    build.fuse_update = build.shares_src = false;
    HPCT_TRY(t->parts->make_conv2d(&t->conv, &spec, &build));
    t->conv->param_floats[HPCT_OP_BIAS] = (size_t) op->spec.window.in_c; /* for import */
    op->layout_of = t->conv;
    op->precision = t->conv->precision;
    if (t->conv->slow != NULL)
        snprintf(t->slow, sizeof t->slow, "by the convolution of which it is the gradient: %s",
                 t->conv->slow);
    op->slow = t->conv->slow != NULL ? t->slow : NULL;
    op->scratch_bytes = t->conv->scratch_bytes;
    op->workspace_bytes = t->conv->workspace_bytes;
    op->copies_bytes = t->conv->copies_bytes;
    op->param_copied[HPCT_OP_KERNEL] = t->conv->param_copied[HPCT_OP_KERNEL];
    op->copy_offset[HPCT_OP_KERNEL] = t->conv->copy_offset[HPCT_OP_KERNEL];
    op->param_floats[HPCT_OP_KERNEL] = t->conv->param_floats[HPCT_OP_KERNEL];
    op->param_layout[HPCT_OP_KERNEL] = t->conv->param_layout[HPCT_OP_KERNEL];
    op->param_rows[HPCT_OP_KERNEL] = t->conv->param_rows[HPCT_OP_KERNEL];
    return HPCT_OK;
}

hpct_status hpct_backend_make_transposed(hpct_op **out, const hpct_op_spec *spec,
                                         const hpct_op_build *build,
                                         const hpct_backend_transposed_parts *parts)
{
    static const hpct_op_class class = {
        .forward = forward, .backward = backward, .destroy = destroy};
    HPCT_TRY(hpct_op_new(out, sizeof(transposed_op), &class, spec, build));
    hpct_op *op = *out;
    transposed_op *t = (transposed_op *) op;
    t->parts = parts;
    HPCT_TRY(make_conv(t));
    for (int i = 0; i < build->num_batch_sizes && !spec->no_bias; i++) {
        size_t bytes = parts->scratch_bytes(op, rows_of(op, build->batch_sizes[i]),
                                            (size_t) spec->window.in_c);
        op->scratch_bytes = bytes > op->scratch_bytes ? bytes : op->scratch_bytes;
    }
    return HPCT_OK;
}
