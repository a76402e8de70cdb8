/* Class names, stored as the JSON list of the weights files; or names of outputs, and the loss that
 * says what they are, as an object. And what the weights were trained with. */
#include "base/status.h"
#include "nn/graph/compile.h"
#include "nn/graph/graph.h"

#include <hpctrain/model.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

hpct_status hpct_model_set_class_names(hpct_model *model, const char *const *names, int count)
{
    json_t *list = json_array();
    char *text = NULL;
    hpct_status status = HPCT_OK;
    for (int i = 0; i < count && status == HPCT_OK; i++) {
        if (json_array_append_new(list, json_string(names[i])) != 0)
            status = hpct_fail(HPCT_ERR_DATA, "the name of class %d is not UTF-8", i);
    }
    if (count > 0 && status == HPCT_OK) {
        text = json_dumps(list, JSON_COMPACT);
        status = text != NULL ? HPCT_OK : hpct_fail_memory(0);
    }
    json_decref(list);
    if (status != HPCT_OK)
        return status;
    free(model->class_names);
    model->class_names = text;
    return status;
}

/* The list may come from another program's file. */
static bool is_list_of_names(const json_t *list)
{
    size_t i;
    json_t *name;
    json_array_foreach(list, i, name)
    {
        if (!json_is_string(name))
            return false;
    }
    return json_is_array(list);
}

static hpct_status as_list(const json_t *names, char ***out)
{
    size_t i, count = json_array_size(names), bytes = (count + 1) * sizeof(char *);
    json_t *name;
    json_array_foreach(names, i, name) bytes += json_string_length(name) + 1;
    char **list = malloc(bytes), *to;
    if (list == NULL)
        return hpct_fail_memory(bytes);
    to = (char *) (list + count + 1);
    json_array_foreach(names, i, name)
    {
        size_t length = json_string_length(name) + 1;
        list[i] = memcpy(to, json_string_value(name), length);
        to += length;
    }
    list[count] = NULL;
    *out = list;
    return HPCT_OK;
}

hpct_status hpct_model_class_names(const hpct_model *model, char ***out, int *count)
{
    json_t *names = model->class_names != NULL
                        ? json_loads(model->class_names, JSON_REJECT_DUPLICATES, NULL)
                        : NULL;
    hpct_status status = HPCT_OK;
    *out = NULL;
    *count = 0;
    if (is_list_of_names(names))
        status = as_list(names, out);
    if (*out != NULL)
        *count = (int) json_array_size(names);
    json_decref(names);
    return status;
}

/* ---- names of outputs ---- */

/* Factors as hpct_compile_options have them; 0: the loss has none. */
static json_t *describe_outputs(const hpct_model *model, json_t *names)
{
    double factors[3];
    hpct_model_loss_factors(model, factors);
    return json_pack("{s:o,s:s,s:f,s:f,s:f,s:f}", "outputs", names, "loss",
                     hpct_loss_name(model->loss), "label_smoothing", model->label_smoothing,
                     "focal_gamma", factors[0], "focal_alpha", factors[1], "huber_delta",
                     factors[2]);
}

hpct_status hpct_model_set_output_names(hpct_model *model, const char *const *names, int count)
{
    json_t *list = json_array();
    for (int i = 0; i < count; i++) {
        if (json_array_append_new(list, json_string(names[i])) != 0) {
            json_decref(list);
            return hpct_fail(HPCT_ERR_DATA, "the name of output %d is not UTF-8", i);
        }
    }
    json_t *object = describe_outputs(model, list);
    char *text = json_dumps(object, JSON_COMPACT);
    json_decref(object);
    free(model->class_names);
    model->class_names = text;
    return text != NULL ? HPCT_OK : hpct_fail_memory(0);
}

static double factor(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key)); /* 0: not there */
}

static hpct_status read_loss(const json_t *object, hpct_compile_options *out)
{
    const char *name = json_string_value(json_object_get(object, "loss"));
    int loss = 0;
    while (loss < HPCT_LOSSES &&
           (name == NULL || strcmp(name, hpct_loss_name((hpct_loss) loss)) != 0))
        loss++;
    if (loss == HPCT_LOSSES)
        return hpct_fail(HPCT_ERR_DATA,
                         "the weights are of outputs with the loss %s, which is unknown",
                         name != NULL ? name : "?");
    *out = (hpct_compile_options){.loss = (hpct_loss) loss,
                                  .label_smoothing = factor(object, "label_smoothing"),
                                  .focal_gamma = factor(object, "focal_gamma"),
                                  .focal_alpha = factor(object, "focal_alpha"),
                                  .huber_delta = factor(object, "huber_delta")};
    return HPCT_OK;
}

hpct_status hpct_model_output_names(const hpct_model *model, char ***out, int *count,
                                    hpct_compile_options *loss)
{
    json_t *object = model->class_names != NULL
                         ? json_loads(model->class_names, JSON_REJECT_DUPLICATES, NULL)
                         : NULL;
    const json_t *names = json_object_get(object, "outputs");
    hpct_status status = HPCT_OK;
    *out = NULL;
    *count = 0;
    if (is_list_of_names(names))
        status = as_list(names, out);
    if (*out != NULL)
        *count = (int) json_array_size(names);
    if (*out != NULL && loss != NULL)
        status = read_loss(object, loss);
    json_decref(object);
    if (status != HPCT_OK) {
        free(*out);
        *out = NULL;
        *count = 0;
    }
    return status;
}

const char *hpct_model_names_text(const hpct_model *model)
{
    return model->class_names;
}

static hpct_status replace_text(char **to, const char *text)
{
    char *copy = text != NULL ? strdup(text) : NULL;
    if (text != NULL && copy == NULL)
        return hpct_fail_memory(strlen(text));
    free(*to);
    *to = copy;
    return HPCT_OK;
}

hpct_status hpct_model_set_names_text(hpct_model *model, const char *text)
{
    return replace_text(&model->class_names, text);
}

const char *hpct_model_trained_with(const hpct_model *model)
{
    return model->trained_with;
}

hpct_status hpct_model_set_trained_with(hpct_model *model, const char *text)
{
    return replace_text(&model->trained_with, text);
}
