/* Memory that a build would take: the same operations, arenas and lifetimes, without allocating. */
#include "nn/plan/run.h"

#include "base/status.h"

size_t hpct_run_scratch_bytes(const hpct_run *run)
{
    size_t most = 0;
    for (int i = 0; i < run->num_nodes; i++) {
        if (run->nodes[i].op->scratch_bytes > most)
            most = run->nodes[i].op->scratch_bytes;
    }
    return most;
}

/* Floats of the gradient arena that take memory, tail included. On the host, gradients applied by
 * backward are never touched and take none. */
static size_t gradient_floats(const hpct_run *run)
{
    size_t floats = run->training ? run->arenas.floats + HPCT_RUN_ARENA_PIGGYBACK : 0;
    for (int i = 0; i < run->num_nodes; i++) {
        const hpct_op *op = run->nodes[i].op;
        if (op->kernel_fused && run->backend->device == NULL)
            floats -= op->param_floats[HPCT_OP_KERNEL];
    }
    return floats;
}

/* Bytes held by the unbuilt model, or by an earlier build that this one replaces. */
static size_t freed_bytes(const hpct_model *model, const hpct_run *run)
{
    size_t floats = 0;
    const hpct_run *old = model->run;
    if (old != NULL) {
        floats = old->arenas.state_floats + old->arenas.frozen_floats + old->arenas.floats +
                 gradient_floats(old);
        for (int k = 0; k < HPCT_GRAPH_NUM_SLOTS; k++)
            floats += old->arenas.slot[k] != NULL ? old->arenas.floats : 0;
        return floats * sizeof(float) + old->plan.block_bytes + hpct_run_scratch_bytes(old) +
               hpct_run_copies_bytes(old);
    }
    /* on a device nothing is gained: the values are in host memory */
    for (int i = 0; i < model->num_params && run->backend->device == NULL; i++) {
        const hpct_graph_param *param = &model->params[i];
        size_t count = hpct_graph_shape_count(&param->shape);
        floats += param->value != NULL ? count : 0;
        for (int k = 0; k < HPCT_GRAPH_NUM_SLOTS; k++)
            floats += param->slot[k] != NULL && hpct_run_has_slot(model, run, k) ? count : 0;
    }
    return floats * sizeof(float);
}

hpct_status hpct_model_plan(const hpct_model *model, const hpct_run_build_options *options,
                            hpct_run_memory_plan *plan)
{
    hpct_run *run = NULL;
    *plan = (hpct_run_memory_plan){0};
    hpct_status status = hpct_run_prepare(&run, model, options);
    if (status == HPCT_OK)
        status = hpct_run_place(model, run, plan);
    if (status != HPCT_OK)
        goto end;
    size_t arena = run->arenas.floats * sizeof(float), batch = (size_t) run->input.samples;
    plan->parameters = (run->arenas.borrows ? 0 : arena) + hpct_run_state_bytes(run);
    plan->copies = hpct_run_copies_bytes(run);
    plan->gradients = gradient_floats(run) * sizeof(float) + hpct_run_spare_bytes(run);
    for (int k = 0; k < HPCT_GRAPH_NUM_SLOTS; k++)
        plan->optimizer += hpct_run_has_slot(model, run, k) ? arena : 0;
    plan->scratch = hpct_run_scratch_bytes(run) + hpct_run_target_bytes(run, run->input.samples) +
                    hpct_run_transit_bytes(model, run);
    plan->input = batch * (hpct_graph_shape_count(&model->tensors[0].shape) * sizeof(float) +
                           sizeof(int32_t));
    plan->freed = freed_bytes(model, run);
end:
    hpct_run_free(run);
    return status;
}

size_t hpct_run_memory_plan_total(const hpct_run_memory_plan *plan)
{
    return plan->parameters + plan->copies + plan->gradients + plan->optimizer + plan->activations +
           plan->scratch;
}

size_t hpct_run_memory_plan_growth(const hpct_run_memory_plan *plan)
{
    size_t total = hpct_run_memory_plan_total(plan), moved_in = plan->parameters + plan->optimizer;
    return total > moved_in + plan->freed ? total - plan->freed : moved_in;
}

int hpct_model_largest_batch(const hpct_model *model)
{
    size_t largest = 1;
    for (int i = 0; i < model->num_tensors; i++) {
        size_t count = hpct_graph_shape_count(&model->tensors[i].shape);
        largest = count > largest ? count : largest;
    }
    return largest > INT32_MAX ? 1 : (int) (INT32_MAX / largest);
}
