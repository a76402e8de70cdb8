/* Reads and writes settings of layers by tables. */
#include "nn/file/keras/fields.h"

#include <math.h>

static double positive(hpct_keras_layer *layer, const char *key)
{
    if (json_object_get(layer->settings, key) == NULL)
        return 0;
    double number = hpct_keras_number(layer, key, 0);
    if (!(number > 0))
        hpct_keras_fail(layer, "%s %g is not supported: it must be above 0", key, number);
    return number;
}

static void read_pair(hpct_keras_layer *layer, const hpct_keras_field *field, int pair[2])
{
    pair[0] = pair[1] = (int) field->fallback;
    hpct_keras_pair(layer, field->key, pair);
}

/* The index counts the batch axis. */
static void take_last_axis(hpct_keras_layer *layer, const char *key)
{
    int rank = layer->model->tensors[layer->inputs[0]].shape.rank;
    json_t *value = hpct_keras_take(layer, key);
    if (value == NULL)
        return;
    const json_t *axis = json_array_size(value) == 1 ? json_array_get(value, 0) : value;
    json_int_t number = json_integer_value(axis);
    if (!json_is_integer(axis) || (number != -1 && number != rank))
        hpct_keras_fail(layer, "%s other than the last, -1, is not supported", key);
    json_decref(value);
}

/* What has no member: the setting must be as it is here. */
static void check_field(hpct_keras_layer *layer, const hpct_keras_field *field)
{
    int pair[2] = {1, 1};
    if (field->form == HPCT_KERAS_ONLY)
        hpct_keras_word(layer, field->key, field->words);
    else if (field->form == HPCT_KERAS_LAST_AXIS)
        take_last_axis(layer, field->key);
    else if (field->form == HPCT_KERAS_DROPPED)
        hpct_keras_drop(layer, field->key);
    else if (field->form == HPCT_KERAS_FALSE && hpct_keras_bool(layer, field->key, false))
        hpct_keras_fail(layer, "%s true is not supported", field->key);
    else if (field->form == HPCT_KERAS_ONE && hpct_keras_int(layer, field->key, 1) != 1)
        hpct_keras_fail(layer, "%s other than 1 are not supported", field->key);
    else if (field->form == HPCT_KERAS_ONES)
        hpct_keras_pair(layer, field->key, pair);
    if (pair[0] != 1 || pair[1] != 1)
        hpct_keras_fail(layer, "%s other than 1 is not supported", field->key);
}

static void read_field(hpct_keras_layer *layer, const hpct_keras_field *field, void *member)
{
    switch (field->form) {
    case HPCT_KERAS_SIZE:
        *(int *) member = hpct_keras_int(layer, field->key, (int) field->fallback);
        break;
    case HPCT_KERAS_PAIR:
        read_pair(layer, field, member);
        break;
    case HPCT_KERAS_SHAPE:
        *(hpct_shape *) member = hpct_keras_shape(layer, field->key);
        break;
    case HPCT_KERAS_NUMBER:
        *(double *) member = hpct_keras_number(layer, field->key, field->fallback);
        break;
    case HPCT_KERAS_POSITIVE:
        *(double *) member = positive(layer, field->key);
        break;
    case HPCT_KERAS_FLAG:
        *(bool *) member = hpct_keras_bool(layer, field->key, false);
        break;
    case HPCT_KERAS_NOT:
        *(bool *) member = !hpct_keras_bool(layer, field->key, true);
        break;
    case HPCT_KERAS_WORD:
        *(int *) member = hpct_keras_word(layer, field->key, field->words);
        break;
    case HPCT_KERAS_CHOICE:
        *(bool *) member = hpct_keras_word(layer, field->key, field->words) == 1;
        break;
    case HPCT_KERAS_ACTIVATION:
        *(hpct_activation *) member = hpct_keras_activation(layer);
        break;
    default:
        check_field(layer, field);
    }
}

void hpct_keras_read_fields(hpct_keras_layer *layer, const hpct_keras_field *field,
                            hpct_layer_config *config)
{
    for (; field->key != NULL; field++) {
        if (field->required)
            hpct_keras_need(layer, field->key);
        if (field->nullable && !hpct_keras_has(layer, field->key))
            hpct_keras_drop(layer, field->key);
        void *member = (char *) config + field->at;
        if (field->form == HPCT_KERAS_SPECIAL)
            field->special->read(layer, field, member);
        else
            read_field(layer, field, member);
    }
}

/* 0 stands for Keras' default, 1. */
static json_t *size_of(int number)
{
    return json_integer(number == 0 ? 1 : number);
}

static json_t *list_of(const hpct_shape *shape)
{
    json_t *sizes = json_array();
    for (int i = 0; i < shape->rank; i++)
        json_array_append_new(sizes, json_integer(shape->size[i]));
    return sizes;
}

static json_t *value_of(const hpct_keras_field *field, const void *member)
{
    const int *integer = member;
    const double *number = member;
    const bool *flag = member;
    switch (field->form) {
    case HPCT_KERAS_SIZE:
        return size_of(*integer);
    case HPCT_KERAS_PAIR:
        return json_pack("[o,o]", size_of(integer[0]), size_of(integer[1]));
    case HPCT_KERAS_SHAPE:
        return list_of(member);
    case HPCT_KERAS_NUMBER:
    case HPCT_KERAS_POSITIVE:
        return isinf(*number) ? json_null() : json_real(*number);
    case HPCT_KERAS_FLAG:
        return json_boolean(*flag);
    case HPCT_KERAS_NOT:
        return json_boolean(!*flag);
    case HPCT_KERAS_WORD:
        return json_string(field->words[*integer]);
    case HPCT_KERAS_CHOICE:
        return json_string(field->words[*flag]);
    case HPCT_KERAS_ACTIVATION:
        return json_string(hpct_keras_activation_name(*(const hpct_activation *) member));
    case HPCT_KERAS_ONLY:
        return json_string(field->words[0]);
    case HPCT_KERAS_FALSE:
        return json_false();
    default:
        return json_integer(field->form == HPCT_KERAS_LAST_AXIS ? -1 : 1);
    }
}

json_t *hpct_keras_write_fields(const hpct_keras_field *field, const hpct_layer *layer)
{
    json_t *settings = json_object();
    int failed = 0;
    for (; field->key != NULL && failed == 0; field++) {
        const void *member = (const char *) &layer->config + field->at;
        if (field->form == HPCT_KERAS_SPECIAL)
            failed = field->special->write(settings, field, layer, member);
        else if (!field->read_only)
            failed = json_object_set_new(settings, field->key, value_of(field, member));
    }
    if (failed == 0)
        return settings;
    json_decref(settings);
    return NULL;
}
