/* Training state by parameter; slots are those of the optimizer, and accumulated gradients. */
#include "nn/run/state.h"

#include "base/status.h"
#include "nn/graph/optimizer.h"
#include "nn/plan/run.h"
#include "nn/run/step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUE (-1) /* not a slot */

/* Name of a slot's directory, or NULL if this optimizer does not have it. */
static const char *slot_name(const hpct_model *model, int slot)
{
    const hpct_optimizer *o = &model->optimizer;
    if (slot == HPCT_SLOT_ACCUMULATED)
        return o->gradient_accumulation_steps > 1 ? "accumulated" : NULL;
    return slot < hpct_optimizer_num_slots(o) ? hpct_optimizers[o->kind].slots[slot] : NULL;
}

/* Calls `use` for every tensor of the state, in a fixed order. */
typedef hpct_status visitor(void *argument, int param, int slot, const char *slot_name);

static hpct_status visit(const hpct_model *model, bool states_only, visitor *use, void *argument)
{
    for (int i = 0; i < model->num_params; i++) {
        if (states_only && !model->params[i].state)
            continue;
        HPCT_TRY(use(argument, i, VALUE, NULL));
        for (int slot = 0; slot < HPCT_NUM_SLOTS && !model->params[i].state; slot++) {
            const char *name = slot_name(model, slot);
            if (name != NULL)
                HPCT_TRY(use(argument, i, slot, name));
        }
    }
    return HPCT_OK;
}

static hpct_status count_one(void *argument, int param, int slot, const char *name)
{
    (void) param;
    (void) slot;
    (void) name;
    ++*(int *) argument;
    return HPCT_OK;
}

typedef struct filling {
    hpct_state *state;
    const hpct_model *model;
    hpct_model *target; /* of put */
    int next;
} filling;

static hpct_status add(void *argument, int param, int slot, const char *slot_name)
{
    filling *f = argument;
    const hpct_param *p = &f->model->params[param];
    hpct_state_tensor *t = &f->state->tensors[f->next++];
    int length = slot == VALUE ? asprintf(&t->name, "weights/%s", p->name)
                               : asprintf(&t->name, "optimizer/%s/%s", slot_name, p->name);
    if (length < 0) {
        t->name = NULL;
        return hpct_fail_memory(0);
    }
    t->shape = p->shape;
    t->count = hpct_shape_count(&p->shape);
    t->is_state = p->state;
    t->is_accumulated = slot == HPCT_SLOT_ACCUMULATED;
    t->values = calloc(t->count, sizeof *t->values);
    return t->values != NULL ? HPCT_OK : hpct_fail_memory(t->count * sizeof *t->values);
}

hpct_status hpct_state_new(hpct_state **out, const hpct_model *model, bool states_only)
{
    int num = 0;
    hpct_state *state = calloc(1, sizeof *state);
    if (state == NULL)
        return hpct_fail_memory(sizeof *state);
    hpct_status status = visit(model, states_only, count_one, &num);
    state->tensors = calloc((size_t) num + 1, sizeof *state->tensors);
    state->num_tensors = state->tensors != NULL ? num : 0;
    state->states_only = states_only;
    if (state->tensors == NULL)
        status = hpct_fail_memory((size_t) num * sizeof *state->tensors);
    if (status == HPCT_OK)
        status = visit(model, states_only, add, &(filling){.state = state, .model = model});
    if (status == HPCT_OK)
        *out = state;
    else
        hpct_state_free(state);
    return status;
}

void hpct_state_free(hpct_state *state)
{
    if (state == NULL)
        return;
    for (int i = 0; i < state->num_tensors; i++) {
        free(state->tensors[i].name);
        free(state->tensors[i].values);
    }
    free(state->tensors);
    free(state);
}

static hpct_status take_one(void *argument, int param, int slot, const char *slot_name)
{
    filling *f = argument;
    hpct_state_tensor *t = &f->state->tensors[f->next++];
    bool any = true;
    (void) slot_name;
    hpct_status status = slot == VALUE
                             ? hpct_param_get(f->model, param, t->values)
                             : hpct_param_get_slot(f->model, param, slot, t->values, &any);
    if (!any)
        memset(t->values, 0, t->count * sizeof *t->values);
    return status;
}

hpct_status hpct_state_take(hpct_state *state, const hpct_model *model)
{
    hpct_loss_scaling s = model->scaling;
    HPCT_TRY(
        visit(model, state->states_only, take_one, &(filling){.state = state, .model = model}));
    if (model->run != NULL && hpct_model_scaling_bytes(model) > 0)
        HPCT_TRY(hpct_model_read_scaling(model, &s));
    state->steps = model->steps;
    state->scaling = (hpct_state_scaling){s.scale, s.undo_1, s.undo_2, s.good, s.left_out};
    return HPCT_OK;
}

static hpct_status put_one(void *argument, int param, int slot, const char *slot_name)
{
    filling *f = argument;
    const hpct_state_tensor *t = &f->state->tensors[f->next++];
    (void) slot_name;
    return slot == VALUE ? hpct_param_set(f->target, param, t->values)
                         : hpct_param_set_slot(f->target, param, slot, t->values);
}

hpct_status hpct_state_put(hpct_state *state, hpct_model *model)
{
    const hpct_state_scaling *from = &state->scaling;
    const hpct_loss_scaling s = {.scale = (float) from->scale,
                                 .undo_1 = from->undo_1,
                                 .undo_2 = from->undo_2,
                                 .good = (int32_t) from->good,
                                 .left_out = (int32_t) from->left_out};
    HPCT_TRY(visit(model, state->states_only, put_one,
                   &(filling){.state = state, .model = model, .target = model}));
    if (state->states_only)
        return HPCT_OK;
    model->steps = state->steps;
    model->scaling = s;
    return model->run != NULL && hpct_model_scaling_bytes(model) > 0
               ? hpct_model_write_scaling(model, &s)
               : HPCT_OK;
}
