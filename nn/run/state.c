/* Training state by parameter; slots are those of the optimizer, and accumulated gradients. */
#include "nn/run/state.h"

#include "base/fnv.h"
#include "base/status.h"
#include "nn/graph/optimizer.h"
#include "nn/run/run.h"
#include "nn/run/step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the list ---- */

/* Name of a slot's directory, or NULL if this optimizer does not have it. */
static const char *slot_name(const hpct_model *model, int slot)
{
    const hpct_optimizer *o = &model->optimizer;
    if (slot == HPCT_GRAPH_SLOT_ACCUMULATED)
        return o->gradient_accumulation_steps > 1 ? "accumulated" : NULL;
    return slot < hpct_graph_optimizer_num_slots(o) ? hpct_graph_optimizers[o->kind].slots[slot]
                                                    : NULL;
}

static hpct_status add(hpct_run_state_list *list, const hpct_model *model, int param, int slot,
                       const char *slot_name)
{
    const hpct_graph_param *p = &model->params[param];
    hpct_run_state_value *v = &list->values[list->count];
    *v = (hpct_run_state_value){
        .shape = p->shape.rank > 0 ? p->shape : HPCT_SHAPE(1), /* a single number is a row */
        .count = hpct_graph_shape_count(&p->shape),
        .param = param,
        .slot = slot,
        .is_state = p->state && !p->frozen,
        .is_frozen = p->frozen,
        .is_accumulated = slot == HPCT_GRAPH_SLOT_ACCUMULATED,
    };
    int length = slot == HPCT_RUN_STATE_PARAM
                     ? asprintf(&v->name, "weights/%s", p->name)
                     : asprintf(&v->name, "optimizer/%s/%s", slot_name, p->name);
    if (length < 0)
        return hpct_fail_memory(0);
    list->count++;
    list->largest = v->count > list->largest ? v->count : list->largest;
    return HPCT_OK;
}

hpct_status hpct_run_state_list_make(hpct_run_state_list *out, const hpct_model *model)
{
    size_t most = (size_t) model->num_params * (1 + HPCT_GRAPH_NUM_SLOTS);
    *out = (hpct_run_state_list){.largest = 1};
    out->values = calloc(most + 1, sizeof *out->values);
    hpct_status status =
        out->values != NULL ? HPCT_OK : hpct_fail_memory(most * sizeof *out->values);
    for (int i = 0; i < model->num_params && status == HPCT_OK; i++) {
        status = add(out, model, i, HPCT_RUN_STATE_PARAM, NULL);
        for (int slot = 0; slot < HPCT_GRAPH_NUM_SLOTS && !model->params[i].state; slot++) {
            const char *name = slot_name(model, slot);
            if (status == HPCT_OK && name != NULL)
                status = add(out, model, i, slot, name);
        }
    }
    if (status != HPCT_OK)
        hpct_run_state_list_free(out);
    return status;
}

hpct_status hpct_run_state_list_add(hpct_run_state_list *list, const hpct_model *model, int slot,
                                    const char *slot_name)
{
    size_t most = (size_t) list->count + (size_t) model->num_params;
    hpct_run_state_value *more = realloc(list->values, most * sizeof *more);
    if (more == NULL)
        return hpct_fail_memory(most * sizeof *more);
    list->values = more;
    for (int i = 0; i < model->num_params; i++) {
        if (!model->params[i].state)
            HPCT_TRY(add(list, model, i, slot, slot_name));
    }
    return HPCT_OK;
}

void hpct_run_state_list_free(hpct_run_state_list *list)
{
    for (int i = 0; i < list->count; i++)
        free(list->values[i].name);
    free(list->values);
    *list = (hpct_run_state_list){.count = 0};
}

/* ---- values ---- */

hpct_status hpct_run_state_get(const hpct_model *model, int param, int slot, float *floats)
{
    bool any = true;
    hpct_status status = slot == HPCT_RUN_STATE_PARAM
                             ? hpct_run_param_get(model, param, floats)
                             : hpct_run_param_get_slot(model, param, slot, floats, &any);
    if (!any)
        memset(floats, 0, hpct_graph_shape_count(&model->params[param].shape) * sizeof *floats);
    return status;
}

/* What another model updates with has its slots there. */
hpct_status hpct_run_state_put(hpct_model *model, int param, int slot, const float *floats)
{
    if (slot >= 0 && slot != HPCT_GRAPH_SLOT_ACCUMULATED && model->run != NULL &&
        model->run->no_slots)
        return HPCT_OK;
    return slot == HPCT_RUN_STATE_PARAM ? hpct_run_param_set(model, param, floats)
                                        : hpct_run_param_set_slot(model, param, slot, floats);
}

