/* Value by value, in host memory. */
#include "agent/train/kept_weights.h"

#include "base/status.h"
#include "nn/run/state.h"

#include <stdlib.h>
#include <string.h>

static size_t count_floats(const hpct_state_list *list)
{
    size_t count = 0;
    for (int i = 0; i < list->count; i++)
        count += list->values[i].slot == HPCT_STATE_PARAM ? list->values[i].count : 0;
    return count;
}

static hpct_status take(hpct_kept_weights *kept, const hpct_model *model,
                        const hpct_state_list *list)
{
    size_t at = 0, count = count_floats(list);
    if (kept->floats == NULL)
        kept->floats = malloc((count + 1) * sizeof *kept->floats);
    if (kept->floats == NULL)
        return hpct_fail_memory(count * sizeof *kept->floats);
    for (int i = 0; i < list->count; i++) {
        const hpct_state_value *value = &list->values[i];
        if (value->slot != HPCT_STATE_PARAM)
            continue;
        HPCT_TRY(hpct_state_get(model, value->param, value->slot, kept->floats + at));
        at += value->count;
    }
    return HPCT_OK;
}

hpct_status hpct_kept_weights_take(hpct_kept_weights *kept, const hpct_context *context,
                                   const hpct_model *model)
{
    hpct_state_list list;
    kept->has = true;
    if (hpct_context_rank(context) != 0)
        return HPCT_OK;
    HPCT_TRY(hpct_state_list_make(&list, model));
    hpct_status status = take(kept, model, &list);
    hpct_state_list_free(&list);
    return status;
}

static hpct_status give(const hpct_kept_weights *kept, hpct_context *context, hpct_model *model,
                        const hpct_state_list *list, float *floats)
{
    size_t at = 0;
    hpct_comm *comm = hpct_context_comm(context);
    hpct_status status = HPCT_OK;
    for (int i = 0; i < list->count; i++) {
        const hpct_state_value *value = &list->values[i];
        if (value->slot != HPCT_STATE_PARAM)
            continue;
        if (hpct_context_rank(context) == 0)
            memcpy(floats, kept->floats + at, value->count * sizeof *floats);
        HPCT_TRY(comm->ops->broadcast(comm, floats, value->count * sizeof *floats, 0));
        if (status == HPCT_OK) /* the others are still in the loop */
            status = hpct_state_put(model, value->param, value->slot, floats);
        at += value->count;
    }
    return hpct_context_agree(context, status);
}

hpct_status hpct_kept_weights_give(const hpct_kept_weights *kept, hpct_context *context,
                                   hpct_model *model)
{
    hpct_state_list list = {0};
    float *floats = NULL;
    hpct_status status = hpct_state_list_make(&list, model);
    if (status == HPCT_OK && (floats = malloc(list.largest * sizeof *floats)) == NULL)
        status = hpct_fail_memory(list.largest * sizeof *floats);
    status = hpct_context_agree(context, status);
    if (status == HPCT_OK)
        status = give(kept, context, model, &list, floats);
    hpct_state_list_free(&list);
    free(floats);
    return status;
}

void hpct_kept_weights_free(hpct_kept_weights *kept)
{
    free(kept->floats);
    *kept = (hpct_kept_weights){0};
}
