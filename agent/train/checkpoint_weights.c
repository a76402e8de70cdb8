/* hpct_checkpoint_load_weights: a checkpoint's weights for a model. All are read before the model
 * is changed. */
#include "agent/checkpoint/store.h"
#include "base/status.h"
#include "nn/run/state.h"
#include "nn/run/step.h"

#include <hpctrain/checkpoint.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WEIGHTS "weights/" /* before their names */

typedef struct loading {
    hpct_ckpt *checkpoint;
    hpct_run_state_list list;
    float **floats; /* [list.count]; NULL for what is not a weight */
    bool allow_nan;
} loading;

static hpct_status check_finite(const loading *l, const hpct_run_state_value *value,
                                const float *floats)
{
    size_t odd = 0;
    for (size_t i = 0; i < value->count; i++)
        odd += isfinite(floats[i]) ? 0 : 1;
    if (odd == 0 || l->allow_nan)
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_DATA,
                     "%s: %zu of the %zu numbers of \"%s\" are NaN or infinite, as when training "
                     "has diverged: take an earlier checkpoint (or this one all the same: "
                     "--allow-nan)",
                     hpct_ckpt_folder(l->checkpoint), odd, value->count,
                     value->name + strlen(WEIGHTS));
}

static hpct_status read_one(loading *l, int index)
{
    const hpct_run_state_value *value = &l->list.values[index];
    hpct_ckpt_store_tensor tensor = {
        .name = value->name, .type = HPCT_CKPT_STORE_F32, .rank = value->shape.rank};
    if (value->slot != HPCT_RUN_STATE_PARAM)
        return HPCT_OK;
    if (!hpct_ckpt_find(l->checkpoint, value->name, NULL))
        return hpct_fail(HPCT_ERR_DATA, "%s: tensor \"%s\" is missing: is it of this model?",
                         hpct_ckpt_folder(l->checkpoint), value->name + strlen(WEIGHTS));
    for (int i = 0; i < tensor.rank; i++)
        tensor.shape[i] = value->shape.size[i];
    l->floats[index] = malloc(value->count * sizeof(float));
    if (l->floats[index] == NULL)
        return hpct_fail_memory(value->count * sizeof(float));
    HPCT_TRY(hpct_ckpt_read(l->checkpoint, &tensor, l->floats[index]));
    return check_finite(l, value, l->floats[index]);
}

static bool is_known(const hpct_run_state_list *list, const char *name)
{
    for (int i = 0; i < list->count; i++) {
        if (list->values[i].slot == HPCT_RUN_STATE_PARAM && strcmp(list->values[i].name, name) == 0)
            return true;
    }
    return false;
}

/* Weights that the model does not have: it is another one. */
static hpct_status check_names(const loading *l)
{
    size_t count = hpct_ckpt_count(l->checkpoint);
    for (size_t i = 0; i < count; i++) {
        hpct_ckpt_store_tensor tensor;
        hpct_ckpt_tensor(l->checkpoint, i, &tensor);
        if (strncmp(tensor.name, WEIGHTS, strlen(WEIGHTS)) == 0 && !is_known(&l->list, tensor.name))
            return hpct_fail(HPCT_ERR_DATA, "%s: the model has no \"%.80s\"",
                             hpct_ckpt_folder(l->checkpoint), tensor.name + strlen(WEIGHTS));
    }
    return HPCT_OK;
}

static hpct_status set_names(const json_t *list, hpct_model *model)
{
    size_t count = json_array_size(list), i;
    json_t *name;
    const char **names = calloc(count + 1, sizeof *names);
    if (names == NULL)
        return hpct_fail_memory((count + 1) * sizeof *names);
    json_array_foreach(list, i, name)
    {
        names[i] = json_string_value(name) != NULL ? json_string_value(name) : "";
    }
    hpct_status status = hpct_model_set_class_names(model, names, (int) count);
    free(names);
    return status;
}

/* Names of outputs, with their loss. */
static hpct_status set_outputs(const json_t *object, hpct_model *model)
{
    char *text = json_dumps(object, JSON_COMPACT);
    hpct_status status =
        text != NULL ? hpct_model_set_names_text(model, text) : hpct_fail_memory(0);
    free(text);
    return status;
}

/* A list, or an object of outputs, or its text. */
static hpct_status set_class_names(const loading *l, hpct_model *model)
{
    json_t *state = json_loads(hpct_ckpt_state(l->checkpoint), 0, NULL);
    json_t *names = json_incref(json_object_get(state, "class_names"));
    if (json_is_string(names)) {
        json_t *list = json_loads(json_string_value(names), 0, NULL);
        json_decref(names);
        names = list;
    }
    hpct_status status = json_is_object(names)
                             ? set_outputs(names, model)
                             : set_names(json_is_array(names) ? names : NULL, model);
    json_decref(names);
    json_decref(state);
    return status;
}

static hpct_status set_trained_with(const loading *l, hpct_model *model)
{
    json_t *state = json_loads(hpct_ckpt_state(l->checkpoint), 0, NULL);
    const json_t *value = json_object_get(state, "trained_with");
    char *text = json_is_object(value) ? json_dumps(value, JSON_COMPACT) : NULL;
    hpct_status status = hpct_model_set_trained_with(model, text);
    free(text);
    json_decref(state);
    return status;
}

static hpct_status load(loading *l, hpct_model *model)
{
    HPCT_TRY(hpct_run_state_list_make(&l->list, model));
    l->floats = calloc((size_t) l->list.count + 1, sizeof *l->floats);
    if (l->floats == NULL)
        return hpct_fail_memory(((size_t) l->list.count + 1) * sizeof *l->floats);
    for (int i = 0; i < l->list.count; i++)
        HPCT_TRY(read_one(l, i));
    HPCT_TRY(check_names(l));
    for (int i = 0; i < l->list.count; i++) {
        if (l->floats[i] != NULL)
            HPCT_TRY(hpct_run_state_put(model, l->list.values[i].param, HPCT_RUN_STATE_PARAM,
                                        l->floats[i]));
    }
    HPCT_TRY(set_trained_with(l, model));
    return set_class_names(l, model);
}

static void note(void *context, const char *text)
{
    fprintf(context, "hpc-train: %s\n", text);
}

hpct_status hpct_checkpoint_load_weights(const char *path, hpct_model *model, bool allow_nan,
                                         FILE *stream)
{
    loading l = {.allow_nan = allow_nan};
    HPCT_TRY(hpct_ckpt_store_load(&l.checkpoint, path, stream != NULL ? note : NULL, stream));
    hpct_status status = load(&l, model);
    for (int i = 0; i < l.list.count && l.floats != NULL; i++)
        free(l.floats[i]);
    free(l.floats);
    hpct_run_state_list_free(&l.list);
    hpct_ckpt_free(l.checkpoint);
    return status;
}