/* Operations of a device convert its memory alone: the place of the gradients, which the next step
 * overwrites, has the array's part meanwhile. */
hpct_status hpct_run_state_get_arena(const hpct_model *model, int param, const float *arena,
                                     float *floats)
{
    const hpct_graph_param *p = &model->params[param];
    const hpct_run *run = model->run;
    hpct_op *op = run->nodes[p->node].op;
    size_t offset = run->arenas.param_offsets[param];
    if (run->backend->device == NULL)
        return hpct_op_export(op, p->index, arena + offset, floats);
    HPCT_TRY(hpct_backend_memory_from_host(run->backend, run->arenas.gradients + offset,
                                           arena + offset,
                                           op->param_floats[p->index] * sizeof *arena));
    return hpct_op_export(op, p->index, run->arenas.gradients + offset, floats);
}

hpct_status hpct_run_state_put_arena(const hpct_model *model, int param, float *arena,
                                     const float *floats)
{
    const hpct_graph_param *p = &model->params[param];
    const hpct_run *run = model->run;
    hpct_op *op = run->nodes[p->node].op;
    size_t offset = run->arenas.param_offsets[param];
    if (run->backend->device == NULL)
        return hpct_op_import(op, p->index, floats, arena + offset);
    HPCT_TRY(hpct_op_import(op, p->index, floats, run->arenas.gradients + offset));
    return hpct_backend_memory_to_host(run->backend, arena + offset, run->arenas.gradients + offset,
                                       op->param_floats[p->index] * sizeof *arena);
}

/* FNV-1a (Fowler, Noll, Vo), over words: there may be hundreds of millions. */
static uint64_t hash_floats(uint64_t hash, const float *floats, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &floats[i], sizeof bits);
        hash = (hash ^ bits) * UINT64_C(0x100000001b3);
    }
    return hash;
}

hpct_status hpct_run_state_hash_weights(const hpct_model *model, uint64_t *hash)
{
    hpct_run_state_list list;
    HPCT_TRY(hpct_run_state_list_make(&list, model));
    float *floats = malloc(list.largest * sizeof *floats);
    hpct_status status = floats != NULL ? HPCT_OK : hpct_fail_memory(list.largest * sizeof *floats);
    *hash = HPCT_FNV_START;
    for (int i = 0; i < list.count && status == HPCT_OK; i++) {
        const hpct_run_state_value *value = &list.values[i];
        if (value->slot != HPCT_RUN_STATE_PARAM || value->is_state)
            continue;
        status = hpct_run_state_get(model, value->param, value->slot, floats);
        if (status == HPCT_OK)
            *hash = hash_floats(*hash, floats, value->count);
    }
    free(floats);
    hpct_run_state_list_free(&list);
    return status;
}

hpct_status hpct_run_state_hash_frozen(const hpct_model *model, uint64_t *hash)
{
    *hash = 0;
    for (int i = 0; i < model->num_params; i++) {
        size_t bytes = hpct_graph_shape_count(&model->params[i].shape) * sizeof(float);
        if (!model->params[i].frozen)
            continue;
        float *values = malloc(bytes);
        if (values == NULL)
            return hpct_fail_memory(bytes);
        hpct_status status = hpct_run_param_get(model, i, values);
        *hash = hpct_fnv(*hash == 0 ? HPCT_FNV_START : *hash, values, bytes);
        free(values);
        HPCT_TRY(status);
    }
    return HPCT_OK;
}

hpct_status hpct_run_state_get_numbers(const hpct_model *model,
                                       double numbers[HPCT_RUN_STATE_NUMBERS])
{
    hpct_graph_loss_scaling s = model->scaling;
    if (model->run != NULL && hpct_model_scaling_bytes(model) > 0)
        HPCT_TRY(hpct_model_read_scaling(model, &s));
    numbers[0] = (double) model->steps;
    numbers[1] = (double) s.scale;
    numbers[2] = s.undo_1;
    numbers[3] = s.undo_2;
    numbers[4] = s.good;
    numbers[5] = (double) s.left_out;
    return HPCT_OK;
}

hpct_status hpct_run_state_put_numbers(hpct_model *model,
                                       const double numbers[HPCT_RUN_STATE_NUMBERS])
{
    const hpct_graph_loss_scaling s = {.scale = (float) numbers[1],
                                       .undo_1 = numbers[2],
                                       .undo_2 = numbers[3],
                                       .good = (int32_t) numbers[4],
                                       .left_out = (int32_t) numbers[5]};
    model->steps = (int64_t) numbers[0];
    model->scaling = s;
    return model->run != NULL && hpct_model_scaling_bytes(model) > 0
               ? hpct_model_write_scaling(model, &s)
               : HPCT_OK;
}
