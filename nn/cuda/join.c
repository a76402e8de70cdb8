/* Add and Concatenate. */
#include "nn/cuda/ops.h"

#include "base/status.h"

#if HPCT_JOIN_MOST < HPCT_NODE_MAX_INPUTS
#error "a kernel takes fewer inputs than a node may have"
#endif

/* ---- Add ---- */

/* Of two, one at least of them the source of a deferred BATCH_NORM. */
static hpct_status add_normed(const hpct_op *op, const hpct_op_call *call)
{
    int first = call->norms[0] != NULL ? 0 : 1, second = 1 - first;
    size_t channels = (size_t) op->spec.join.size[0];
    hpct_norm norm = {.queue = hpct_cuda_queue(),
                      .type = hpct_cuda_number_of(op),
                      .rows = (size_t) call->n * (size_t) op->spec.join.rows,
                      .channels = op->spec.join.size[0],
                      .relu = op->spec.relu};
    hpct_norm_line lines[2] = {hpct_norm_line_in(call->norms[first], channels)};
    if (call->norms[second] != NULL)
        lines[1] = hpct_norm_line_in(call->norms[second], channels);
    return hpct_cuda_launched(
        hpct_launch_norm_add(&norm, lines, call->src[first], call->src[second], call->dst), op,
        "forward");
}

static hpct_status add_forward(hpct_op *op, const hpct_op_call *call)
{
    if (op->spec.join.count == 2 && call->norms != NULL &&
        (call->norms[0] != NULL || call->norms[1] != NULL))
        return add_normed(op, call);
    hpct_join join = {.count = op->spec.join.count, .relu = op->spec.relu};
    for (int k = 0; k < join.count; k++)
        join.src[k] = call->src[k];
    return hpct_cuda_launched(hpct_launch_add(hpct_cuda_queue(), hpct_cuda_number_of(op),
                                              hpct_cuda_dst_count(op, call->n), &join, call->dst),
                              op, "forward");
}

static hpct_status add_backward(hpct_op *op, const hpct_op_call *call)
{
    hpct_join join = {.count = op->spec.join.count, .relu = op->spec.relu};
    bool any = false; /* besides what is there without a copy */
    for (int k = 0; k < join.count; k++) {
        join.diff_src[k] = call->diff_src[k];
        join.add[k] = hpct_cuda_adds(call, k);
        any = any ||
              (call->diff_src[k] != NULL && (join.relu || call->diff_src[k] != call->diff_dst));
    }
    if (!any)
        return HPCT_OK;
    return hpct_cuda_launched(hpct_launch_add_backward(hpct_cuda_queue(), hpct_cuda_number_of(op),
                                                       hpct_cuda_dst_count(op, call->n), &join,
                                                       call->dst, call->diff_dst),
                              op, "backward");
}

/* ---- Concatenate: each input is a part of every row of the result ---- */

static size_t rows_of(const hpct_op *op, int n)
{
    return (size_t) n * (size_t) op->spec.join.rows;
}

static size_t width_of(const hpct_op *op)
{
    return hpct_op_dst_floats(&op->spec) / (size_t) op->spec.join.rows;
}

static hpct_status concatenate_forward(hpct_op *op, const hpct_op_call *call)
{
    hpct_status status = HPCT_OK;
    char *dst = (char *) call->dst;
    for (int k = 0; k < op->spec.join.count && status == HPCT_OK; k++) {
        size_t size = (size_t) op->spec.join.size[k];
        status = hpct_cuda_launched(
            hpct_launch_copy_rows(hpct_cuda_queue(), hpct_cuda_number_of(op), rows_of(op, call->n),
                                  size, call->src[k], size, false, dst, width_of(op)),
            op, "forward");
        dst += size * hpct_cuda_value_bytes(op->build.values);
    }
    return status;
}

static hpct_status concatenate_backward(hpct_op *op, const hpct_op_call *call)
{
    hpct_status status = HPCT_OK;
    const char *diff = (const char *) call->diff_dst;
    for (int k = 0; k < op->spec.join.count && status == HPCT_OK; k++) {
        size_t size = (size_t) op->spec.join.size[k];
        if (call->diff_src[k] != NULL)
            status = hpct_cuda_launched(
                hpct_launch_copy_rows(hpct_cuda_queue(), hpct_cuda_number_of(op),
                                      rows_of(op, call->n), size, diff, width_of(op),
                                      hpct_cuda_adds(call, k), call->diff_src[k], size),
                op, "backward");
        diff += size * hpct_cuda_value_bytes(op->build.values);
    }
    return status;
}

hpct_status hpct_cuda_make_join(hpct_op **out, const hpct_op_spec *spec, const hpct_op_build *build)
{
    static const hpct_op_class add = {
        .forward = add_forward, .backward = add_backward, .destroy = hpct_cuda_destroy_op};
    static const hpct_op_class concatenate = {.forward = concatenate_forward,
                                              .backward = concatenate_backward,
                                              .destroy = hpct_cuda_destroy_op};
    bool adds = spec->kind == HPCT_OP_ADD;
    hpct_op *op = *out = hpct_cuda_new_op(adds ? &add : &concatenate, spec, build);
    if (op == NULL)
        return hpct_fail_memory(sizeof *op);
    op->backward_reads_dst = spec->relu;
    op->backward_keeps_diff_dst = !spec->relu;
    op->passes_diff_dst = adds;
    return HPCT_OK;
}
