/* Order: by parameter, its value, then its slots. */
#include "nn/run/record.h"

#include "base/status.h"
#include "nn/run/run.h"
#include "nn/run/state.h"

static size_t floats_of(const hpct_graph_param *param)
{
    return hpct_graph_shape_count(&param->shape);
}

static int num_slots(const hpct_model *model, const hpct_run_record *record, int param)
{
    bool any = record->slots && !model->params[param].state;
    return any ? hpct_graph_optimizer_num_slots(&model->optimizer) : 0;
}

hpct_run_record hpct_run_record_all(const hpct_model *model, bool slots)
{
    return (hpct_run_record){.count = model->num_params, .slots = slots};
}

size_t hpct_run_record_floats(const hpct_model *model, const hpct_run_record *record)
{
    size_t floats = 0;
    for (int i = record->first; i < record->first + record->count; i++)
        floats += floats_of(&model->params[i]) * (size_t) (1 + num_slots(model, record, i));
    return floats;
}

/* Slot HPCT_RUN_STATE_PARAM is the value. */
hpct_status hpct_run_record_put(const hpct_model *model, const hpct_run_record *record,
                                float *floats)
{
    for (int i = record->first; i < record->first + record->count; i++) {
        for (int k = HPCT_RUN_STATE_PARAM; k < num_slots(model, record, i); k++) {
            HPCT_TRY(hpct_run_state_get(model, i, k, floats));
            floats += floats_of(&model->params[i]);
        }
    }
    return HPCT_OK;
}

hpct_status hpct_run_record_take(hpct_model *model, const hpct_run_record *record,
                                 const float *floats)
{
    for (int i = record->first; i < record->first + record->count; i++) {
        size_t count = floats_of(&model->params[i]);
        HPCT_TRY(hpct_run_param_set(model, i, floats));
        floats += count;
        for (int k = 0; k < num_slots(model, record, i); k++) {
            HPCT_TRY(hpct_run_param_set_slot(model, i, k, floats));
            floats += count;
        }
    }
    return HPCT_OK;
}
