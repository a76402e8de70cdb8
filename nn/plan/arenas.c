/* The arenas of parameters, gradients, optimizer slots and states: their layout, and their memory.
 */
#include "nn/plan/arenas.h"

#include "base/fnv.h"
#include "base/status.h"

#include <stdlib.h>

static size_t arena_floats(const hpct_op *op, int param)
{
    return (op->param_floats[param] + HPCT_BACKEND_ARENA_ALIGN - 1) / HPCT_BACKEND_ARENA_ALIGN *
           HPCT_BACKEND_ARENA_ALIGN;
}

/* Leaves the parameter to update(), in one range with the one before if the optimizer allows. */
static void add_update(const hpct_model *model, hpct_run *run, const hpct_graph_param *param,
                       size_t offset, size_t count)
{
    const hpct_optimizer *optimizer = &model->optimizer;
    const float factor = hpct_graph_node_rate_factor(model, &model->nodes[param->node]);
    hpct_backend_update_range *last =
        run->arenas.num_updates > 0 ? &run->arenas.updates[run->arenas.num_updates - 1] : NULL;
    if (last != NULL && last->offset + last->count == offset && last->split == param->split &&
        last->rate_factor == factor && !hpct_graph_optimizer_by_parameter(optimizer))
        last->count += count;
    else
        run->arenas.updates[run->arenas.num_updates++] = (hpct_backend_update_range){
            offset, count, .rate_factor = factor,
            .adapt = param->shape.rank > 1 || optimizer->trust_all, .split = param->split};
}

/* Lists the parameter if it has a regularizer. */
static void add_penalty(hpct_run *run, const hpct_graph_param *param, size_t offset, size_t count)
{
    if (!hpct_graph_param_has_penalty(param))
        return;
    run->arenas.penalties[run->arenas.num_penalties++] =
        (hpct_backend_penalty){.offset = offset,
                               .count = count,
                               .l1 = (float) param->l1,
                               .l2 = (float) param->l2,
                               .split = param->split};
}

/* Frozen parameters follow the moving statistics, so that the latter are one range. */
static void lay_out_state(const hpct_model *model, hpct_run *run, int param, size_t count)
{
    size_t *floats =
        model->params[param].frozen ? &run->arenas.frozen_floats : &run->arenas.state_floats;
    run->arenas.param_offsets[param] = *floats;
    *floats += count;
}

static void place_frozen(const hpct_model *model, hpct_run *run)
{
    for (int i = 0; i < model->num_params; i++) {
        if (model->params[i].frozen)
            run->arenas.param_offsets[i] += run->arenas.state_floats;
    }
}

hpct_status hpct_run_lay_out_arenas(const hpct_model *model, hpct_run *run)
{
    size_t num = (size_t) model->num_params + 1;
    run->arenas.param_offsets = calloc(num, sizeof *run->arenas.param_offsets);
    run->arenas.updates = calloc(num, sizeof *run->arenas.updates);
    run->arenas.penalties = calloc(num, sizeof *run->arenas.penalties);
    if (run->arenas.param_offsets == NULL || run->arenas.updates == NULL ||
        run->arenas.penalties == NULL)
        return hpct_fail_memory(num * sizeof *run->arenas.updates);
    uint64_t hash = HPCT_FNV_START;
    size_t offset = 0;
    for (int i = model->num_nodes - 1; i >= 0; i--) {
        const hpct_graph_node *node = &model->nodes[i];
        const hpct_op *op = run->nodes[i].op;
        for (int k = 0; k < node->num_params; k++) {
            int param = node->first_param + k;
            size_t count = arena_floats(op, k);
            uint64_t facts[3] = {op->param_layout[k], op->param_floats[k], 1};
            hash = hpct_fnv(hash, facts, (model->params[param].frozen ? 3 : 2) * sizeof *facts);
            if (model->params[param].state) {
                lay_out_state(model, run, param, count);
                continue;
            }
            run->arenas.param_offsets[param] = offset;
            add_penalty(run, &model->params[param], offset, count);
            if (k != HPCT_OP_KERNEL || !op->kernel_fused)
                add_update(model, run, &model->params[param], offset, count);
            offset += count;
        }
        run->nodes[i].done = offset;
    }
    place_frozen(model, run);
    run->arenas.floats = offset;
    run->arenas.fingerprint = hash;
    return HPCT_OK;
}

static void *allocate_memory(const hpct_run *run, size_t bytes, const char *what,
                             hpct_status *status)
{
    if (*status != HPCT_OK)
        return NULL;
    void *memory = run->backend->allocate(bytes);
    if (memory == NULL)
        *status = hpct_backend_memory_fail(run->backend, bytes, "%s", what);
    return memory;
}

bool hpct_run_has_slot(const hpct_model *model, const hpct_run *run, int slot)
{
    const hpct_optimizer *optimizer = &model->optimizer;
    if (run->arenas.borrows)
        return false;
    if (slot == HPCT_GRAPH_SLOT_ACCUMULATED)
        return run->training && optimizer->gradient_accumulation_steps > 1;
    return run->training && !run->no_slots && slot < hpct_graph_optimizer_num_slots(optimizer);
}

