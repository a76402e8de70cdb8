/* BatchNormalization with a ReLU behind it. Where the ReLU was closed is worked out again from the
 * source, which backward reads anyway. */
#include "nn/cuda/ops.h"

#include "base/status.h"
#include "nn/norm_line.h"
#include "nn/norm_sync.h"

#include <stdlib.h>

static size_t channels_of(const hpct_op *op)
{
    return (size_t) op->spec.norm.channels;
}

/* Floats of an array of channels. */
static size_t padded(size_t channels)
{
    return hpct_norm_line_step(channels);
}

static float *param_of(const hpct_op *op, float *const *params, hpct_norm_param which)
{
    int index = hpct_op_norm_param(&op->spec, which);
    return index < 0 ? NULL : params[index];
}

/* Scratch: sums[2][channels] of the whole batch, what replicas add up, sums of the blocks. */
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

static hpct_norm norm_of(const hpct_op *op, const hpct_op_call *call)
{
    float *notes = call->workspace;
    size_t step = padded(channels_of(op));
    return (hpct_norm){
        .queue = hpct_cuda_queue(),
        .type = hpct_cuda_number_of(op),
        .rows = (size_t) call->n * (size_t) op->spec.norm.rows,
        .channels = op->spec.norm.channels,
        .relu = op->spec.relu,
        .momentum = op->spec.norm.momentum,
        .epsilon = op->spec.norm.epsilon,
        .gamma = param_of(op, call->param, HPCT_NORM_GAMMA),
        .beta = param_of(op, call->param, HPCT_NORM_BETA),
        .bias = call->bias,
        .moving_mean = param_of(op, call->param, HPCT_NORM_MEAN),
        .moving_variance = param_of(op, call->param, HPCT_NORM_VARIANCE),
        /* as nn/norm_line.h has them, and the rows behind them */
        .notes = {.mean = notes,
                  .scale = notes + step,
                  .shift = notes + 2 * step,
                  .inverse = notes + 3 * step,
                  .rows = notes + HPCT_NORM_LINE_ARRAYS * step},
        .partial = room_in(op, call) + sync_floats(op),
    };
}

/* ---- forward ---- */

/* The messages of hpct_norm_sync_moments, about memory of the device. */
static hpct_status synced_moments(const hpct_op *op, const hpct_op_call *call,
                                  const hpct_norm *norm)
{
    const hpct_replicas *replicas = call->replicas;
    float *squares = sums_in(call), *room = room_in(op, call);
    hpct_status status = hpct_cuda_launched(
        call->moments != NULL ? hpct_launch_norm_take(norm, call->moments, squares, room)
                              : hpct_launch_norm_begin(norm, call->src[0], squares, room),
        op, "statistics");
    if (status == HPCT_OK)
        status = replicas->sum(replicas->argument, room, channels_of(op) + 1);
    if (status == HPCT_OK)
        status = hpct_cuda_launched(hpct_launch_norm_middle(norm, room, squares), op, "statistics");
    if (status == HPCT_OK)
        status = replicas->sum(replicas->argument, squares, channels_of(op));
    if (status == HPCT_OK)
        status = hpct_cuda_launched(hpct_launch_norm_end(norm, squares), op, "statistics");
    return status;
}

static hpct_status forward(hpct_op *op, const hpct_op_call *call)
{
    hpct_norm norm = norm_of(op, call);
    hpct_status status;
    if (hpct_norm_is_synced(&op->spec, call))
        status = synced_moments(op, call, &norm);
    else if (call->training)
        status = hpct_cuda_launched(call->moments != NULL
                                        ? hpct_launch_norm_take(&norm, call->moments, NULL, NULL)
                                        : hpct_launch_norm_moments(&norm, call->src[0]),
                                    op, "statistics");
    else
        status = hpct_cuda_launched(hpct_launch_norm_moving(&norm), op, "statistics");
    if (status == HPCT_OK && call->n > 0 && !op->build.deferred)
        status = hpct_cuda_launched(hpct_launch_norm_apply(&norm, call->src[0], call->dst), op,
                                    "forward");
    return status;
}

/* ---- backward ---- */

static hpct_status backward(hpct_op *op, const hpct_op_call *call)
{
    hpct_norm norm = norm_of(op, call);
    float *sums = sums_in(call), /* gradients are of this replica, the sums then of all */
        *diff_gamma = param_of(op, call->grad, HPCT_NORM_GAMMA),
          *diff_beta = param_of(op, call->grad, HPCT_NORM_BETA);
    norm.relu = op->spec.relu && !op->build.deferred;
    hpct_status status = hpct_cuda_launched(
        call->norm_sums != NULL
            ? hpct_launch_norm_take_sums(&norm, call->norm_sums, sums, diff_gamma, diff_beta)
            : hpct_launch_norm_sums(&norm, call->src[0], call->diff_dst, sums, diff_gamma,
                                    diff_beta),
        op, "sums");
    if (status == HPCT_OK && hpct_norm_is_synced(&op->spec, call))
        status = call->replicas->sum(call->replicas->argument, sums, 2 * channels_of(op));
    if (status == HPCT_OK && call->diff_src[0] != NULL)
        status = hpct_cuda_launched(hpct_launch_norm_backward(&norm, call->src[0], call->diff_dst,
                                                              sums, hpct_cuda_adds(call, 0),
                                                              call->diff_src[0]),
                                    op, "backward");
    return status;
}

hpct_status hpct_cuda_make_batch_norm(hpct_op **out, const hpct_op_spec *spec,
                                      const hpct_op_build *build)
{
    static const hpct_op_class class = {.forward = forward,
                                        .backward = backward,
                                        .import_param = hpct_cuda_import,
                                        .export_param = hpct_cuda_export,
                                        .destroy = hpct_cuda_destroy_op};
    hpct_op *op = *out = hpct_cuda_new_op(&class, spec, build);
    if (op == NULL)
        return hpct_fail_memory(sizeof *op);
    size_t channels = channels_of(op),
           parts = (size_t) hpct_norm_parts(hpct_cuda_queue(), hpct_cuda_number_of(op),
                                            spec->norm.channels);
    op->workspace_bytes = (HPCT_NORM_LINE_ARRAYS * padded(channels) + 1) * sizeof(float);
    op->scratch_bytes =
        (padded(2 * channels) + sync_floats(op) + parts * 2 * channels) * sizeof(float);
    op->backward_reads_src = true;
    return HPCT_OK;
}
