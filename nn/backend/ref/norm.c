/* BATCH_NORM and GROUP_NORM of the reference: parameters, saved statistics, replicas. */
#include "nn/backend/ref/norm.h"

#include "base/status.h"
#include "nn/backend/norm_line.h"
#include "nn/backend/norm_sync.h"
#include "nn/backend/ref/kernels.h"

#include <math.h>
#include <string.h>

/* A parameter or gradient of BATCH_NORM; NULL if absent. */
static float *norm_param(const hpct_op *op, float *const *params, hpct_graph_norm_param which)
{
    int index = hpct_op_norm_param(&op->spec, which);
    return index < 0 ? NULL : params[index];
}

/* Saved statistics: in the workspace, after the norm line if there is one. */
static float *kept_in(const hpct_op *op, const hpct_op_call *call)
{
    size_t line = HPCT_BACKEND_NORM_LINE_ARRAYS *
                  hpct_backend_norm_line_step((size_t) op->spec.norm.channels);
    return (float *) call->workspace + (op->build.fused_downstream ? line : 0);
}

/* kept: mean, variance, then the number of rows of all replicas. */
static hpct_status sync_statistics(size_t channels, size_t rows, const hpct_op_call *call,
                                   float *kept)
{
    float *squares = kept + channels, *total = kept + 2 * channels;
    for (size_t c = 0; c < channels; c++)
        squares[c] *= (float) rows;
    hpct_status status = hpct_backend_norm_sync_moments(call->replicas, channels, rows, kept,
                                                        squares, call->scratch, total);
    for (size_t c = 0; c < channels && status == HPCT_OK; c++)
        squares[c] /= *total;
    return status;
}

/* Stores the norm line (nn/backend/norm_line.h). */
static void leave_line(const hpct_op *op, const hpct_op_call *call, const float *mean,
                       const float *variance)
{
    size_t channels = (size_t) op->spec.norm.channels, step = hpct_backend_norm_line_step(channels);
    const float *gamma = norm_param(op, call->param, HPCT_GRAPH_NORM_GAMMA),
                *beta = norm_param(op, call->param, HPCT_GRAPH_NORM_BETA);
    float *line = call->workspace;
    for (size_t c = 0; c < channels; c++) {
        float inverse = 1 / sqrtf(variance[c] + op->spec.norm.epsilon);
        line[c] = mean[c];
        line[step + c] = (gamma != NULL ? gamma[c] : 1) * inverse;
        line[2 * step + c] = beta != NULL ? beta[c] : 0;
        line[3 * step + c] = inverse;
    }
}

hpct_status hpct_ref_normalize_forward(hpct_op *op, const hpct_op_call *call)
{
    size_t channels = (size_t) op->spec.norm.channels,
           rows = (size_t) call->n * (size_t) op->spec.norm.rows;
    float *mean = norm_param(op, call->param, HPCT_GRAPH_NORM_MEAN),
          *variance = norm_param(op, call->param, HPCT_GRAPH_NORM_VARIANCE);
    if (call->training) {
        float *kept = kept_in(op, call);
        double momentum = (double) op->spec.norm.momentum;
        memset(kept, 0, 2 * channels * sizeof *kept);
        if (rows > 0)
            hpct_ref_batch_norm_statistics(rows, channels, call->src[0], kept, kept + channels);
        if (hpct_backend_norm_is_synced(&op->spec, call))
            HPCT_TRY(sync_statistics(channels, rows, call, kept));
        hpct_ref_batch_norm_move(channels, momentum, kept, mean);
        hpct_ref_batch_norm_move(channels, momentum, kept + channels, variance);
        for (size_t c = 0; c < channels && call->bias != NULL; c++)
            mean[c] += (float) (1 - momentum) * call->bias[c];
        mean = kept;
        variance = kept + channels;
    } else if (call->bias != NULL) {
        float *without = call->scratch;
        for (size_t c = 0; c < channels; c++)
            without[c] = mean[c] - call->bias[c];
        mean = without;
    }
    if (op->build.fused_downstream)
        leave_line(op, call, mean, variance);
    if (rows == 0 || op->build.fused_downstream)
        return HPCT_OK;
    hpct_ref_batch_norm_forward(rows, channels, (double) op->spec.norm.epsilon, call->src[0], mean,
                                variance, norm_param(op, call->param, HPCT_GRAPH_NORM_GAMMA),
                                norm_param(op, call->param, HPCT_GRAPH_NORM_BETA), call->dst);
    hpct_ref_finish_forward(op, call);
    return HPCT_OK;
}

