/* Layers that are fused away are named by the one that computes them. */
#include "nn/run/finite.h"

#include "nn/plan/run.h"
#include "nn/run/step.h"

#include <math.h>
#include <stdio.h>

void hpct_model_watch_finite(hpct_model *model, hpct_run_finite_found *found)
{
    if (found != NULL)
        *found = (hpct_run_finite_found){.place = HPCT_RUN_FINITE};
    if (model->run != NULL && model->run->backend->device == NULL)
        model->run->finite = found;
}

bool hpct_model_loss_is_finite(const hpct_model *model)
{
    return model->run == NULL || model->run->backend->device != NULL ||
           isfinite(model->run->sums.host.loss);
}

static void check_values(const hpct_model *model, int node, hpct_run_finite_place place,
                         const float *values, size_t count)
{
    hpct_run_finite_found *found = model->run->finite;
    if (found->place != HPCT_RUN_FINITE || values == NULL || hpct_run_are_finite(values, count))
        return;
    found->place = place;
    snprintf(found->layer, sizeof found->layer, "%s", model->layers[model->nodes[node].layer].name);
}

void hpct_run_finite_look_before(const hpct_model *model, int node, int n)
{
    const hpct_run_node *built = &model->run->nodes[node];
    if (model->run->finite == NULL)
        return;
    if (node == 0)
        check_values(model, node, HPCT_RUN_FINITE_NOT_INPUT, built->src[0],
                     (size_t) n * hpct_op_src_floats(&built->op->spec, 0));
    for (int k = 0; k < built->op->num_params; k++)
        check_values(model, node, HPCT_RUN_FINITE_NOT_WEIGHTS, built->param[k],
                     built->op->param_floats[k]);
}

/* Of a node whose output a fused one replaces, such as its pooling, the smaller. */
void hpct_run_finite_look_after(const hpct_model *model, int node, int n)
{
    const hpct_run *run = model->run;
    const hpct_run_node *built = &run->nodes[node];
    if (run->finite == NULL)
        return;
    size_t floats = hpct_op_dst_floats(&built->op->spec);
    for (int i = 0; i < run->num_nodes; i++) {
        size_t other = hpct_op_dst_floats(&run->nodes[i].op->spec);
        if (run->nodes[i].fused_forward && run->nodes[i].dst == built->dst && other < floats)
            floats = other;
    }
    check_values(model, node, HPCT_RUN_FINITE_NOT_OUTPUT, built->dst, (size_t) n * floats);
}