size_t hpct_run_state_bytes(const hpct_run *run)
{
    return (run->arenas.state_floats + run->arenas.frozen_floats) * sizeof(float);
}

/* Floats of the gradients of a frozen layer that the operation computes all the same. */
static size_t spare_floats(const hpct_run_node *node)
{
    const hpct_op *op = node->op;
    size_t floats = 0;
    if (!node->backward || !op->build.frozen || op->omits_grads)
        return 0;
    for (int k = 0; k < op->num_params; k++)
        floats += arena_floats(op, k);
    return floats;
}

size_t hpct_run_spare_bytes(const hpct_run *run)
{
    size_t most = 0;
    for (int i = 0; i < run->num_nodes; i++) {
        size_t floats = spare_floats(&run->nodes[i]);
        most = floats > most ? floats : most;
    }
    return most * sizeof(float);
}

size_t hpct_run_target_bytes(const hpct_run *run, int samples)
{
    return run->dense_targets ? (size_t) samples * (size_t) run->loss.classes * sizeof(float) : 0;
}

static size_t rounded(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

size_t hpct_run_copies_bytes(const hpct_run *run)
{
    size_t bytes = 0;
    for (int i = 0; i < run->num_nodes; i++)
        bytes += rounded(run->nodes[i].op->copies_bytes);
    return bytes;
}

static char *take_copies(hpct_run *run, hpct_status *status)
{
    char *copies = allocate_memory(run, hpct_run_copies_bytes(run), "copies of parameters", status),
         *at = copies;
    for (int i = 0; i < run->num_nodes && at != NULL; i++) {
        run->nodes[i].copies = at;
        at += rounded(run->nodes[i].op->copies_bytes);
    }
    run->arenas.stale = true;
    return copies;
}

hpct_status hpct_run_allocate(const hpct_model *model, hpct_run *run)
{
    hpct_status status = HPCT_OK;
    size_t arena = run->arenas.floats * sizeof(float);
    if (!run->arenas.borrows)
        run->arenas.parameters = allocate_memory(run, arena, "parameters", &status);
    run->arenas.states =
        allocate_memory(run, hpct_run_state_bytes(run), "moving statistics", &status);
    if (run->arenas.num_penalties > 0)
        run->arenas.penalty = allocate_memory(run, 2 * sizeof(float), "penalties", &status);
    if (hpct_run_spare_bytes(run) > 0)
        run->arenas.spare =
            allocate_memory(run, hpct_run_spare_bytes(run), "unused gradients", &status);
    if (run->training)
        run->arenas.gradients = allocate_memory(
            run, arena + HPCT_RUN_ARENA_PIGGYBACK * sizeof(float), "gradients", &status);
    for (int k = 0; k < HPCT_GRAPH_NUM_SLOTS; k++) {
        if (hpct_run_has_slot(model, run, k))
            run->arenas.slot[k] = allocate_memory(run, arena, "the optimizer", &status);
    }
    if (run->training && model->precision == HPCT_FP16)
        run->arenas.scaling =
            allocate_memory(run, sizeof *run->arenas.scaling, "the loss scale", &status);
    run->plan.scratch = allocate_memory(run, hpct_run_scratch_bytes(run), "scratch", &status);
    run->arenas.copies = take_copies(run, &status);
    if (status == HPCT_OK)
        status = hpct_run_place(model, run, NULL);
    return status == HPCT_OK ? hpct_run_make_transit(model, run) : status;
}

float *hpct_run_param(const hpct_model *model, const hpct_run *run, int param)
{
    float *arena = model->params[param].state ? run->arenas.states : run->arenas.parameters;
    return arena + run->arenas.param_offsets[param];
}

static void point_at_spare(const hpct_run *run, hpct_run_node *node)
{
    float *at = run->arenas.spare;
    for (int k = 0; k < node->op->num_params && spare_floats(node) > 0; k++) {
        node->grad[k] = at;
        at += arena_floats(node->op, k);
    }
}

void hpct_run_point_at_params(const hpct_model *model, hpct_run *run)
{
    for (int i = 0; i < run->num_nodes; i++)
        point_at_spare(run, &run->nodes[i]);
    for (int i = 0; i < model->num_params; i++) {
        hpct_run_node *node = &run->nodes[model->params[i].node];
        int index = model->params[i].index;
        node->param[index] = hpct_run_param(model, run, i);
        if (run->arenas.gradients != NULL && !model->params[i].state)
            node->grad[index] = run->arenas.gradients + run->arenas.param_offsets[i];
    }
}

void hpct_run_free_arenas(hpct_run *run)
{
    hpct_run_arenas *arenas = &run->arenas;
    void *const memory[] = {arenas->borrows ? NULL : arenas->parameters,
                            arenas->copies,
                            arenas->gradients,
                            arenas->scaling,
                            arenas->penalty,
                            arenas->states,
                            arenas->spare};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        run->backend->release(memory[i]);
    for (int k = 0; k < HPCT_GRAPH_NUM_SLOTS; k++)
        run->backend->release(arenas->slot[k]);
    free(arenas->param_offsets);
    free(arenas->updates);
    free(arenas->penalties);
}
