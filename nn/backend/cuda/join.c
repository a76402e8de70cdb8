/* Add and Concatenate. */
#include "nn/backend/cuda/ops.h"

#include "base/status.h"
#include "nn/backend/norm_line.h"

#if HPCT_CUDA_JOIN_MOST < HPCT_GRAPH_NODE_MAX_INPUTS
#error "a kernel takes fewer inputs than a node may have"
#endif

/* ---- Add ---- */

/* An Add of two inputs, at least one with a BATCH_NORM fused downstream: `first`; `second` is the
 * other. With a ReLU its workspace has the norm_sums computed by backward (nn/graph/op.h), then the
 * ReLU mask. */
typedef struct normed {
    hpct_cuda_norm norm;
    hpct_backend_norm_line line[2];
    int first, second;
    uint8_t *open; /* ReLU mask; NULL: not stored */
} normed;

static bool is_normed(const hpct_op *op, const hpct_op_call *call)
{
    return op->spec.join.count == 2 && call->norms != NULL &&
           (call->norms[0] != NULL || call->norms[1] != NULL);
}

static size_t sums_bytes(const hpct_op *op)
{
    return 2 * hpct_backend_norm_line_step((size_t) op->spec.join.size[0]) * sizeof(float);
}

static normed normed_of(const hpct_op *op, const hpct_op_call *call)
{
    size_t channels = (size_t) op->spec.join.size[0];
    normed n = {.norm = {.queue = hpct_cuda_current_queue(),
                         .type = hpct_cuda_number_of(op),
                         .rows = (size_t) call->n * (size_t) op->spec.join.rows,
                         .channels = op->spec.join.size[0],
                         .relu = op->spec.relu,
                         .partial = call->scratch},
                .first = call->norms[0] != NULL ? 0 : 1};
    n.second = 1 - n.first;
    n.line[0] = hpct_backend_norm_line_in(call->norms[n.first], channels);
    if (call->norms[n.second] != NULL)
        n.line[1] = hpct_backend_norm_line_in(call->norms[n.second], channels);
    if (op->leaves_norm_sums)
        n.open = (uint8_t *) call->workspace + 2 * sums_bytes(op);
    return n;
}

static hpct_status add_normed(const hpct_op *op, const hpct_op_call *call)
{
    normed n = normed_of(op, call);
    return hpct_cuda_launched(hpct_cuda_launch_norm_add(&n.norm, n.line, call->src[n.first],
                                                        call->src[n.second], call->dst, n.open),
                              op, "forward");
}

static hpct_status add_forward(hpct_op *op, const hpct_op_call *call)
{
    if (is_normed(op, call))
        return add_normed(op, call);
    hpct_cuda_join join = {.count = op->spec.join.count, .relu = op->spec.relu};
    for (int k = 0; k < join.count; k++)
        join.src[k] = call->src[k];
    return hpct_cuda_launched(
        hpct_cuda_launch_add(hpct_cuda_current_queue(), hpct_cuda_number_of(op),
                             hpct_cuda_dst_count(op, call->n), &join, call->dst),
        op, "forward");
}

static hpct_status add_normed_backward(const hpct_op *op, const hpct_op_call *call,
                                       const hpct_cuda_join *join)
{
    normed n = normed_of(op, call);
    float *sums[2];
    for (int k = 0; k < 2; k++)
        sums[k] = (float *) (void *) ((char *) call->workspace +
                                      op->norm_sums[k == 0 ? n.first : n.second]);
    return hpct_cuda_launched(
        hpct_cuda_launch_norm_add_backward(&n.norm, n.line, n.open, call->src[n.first],
                                           call->src[n.second], join, call->diff_dst, sums),
        op, "backward");
}

static hpct_status add_backward(hpct_op *op, const hpct_op_call *call)
{
    hpct_cuda_join join = {.count = op->spec.join.count, .relu = op->spec.relu};
    bool any = false; /* any work left, besides gradients passed without a copy */
    for (int k = 0; k < join.count; k++) {
        join.diff_src[k] = call->diff_src[k];
        join.add[k] = hpct_cuda_adds(call, k);
        any = any ||
              (call->diff_src[k] != NULL && (join.relu || call->diff_src[k] != call->diff_dst));
    }
    if (op->leaves_norm_sums)
        return add_normed_backward(op, call, &join);
    if (!any)
        return HPCT_OK;
    return hpct_cuda_launched(hpct_cuda_launch_add_backward(hpct_cuda_current_queue(),
                                                            hpct_cuda_number_of(op),
                                                            hpct_cuda_dst_count(op, call->n), &join,
                                                            call->dst, call->diff_dst),
                              op, "backward");
}

/* Backward computes sums for its fused normalizations. */
static void leave_norm_sums(hpct_op *op)
{
    int channels = op->spec.join.size[0];
    hpct_cuda_number type = hpct_cuda_number_of(op);
    size_t rows = (size_t) hpct_op_largest_batch(&op->build) * (size_t) op->spec.join.rows,
           open = hpct_cuda_norm_open_bytes(type, rows, channels),
           parts = (size_t) hpct_cuda_norm_parts(hpct_cuda_current_queue(), type, channels);
    if (open == 0)
        return;
    op->leaves_norm_sums = true;
    op->norm_sums[1] = sums_bytes(op);
    op->workspace_bytes = 2 * sums_bytes(op) + open;
    op->scratch_bytes = 2 * parts * 2 * (size_t) channels * sizeof(float);
    op->backward_reads_src = true;
    op->backward_reads_dst = false;
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
            hpct_cuda_launch_copy_rows(hpct_cuda_current_queue(), hpct_cuda_number_of(op),
                                       rows_of(op, call->n), size, call->src[k], size, false, dst,
                                       width_of(op)),
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
                hpct_cuda_launch_copy_rows(hpct_cuda_current_queue(), hpct_cuda_number_of(op),
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
        .forward = add_forward, .backward = add_backward, .destroy = hpct_op_free};
    static const hpct_op_class concatenate = {
        .forward = concatenate_forward, .backward = concatenate_backward, .destroy = hpct_op_free};
    bool adds = spec->kind == HPCT_OP_ADD;
    HPCT_TRY(hpct_cuda_new_op(out, adds ? &add : &concatenate, spec, build));
    if (adds && build->normed && build->training && spec->relu && spec->join.count == 2)
        leave_norm_sums(*out);
    return HPCT_OK;
}
