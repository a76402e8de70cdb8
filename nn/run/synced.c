/* Which BatchNormalizations are synchronized, and their communication by replicas without
 * samples. */
#include "nn/run/synced.h"

#include "base/status.h"
#include "nn/plan/run.h"

/* ---- a replica without samples in this step ---- */

static const hpct_op *synced_op(const hpct_model *model, int node)
{
    const hpct_op *op = model->run->nodes[node].op;
    return hpct_op_is_synced_norm(&op->spec) && model->peers.sum != NULL ? op : NULL;
}

hpct_status hpct_run_norm_forward_absent(const hpct_model *model, int node)
{
    hpct_run *run = model->run;
    const hpct_run_node *built = &run->nodes[node];
    hpct_op_call call = {.src = built->src,
                         .bias = built->bias,
                         .dst = built->dst,
                         .param = built->param,
                         .workspace = built->workspace,
                         .scratch = run->plan.scratch,
                         .replicas = &model->peers,
                         .training = true};
    return synced_op(model, node) != NULL ? built->op->class->forward(built->op, &call) : HPCT_OK;
}

/* Leaves the node's gradients unchanged: they may be in transit to other replicas. */
hpct_status hpct_run_norm_backward_absent(const hpct_model *model, int node)
{
    const hpct_run *run = model->run;
    const hpct_op *op = synced_op(model, node);
    if (op == NULL || !run->nodes[node].backward)
        return HPCT_OK;
    size_t sums = 2 * (size_t) op->spec.norm.channels;
    HPCT_TRY(hpct_backend_memory_zero(run->backend, run->plan.scratch, sums * sizeof(float)));
    return model->peers.sum(model->peers.argument, run->plan.scratch, sums);
}

hpct_status hpct_model_forward_absent(hpct_model *model)
{
    for (int i = 0; i < model->num_nodes; i++)
        HPCT_TRY(hpct_run_norm_forward_absent(model, i));
    return HPCT_OK;
}

hpct_status hpct_model_backward_absent(hpct_model *model)
{
    for (int i = model->num_nodes - 1; i >= 0; i--) {
        const hpct_run_node *node = &model->run->nodes[i];
        if (!node->backward)
            continue;
        HPCT_TRY(hpct_run_norm_backward_absent(model, i));
        if (model->peers.advance != NULL)
            HPCT_TRY(model->peers.advance(model->peers.argument, node->done));
    }
    return HPCT_OK;
}

/* ---- which are synchronized ---- */

bool hpct_model_has_own_statistics(const hpct_model *model)
{
    for (int i = 0; i < model->num_nodes; i++) {
        const hpct_op_spec *spec = &model->nodes[i].spec;
        if (spec->kind == HPCT_OP_BATCH_NORM && !spec->norm.synchronized && !spec->norm.frozen)
            return true;
    }
    return false;
}

size_t hpct_model_synced_floats(const hpct_model *model)
{
    size_t floats = 0;
    for (int i = 0; i < model->num_nodes; i++) {
        const hpct_op_spec *spec = &model->nodes[i].spec;
        if (hpct_op_is_synced_norm(spec))
            floats += 4 * (size_t) spec->norm.channels + 1;
    }
    return floats;
}

void hpct_model_synchronize_batch_normalization(hpct_model *model)
{
    for (int i = 0; i < model->num_nodes; i++) {
        hpct_graph_node *node = &model->nodes[i];
        if (node->spec.kind != HPCT_OP_BATCH_NORM)
            continue;
        node->spec.norm.synchronized = true;
        model->layers[node->layer].config.batch_normalization.synchronized = true;
    }
}
