/* Reads what a layer of a functional model is called with. */
#include "nn/file/keras/elements.h"
#include "nn/file/keras/reader.h"

#include "base/status.h"

#include <float.h>
#include <math.h>
#include <string.h>

hpct_keras_output *hpct_keras_find_output(const hpct_keras_level *level, const char *name)
{
    for (size_t i = 0; name != NULL && i < level->num_layers; i++) {
        if (level->outputs[i].name != NULL && strcmp(level->outputs[i].name, name) == 0)
            return &level->outputs[i];
    }
    return NULL;
}

static bool is_zero(const json_t *value)
{
    return json_is_integer(value) && json_integer_value(value) == 0;
}

/* The number of a layer's only call in the model: 0, but Keras counts a nested model's own graph
 * before it (in output_layers; Keras 2 everywhere). */
static bool is_only_call(const hpct_keras_level *level, const hpct_keras_output *of,
                         const json_t *number)
{
    const json_t *entry = json_array_get(level->layers, (size_t) (of - level->outputs));
    return is_zero(number) || (hpct_keras_is_model(entry) && json_is_integer(number) &&
                               json_integer_value(number) == 1);
}

/* A tensor, [name, node, tensor], possibly with further elements. Each layer is called once and has
 * one output. */
hpct_status hpct_keras_find_tensor(const hpct_keras_level *level, hpct_keras_output **found,
                                   const json_t *history)
{
    const char *name = json_string_value(json_array_get(history, 0));
    *found = hpct_keras_find_output(level, name);
    if (*found == NULL)
        return hpct_fail(HPCT_ERR_DATA, "it reads layer \"%.63s\", but there is none",
                         name != NULL ? name : "");
    if (!is_only_call(level, *found, json_array_get(history, 1)) ||
        !is_zero(json_array_get(history, 2)))
        return hpct_fail(HPCT_ERR_DATA,
                         "it reads layer \"%.63s\", which is called more than once or "
                         "gives several tensors: not supported",
                         name);
    return HPCT_OK;
}

static hpct_status collect(const hpct_keras_level *level, const json_t *from, hpct_keras_call *c);

/* What a call of Keras 2 has besides its first tensor: the other side of an operator, or
 * training=False, which holds there in fit, too. */
static hpct_status collect_arguments(const hpct_keras_level *level, json_t *arguments,
                                     hpct_keras_call *c)
{
    const char *key;
    json_t *value;
    json_object_foreach (arguments, key, value) {
        bool other_side = c->operation && strcmp(key, "y") == 0;
        bool inference = strcmp(key, "training") == 0 && json_is_false(value);
        if (!other_side && !inference && !json_is_null(value))
            return hpct_fail(HPCT_ERR_DATA, "it is called with arguments (%.63s): not supported",
                             key);
        c->inference |= inference;
        if (other_side)
            HPCT_TRY(collect(level, value, c));
    }
    return HPCT_OK;
}

/* All tensors of a call; Keras 3 writes them as objects, several ones in lists. A number that comes
 * first is ["_CONSTANT_VALUE", -1, number, arguments] in Keras 2. */
static hpct_status collect(const hpct_keras_level *level, const json_t *from, hpct_keras_call *c)
{
    const char *name = json_string_value(json_array_get(from, 0));
    if (name != NULL && strcmp(name, "_CONSTANT_VALUE") == 0 &&
        json_integer_value(json_array_get(from, 1)) == -1) {
        HPCT_TRY(collect(level, json_array_get(from, 2), c));
        return collect_arguments(level, json_array_get(from, 3), c);
    }
    if (json_is_number(from) && c->operation && c->numbers == 0) {
        c->numbers++;
        c->number = json_number_value(from);
        c->number_first = c->count == 0;
        return fabs(c->number) <= (double) FLT_MAX
                   ? HPCT_OK
                   : hpct_fail(HPCT_ERR_DATA, "it is called with a number that no float can hold");
    }
    const json_t *history = json_object_get(json_object_get(from, "config"), "keras_history");
    bool is_history = json_is_string(json_array_get(from, 0)); /* Keras 2 */
    if (history != NULL || is_history) {
        if (c->count == HPCT_KERAS_MAX_INPUTS)
            return hpct_fail(HPCT_ERR_DATA, "it reads more than %d tensors", HPCT_KERAS_MAX_INPUTS);
        HPCT_TRY(hpct_keras_find_tensor(level, &c->inputs[c->count++],
                                        history != NULL ? history : from));
        return is_history ? collect_arguments(level, json_array_get(from, 3), c) : HPCT_OK;
    }
    if (!json_is_array(from))
        return hpct_fail(HPCT_ERR_DATA, "it is called with something other than tensors");
    for (size_t i = 0; i < json_array_size(from); i++)
        HPCT_TRY(collect(level, json_array_get(from, i), c));
    return HPCT_OK;
}

/* In Keras 3 fit, evaluate and predict override `training` for all layers and nested models, so
 * that it has no meaning. */
static bool has_meaning(const char *argument, const json_t *value)
{
    return !json_is_null(value) && strcmp(argument, "training") != 0;
}

static bool is_plain_call(json_t *object)
{
    const char *key;
    json_t *value;
    json_object_foreach (object, key, value) {
        if (has_meaning(key, value))
            return false;
    }
    return true;
}

hpct_status hpct_keras_read_call(const hpct_keras_level *level, const json_t *entry,
                                 hpct_keras_call *c)
{
    const json_t *calls = json_object_get(entry, "inbound_nodes");
    const json_t *first = json_array_get(calls, 0);
    *c = (hpct_keras_call){.operation = hpct_keras_is_operation(entry)};
    if (json_array_size(calls) == 0)
        return hpct_fail(HPCT_ERR_DATA, "it reads nothing, and is not the model's input");
    if (json_array_size(calls) != 1)
        return hpct_fail(HPCT_ERR_DATA, "it is called %zu times; shared layers are not supported",
                         json_array_size(calls));
    if (!json_is_object(first)) /* Keras 2 */
        return collect(level, first, c);
    if (!is_plain_call(json_object_get(first, "kwargs")))
        return hpct_fail(HPCT_ERR_DATA, "it is called with arguments: not supported");
    return collect(level, json_object_get(first, "args"), c);
}