/* As hpct_ref_batch_norm_backward, with the two sums from another operation, or of all replicas. */
static hpct_status backward_by_sums(const hpct_op *op, const hpct_op_call *call, size_t rows,
                                    const float *gamma, float *diff_gamma, float *diff_beta)
{
    size_t channels = (size_t) op->spec.norm.channels, step = hpct_backend_norm_line_step(channels);
    const float *mean = kept_in(op, call), *variance = mean + channels;
    float *sum = call->scratch, *sum_hat = sum + channels, *all = sum, total = (float) rows;
    hpct_status status = HPCT_OK;
    if (call->norm_sums != NULL) {
        memcpy(sum, call->norm_sums, channels * sizeof *sum);
        memcpy(sum_hat, call->norm_sums + step, channels * sizeof *sum);
    } else {
        hpct_ref_batch_norm_backward(rows, channels, (double) op->spec.norm.epsilon, call->src[0],
                                     mean, variance, gamma, call->diff_dst, false, NULL, sum_hat,
                                     sum);
    }
    for (size_t c = 0; c < channels; c++) {
        if (diff_gamma != NULL)
            diff_gamma[c] = sum_hat[c];
        if (diff_beta != NULL)
            diff_beta[c] = sum[c];
    }
    if (hpct_backend_norm_is_synced(&op->spec, call)) {
        all = sum_hat + channels;
        total = variance[channels];
        status = hpct_backend_norm_sync_sums(call->replicas, channels, sum, sum_hat, all);
    }
    if (status != HPCT_OK || call->diff_src[0] == NULL)
        return status;
    for (size_t i = 0; i < rows * channels; i++) {
        size_t c = i % channels;
        float inverse = 1 / sqrtf(variance[c] + op->spec.norm.epsilon);
        float hat = (call->src[0][i] - mean[c]) * inverse;
        float change = call->diff_dst[i] - (all[c] + hat * all[channels + c]) / total;
        change *= (gamma != NULL ? gamma[c] : 1) * inverse;
        call->diff_src[0][i] = change + (call->add[0] ? call->diff_src[0][i] : 0);
    }
    return HPCT_OK;
}

hpct_status hpct_ref_normalize_backward(hpct_op *op, const hpct_op_call *call)
{
    size_t channels = (size_t) op->spec.norm.channels,
           rows = (size_t) call->n * (size_t) op->spec.norm.rows;
    const float *kept = kept_in(op, call);
    if (!op->build.fused_downstream)
        hpct_ref_start_backward(op, call);
    float *gamma = norm_param(op, call->param, HPCT_GRAPH_NORM_GAMMA),
          *diff_gamma = norm_param(op, call->grad, HPCT_GRAPH_NORM_GAMMA),
          *diff_beta = norm_param(op, call->grad, HPCT_GRAPH_NORM_BETA);
    if (call->norm_sums != NULL || hpct_backend_norm_is_synced(&op->spec, call))
        return backward_by_sums(op, call, rows, gamma, diff_gamma, diff_beta);
    hpct_ref_batch_norm_backward(rows, channels, (double) op->spec.norm.epsilon, call->src[0], kept,
                                 kept + channels, gamma, call->diff_dst, call->add[0],
                                 call->diff_src[0], diff_gamma, diff_beta);
    return HPCT_OK;
}

/* The workspace has the means, then the variances. */
static size_t count_groups(const hpct_op *op, int n)
{
    return (size_t) n * (size_t) op->spec.group.rows * (size_t) op->spec.group.groups;
}

hpct_status hpct_ref_group_forward(hpct_op *op, const hpct_op_call *call)
{
    float *mean = call->workspace, *variance = mean + count_groups(op, call->n);
    hpct_ref_group_norm_statistics(&op->spec, call->n, call->src[0], mean, variance);
    hpct_ref_group_norm_forward(&op->spec, call->n, call->src[0], mean, variance,
                                norm_param(op, call->param, HPCT_GRAPH_NORM_GAMMA),
                                norm_param(op, call->param, HPCT_GRAPH_NORM_BETA), call->dst);
    return HPCT_OK;
}

hpct_status hpct_ref_group_backward(hpct_op *op, const hpct_op_call *call)
{
    float *mean = call->workspace, *variance = mean + count_groups(op, call->n);
    hpct_ref_group_norm_backward(&op->spec, call->n, call->src[0], mean, variance,
                                 norm_param(op, call->param, HPCT_GRAPH_NORM_GAMMA), call->diff_dst,
                                 call->add[0], call->diff_src[0],
                                 norm_param(op, call->grad, HPCT_GRAPH_NORM_GAMMA),
                                 norm_param(op, call->grad, HPCT_GRAPH_NORM_BETA));
    return HPCT_OK;
}

static void lay_out_batch_norm(hpct_op *op)
{
    size_t channels = (size_t) op->spec.norm.channels,
           line = HPCT_BACKEND_NORM_LINE_ARRAYS * hpct_backend_norm_line_step(channels);
    op->workspace_bytes =
        (2 * channels + 1 + (op->build.fused_downstream ? line : 0)) * sizeof(float);
    op->scratch_bytes = (2 * channels + HPCT_BACKEND_NORM_SYNC_ROOM(channels)) * sizeof(float);
    if (op->build.fused_downstream)
        op->backward_reads_dst = false;
}

void hpct_ref_lay_out_norm(hpct_op *op)
{
    if (op->spec.kind == HPCT_OP_BATCH_NORM)
        lay_out_batch_norm(op);
    else
        op->workspace_bytes =
            2 * count_groups(op, hpct_op_largest_batch(&op->build)) * sizeof(float);
}

void hpct_ref_add_with_norms(const hpct_op *op, const hpct_op_call *call)
{
    size_t count = (size_t) call->n * hpct_op_dst_floats(&op->spec),
           channels = (size_t) op->spec.join.size[0];
    memset(call->dst, 0, count * sizeof *call->dst);
    for (int k = 0; k < op->spec.join.count; k++) {
        const float *src = call->src[k];
        hpct_backend_norm_line line = hpct_backend_norm_line_in(call->norms[k], channels);
        for (size_t i = 0; i < count; i++) {
            size_t c = i % channels;
            call->dst[i] += call->norms[k] == NULL
                                ? src[i]
                                : (src[i] - line.mean[c]) * line.scale[c] + line.shift[c];
        }
    }
}
