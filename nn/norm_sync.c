/* Synchronized BatchNormalization: the sums over replicas, and the part of one without samples. */
#include "nn/norm_sync.h"

#include "base/status.h"
#include "nn/run.h"

#include <string.h>

hpct_status hpct_norm_sync_moments(const hpct_replicas *replicas, size_t channels, size_t rows,
                                   float *mean, float *squares, float *room, float *total)
{
    for (size_t c = 0; c < channels; c++)
        room[c] = mean[c] * (float) rows;
    room[channels] = (float) rows;
    hpct_status status = replicas->sum(replicas->argument, room, channels + 1);
    if (status != HPCT_OK)
        return status;
    *total = room[channels];
    for (size_t c = 0; c < channels; c++) {
        float all = room[c] / *total, delta = mean[c] - all;
        mean[c] = all;
        squares[c] += (float) rows * delta * delta;
    }
    return replicas->sum(replicas->argument, squares, channels);
}

hpct_status hpct_norm_sync_sums(const hpct_replicas *replicas, size_t channels, const float *sum,
                                const float *sum_x, float *room)
{
    memcpy(room, sum, channels * sizeof *room);
    memcpy(room + channels, sum_x, channels * sizeof *room);
    return replicas->sum(replicas->argument, room, 2 * channels);
}

/* ---- a replica without samples in this step ---- */

static const hpct_op *synced_op(const hpct_model *model, int node)
{
    const hpct_op *op = model->run->nodes[node].op;
    bool synced = op->spec.kind == HPCT_OP_BATCH_NORM && op->spec.norm.synchronized;
    return synced && model->replicas.sum != NULL ? op : NULL;
}

hpct_status hpct_norm_forward_absent(const hpct_model *model, int node)
{
    hpct_run *run = model->run;
    const hpct_run_node *built = &run->nodes[node];
    hpct_op_call call = {.src = built->src,
                         .bias = hpct_run_bias(run, node),
                         .dst = built->dst,
                         .param = built->param,
                         .workspace = built->workspace,
                         .scratch = run->scratch,
                         .replicas = &model->replicas,
                         .training = true};
    return synced_op(model, node) != NULL ? built->op->class->forward(built->op, &call) : HPCT_OK;
}

/* Its gradients, which may be on their way to the others, stay as they are. */
hpct_status hpct_norm_backward_absent(const hpct_model *model, int node)
{
    const hpct_run *run = model->run;
    const hpct_op *op = synced_op(model, node);
    if (op == NULL || !run->nodes[node].backward)
        return HPCT_OK;
    size_t sums = 2 * (size_t) op->spec.norm.channels;
    hpct_status status = hpct_memory_zero(run->backend, run->scratch, sums * sizeof(float));
    return status == HPCT_OK ? model->replicas.sum(model->replicas.argument, run->scratch, sums)
                             : status;
}

hpct_status hpct_model_forward_absent(hpct_model *model)
{
    hpct_status status = HPCT_OK;
    for (int i = 0; i < model->num_nodes && status == HPCT_OK; i++)
        status = hpct_norm_forward_absent(model, i);
    return status;
}

hpct_status hpct_model_backward_absent(hpct_model *model)
{
    hpct_status status = HPCT_OK;
    for (int i = model->num_nodes - 1; i >= 0 && status == HPCT_OK; i--) {
        const hpct_run_node *node = &model->run->nodes[i];
        if (!node->backward)
            continue;
        status = hpct_norm_backward_absent(model, i);
        if (status == HPCT_OK && model->watcher.advance != NULL)
            status = model->watcher.advance(model->watcher.argument, node->done);
    }
    return status;
}

/* ---- who are synchronized ---- */

void hpct_model_set_replicas(hpct_model *model, const hpct_replicas *replicas)
{
    model->replicas = replicas != NULL ? *replicas : (hpct_replicas){0};
}

bool hpct_model_has_own_statistics(const hpct_model *model)
{
    for (int i = 0; i < model->num_nodes; i++) {
        const hpct_op_spec *spec = &model->nodes[i].spec;
        if (spec->kind == HPCT_OP_BATCH_NORM && !spec->norm.synchronized)
            return true;
    }
    return false;
}

size_t hpct_model_synced_floats(const hpct_model *model)
{
    size_t floats = 0;
    for (int i = 0; i < model->num_nodes; i++) {
        const hpct_op_spec *spec = &model->nodes[i].spec;
        if (spec->kind == HPCT_OP_BATCH_NORM && spec->norm.synchronized)
            floats += 4 * (size_t) spec->norm.channels + 1;
    }
    return floats;
}

void hpct_model_synchronize_batch_normalization(hpct_model *model)
{
    for (int i = 0; i < model->num_nodes; i++) {
        hpct_node *node = &model->nodes[i];
        if (node->spec.kind != HPCT_OP_BATCH_NORM)
            continue;
        node->spec.norm.synchronized = true;
        model->layers[node->layer].config.batch_normalization.synchronized = true;
    }
}
