/* BatchNormalization with fused ReLU. Backward recomputes the ReLU mask from the source, which it
 * reads anyway. */
#include "nn/backend/cuda/ops.h"

#include "base/status.h"
#include "nn/backend/norm_line.h"
#include "nn/backend/norm_sync.h"

#include <stdlib.h>

static size_t channels_of(const hpct_op *op)
{
    return (size_t) op->spec.norm.channels;
}

/* Padded length of a per-channel array in floats. */
static size_t padded(size_t channels)
{
    return hpct_backend_norm_line_step(channels);
}

/* Scratch: sums[2][channels] of the whole batch, buffers for all-reduces, partial sums of
 * blocks. */
static float *sums_in(const hpct_op_call *call)
{
    return call->scratch;
}

static float *room_in(const hpct_op *op, const hpct_op_call *call)
{
    return sums_in(call) + padded(2 * channels_of(op));
}

static size_t sync_floats(const hpct_op *op)
{
    return op->spec.norm.synchronized ? padded(channels_of(op) + 1) : 0;
}

static hpct_cuda_norm norm_of(const hpct_op *op, const hpct_op_call *call)
{
    float *notes = call->workspace;
    size_t step = padded(channels_of(op));
    return (hpct_cuda_norm){
        .type = op->build.values,
        .rows = (size_t) call->n * (size_t) op->spec.norm.rows,
        .channels = op->spec.norm.channels,
        .relu = op->spec.relu,
        .momentum = op->spec.norm.momentum,
        .epsilon = op->spec.norm.epsilon,
        .gamma = hpct_cuda_norm_param(op, call->param, HPCT_GRAPH_NORM_GAMMA),
        .beta = hpct_cuda_norm_param(op, call->param, HPCT_GRAPH_NORM_BETA),
        .bias = call->bias,
        .moving_mean = hpct_cuda_norm_param(op, call->param, HPCT_GRAPH_NORM_MEAN),
        .moving_variance = hpct_cuda_norm_param(op, call->param, HPCT_GRAPH_NORM_VARIANCE),
        /* layout of nn/backend/norm_line.h, then the number of rows */
        .notes = {.mean = notes,
                  .scale = notes + step,
                  .shift = notes + 2 * step,
                  .inverse = notes + 3 * step,
                  .rows = notes + HPCT_BACKEND_NORM_LINE_ARRAYS * step},
        .partial = room_in(op, call) + sync_floats(op),
    };
}

/* ---- forward ---- */

/* hpct_backend_norm_sync_moments for device memory. */
static hpct_status synced_moments(const hpct_op *op, const hpct_op_call *call,
                                  const hpct_cuda_norm *norm)
{
    const hpct_graph_step_peers *replicas = call->replicas;
    float *squares = sums_in(call), *room = room_in(op, call);
    HPCT_TRY(hpct_cuda_launched(hpct_cuda_launch_norm_begin(norm, call->src[0], squares, room), op,
                                "statistics"));
    HPCT_TRY(replicas->sum(replicas->argument, room, channels_of(op) + 1));
    HPCT_TRY(
        hpct_cuda_launched(hpct_cuda_launch_norm_middle(norm, room, squares), op, "statistics"));
    HPCT_TRY(replicas->sum(replicas->argument, squares, channels_of(op)));
    return hpct_cuda_launched(hpct_cuda_launch_norm_end(norm, squares), op, "statistics");
}

hpct_status hpct_cuda_batch_norm_forward(hpct_op *op, const hpct_op_call *call)
{
    hpct_cuda_norm norm = norm_of(op, call);
    hpct_status status;
    if (hpct_backend_norm_is_synced(&op->spec, call))
        status = synced_moments(op, call, &norm);
    else if (call->training)
        status = hpct_cuda_launched(hpct_cuda_launch_norm_moments(&norm, call->src[0]), op,
                                    "statistics");
    else
        status = hpct_cuda_launched(hpct_cuda_launch_norm_moving(&norm), op, "statistics");
    if (status == HPCT_OK && call->n > 0 && !op->build.fused_downstream)
        status = hpct_cuda_launched(hpct_cuda_launch_norm_apply(&norm, call->src[0], call->dst), op,
                                    "forward");
    return status;
}

/* ---- backward ---- */

hpct_status hpct_cuda_batch_norm_backward(hpct_op *op, const hpct_op_call *call)
{
    hpct_cuda_norm norm = norm_of(op, call);
    float *sums = sums_in(call), /* gradients are this replica's; the sums are then all-reduced */
        *diff_gamma = hpct_cuda_norm_param(op, call->grad, HPCT_GRAPH_NORM_GAMMA),
          *diff_beta = hpct_cuda_norm_param(op, call->grad, HPCT_GRAPH_NORM_BETA);
    norm.relu = op->spec.relu && !op->build.fused_downstream;
    HPCT_TRY(hpct_cuda_launched(
        call->norm_sums != NULL
            ? hpct_cuda_launch_norm_take_sums(&norm, call->norm_sums, sums, diff_gamma, diff_beta)
            : hpct_cuda_launch_norm_sums(&norm, call->src[0], call->diff_dst, sums, diff_gamma,
                                         diff_beta),
        op, "sums"));
    if (hpct_backend_norm_is_synced(&op->spec, call))
        HPCT_TRY(call->replicas->sum(call->replicas->argument, sums, 2 * channels_of(op)));
    if (call->diff_src[0] != NULL)
        HPCT_TRY(hpct_cuda_launched(
            hpct_cuda_launch_norm_backward(&norm, call->src[0], call->diff_dst, sums,
                                           hpct_cuda_adds(call, 0), call->diff_src[0]),
            op, "backward"));
    return HPCT_OK;
}

void hpct_cuda_batch_norm_prepare(hpct_op *op)
{
    size_t channels = channels_of(op),
           parts = (size_t) hpct_cuda_norm_parts(op->build.values, op->spec.norm.channels);
    op->workspace_bytes = (HPCT_BACKEND_NORM_LINE_ARRAYS * padded(channels) + 1) * sizeof(float);
    op->scratch_bytes =
        (padded(2 * channels) + sync_floats(op) + parts * 2 * channels) * sizeof(float);
    op->backward_reads_dst = false; /* the mask of the ReLU is computed again */
    op->backward_keeps_diff_dst = true;
}
