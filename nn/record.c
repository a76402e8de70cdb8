/* One parameter after the other, its value, then its slots. */
#include "nn/record.h"

#include "base/status.h"
#include "nn/run.h"

#include <stdlib.h>
#include <string.h>

static size_t floats_of(const hpct_param *param)
{
    return hpct_shape_count(&param->shape);
}

static int num_slots(const hpct_model *model, const hpct_record *record, int param)
{
    bool any = record->slots && !model->params[param].state;
    return any ? hpct_optimizer_num_slots(&model->optimizer) : 0;
}

size_t hpct_record_floats(const hpct_model *model, const hpct_record *record)
{
    size_t floats = 0;
    for (int i = record->first; i < record->first + record->count; i++)
        floats += floats_of(&model->params[i]) * (size_t) (1 + num_slots(model, record, i));
    return floats;
}

/* Where a slot lies in the arenas, or NULL when it lies in the model. */
static float *slot_in_arena(const hpct_model *model, int i, int slot)
{
    const hpct_run *run = model->run;
    return run != NULL && run->slot[slot] != NULL ? run->slot[slot] + run->param_offsets[i] : NULL;
}

static hpct_status put_slot(const hpct_model *model, int i, int slot, float *keras)
{
    const hpct_param *param = &model->params[i];
    const float *arena = slot_in_arena(model, i, slot);
    size_t bytes = floats_of(param) * sizeof *keras;
    if (arena != NULL) {
        hpct_op *op = model->run->nodes[param->node].op;
        return op->class->export_param(op, param->index, arena, keras);
    }
    if (param->slot[slot] != NULL)
        memcpy(keras, param->slot[slot], bytes);
    else
        memset(keras, 0, bytes);
    return HPCT_OK;
}

static hpct_status take_slot(hpct_model *model, int i, int slot, const float *keras)
{
    hpct_param *param = &model->params[i];
    float *arena = slot_in_arena(model, i, slot);
    size_t bytes = floats_of(param) * sizeof *keras;
    if (arena != NULL) {
        hpct_op *op = model->run->nodes[param->node].op;
        return op->class->import_param(op, param->index, keras, arena);
    }
    if (param->slot[slot] == NULL)
        param->slot[slot] = malloc(bytes);
    if (param->slot[slot] == NULL)
        return hpct_fail_memory(bytes);
    memcpy(param->slot[slot], keras, bytes);
    return HPCT_OK;
}

hpct_status hpct_record_put(const hpct_model *model, const hpct_record *record, float *floats)
{
    hpct_status status = HPCT_OK;
    for (int i = record->first; i < record->first + record->count && status == HPCT_OK; i++) {
        size_t count = floats_of(&model->params[i]);
        status = hpct_param_get(model, i, floats);
        floats += count;
        for (int k = 0; k < num_slots(model, record, i) && status == HPCT_OK; k++) {
            status = put_slot(model, i, k, floats);
            floats += count;
        }
    }
    return status;
}

hpct_status hpct_record_take(hpct_model *model, const hpct_record *record, const float *floats)
{
    hpct_status status = HPCT_OK;
    for (int i = record->first; i < record->first + record->count && status == HPCT_OK; i++) {
        size_t count = floats_of(&model->params[i]);
        status = hpct_param_set(model, i, floats);
        floats += count;
        for (int k = 0; k < num_slots(model, record, i) && status == HPCT_OK; k++) {
            status = take_slot(model, i, k, floats);
            floats += count;
        }
    }
    return status;
}
