/* Settings of elementwise layers of Keras that are not one member each; and operators between
 * tensors and numbers. */
#include "nn/file/keras/elements.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- activations ---- */

/* Keras 2 calls LeakyReLU's alpha. */
static void read_slope(hpct_keras_layer *layer, const hpct_keras_field *field, void *member)
{
    double slope = hpct_keras_number(layer, "alpha", 0.3);
    *(double *) member = hpct_keras_number(layer, field->key, slope);
}

static int write_slope(json_t *settings, const hpct_keras_field *field, const hpct_layer *layer,
                       const void *member)
{
    (void) layer;
    return json_object_set_new(settings, field->key, json_real(*(const double *) member));
}

const hpct_keras_special hpct_keras_slope = {read_slope, write_slope};

/* All axes but the batch's and the last, each once, as in [1, 2]. */
static bool shares_all(const json_t *axes, int rank)
{
    unsigned found = 0;
    for (size_t i = 0; i < json_array_size(axes); i++) {
        json_int_t axis = json_integer_value(json_array_get(axes, i));
        if (axis < 1 || axis >= rank)
            return false;
        found |= 1u << axis;
    }
    return json_array_size(axes) == (size_t) rank - 1 && found == (1u << rank) - 2;
}

static void read_shared_axes(hpct_keras_layer *layer, const hpct_keras_field *field, void *member)
{
    int rank = layer->model->tensors[layer->inputs[0]].shape.rank;
    json_t *axes = hpct_keras_take_or_null(layer, field->key);
    bool none = axes == NULL || (json_is_array(axes) && json_array_size(axes) == 0);
    if (!none && !shares_all(axes, rank))
        hpct_keras_fail(layer, "shared_axes other than none, or all but the last, are not "
                               "supported");
    json_decref(axes);
    *(bool *) member = !none;
}

static int write_shared_axes(json_t *settings, const hpct_keras_field *field,
                             const hpct_layer *layer, const void *member)
{
    const bool *shared = member;
    json_t *axes = *shared ? json_array() : json_null();
    for (int i = 1; *shared && i < layer->output.rank; i++)
        json_array_append_new(axes, json_integer(i));
    return json_object_set_new(settings, field->key, axes);
}

const hpct_keras_special hpct_keras_shared_axes = {read_shared_axes, write_shared_axes};

/* ---- Rescaling, Normalization ---- */

/* A list of numbers, possibly within lists of one element ([[[0.5, 0.4]]]), or one number for all
 * channels. */
static void take_numbers(hpct_keras_layer *layer, const char *key, int channels,
                         double numbers[HPCT_MAX_GIVEN])
{
    json_t *value = hpct_keras_take(layer, key);
    const json_t *list = value;
    while (json_array_size(list) == 1)
        list = json_array_get(list, 0);
    bool one = json_is_number(list), good = one || json_array_size(list) == (size_t) channels;
    for (int c = 0; good && c < channels; c++) {
        const json_t *number = one ? list : json_array_get(list, (size_t) c);
        good = json_is_number(number);
        numbers[c] = json_number_value(number);
    }
    if (value != NULL && !good)
        hpct_keras_fail(layer, "%s must be a number, or one per channel: %d", key, channels);
    json_decref(value);
}

/* Both keys' numbers per channel. */
static void take_each(hpct_keras_layer *layer, const char *first, const char *second,
                      hpct_per_channel *each)
{
    const hpct_shape *shape = &layer->model->tensors[layer->inputs[0]].shape;
    each->channels = shape->size[shape->rank - 1];
    if (each->channels > HPCT_MAX_GIVEN) {
        hpct_keras_fail(layer,
                        "%s per channel is supported for at most %d channels, but there "
                        "are %d",
                        first, HPCT_MAX_GIVEN, each->channels);
        return;
    }
    take_numbers(layer, first, each->channels, each->first);
    take_numbers(layer, second, each->channels, each->second);
}

static json_t *list_of(const double *numbers, int count)
{
    json_t *list = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(list, json_real(numbers[i]));
    return list;
}

/* Two settings; "scale" is required. */
static void read_scale(hpct_keras_layer *layer, const hpct_keras_field *field, void *member)
{
    hpct_layer_rescaling *rescaling = member;
    bool lists = json_is_array(json_object_get(layer->settings, field->key)) ||
                 json_is_array(json_object_get(layer->settings, "offset"));
    if (lists)
        take_each(layer, field->key, "offset", &rescaling->each);
    rescaling->scale = hpct_keras_number(layer, field->key, 1);
    rescaling->offset = hpct_keras_number(layer, "offset", 0);
}

static int write_scale(json_t *settings, const hpct_keras_field *field, const hpct_layer *layer,
                       const void *member)
{
    (void) layer;
    const hpct_layer_rescaling *own = member;
    const hpct_per_channel *each = &own->each;
    bool lists = each->channels > 0;
    json_t *scale = lists ? list_of(each->first, each->channels) : json_real(own->scale),
           *offset = lists ? list_of(each->second, each->channels) : json_real(own->offset);
    return json_object_set_new(settings, field->key, scale) |
           json_object_set_new(settings, "offset", offset);
}

const hpct_keras_special hpct_keras_scale_and_offset = {read_scale, write_scale};

/* Both are in the config, or with the weights if adapt() found them. */
static void read_mean(hpct_keras_layer *layer, const hpct_keras_field *field, void *member)
{
    if (!hpct_keras_has(layer, field->key) && !hpct_keras_has(layer, "variance"))
        return;
    hpct_keras_need(layer, field->key);
    hpct_keras_need(layer, "variance");
    take_each(layer, field->key, "variance", member);
}

static int write_mean(json_t *settings, const hpct_keras_field *field, const hpct_layer *layer,
                      const void *member)
{
    (void) layer;
    const hpct_per_channel *each = member;
    bool given = each->channels > 0;
    json_t *mean = given ? list_of(each->first, each->channels) : json_null(),
           *variance = given ? list_of(each->second, each->channels) : json_null();
    return json_object_set_new(settings, field->key, mean) |
           json_object_set_new(settings, "variance", variance);
}

const hpct_keras_special hpct_keras_mean_and_variance = {read_mean, write_mean};

/* ---- Dropout ---- */

/* Keras' default null, or [null, 1, 1, 1]: one draw per sample. */
static void read_noise_shape(hpct_keras_layer *layer, const hpct_keras_field *field, void *member)
{
    int rank = layer->model->tensors[layer->inputs[0]].shape.rank;
    json_t *shape = hpct_keras_take_or_null(layer, field->key);
    bool per_sample = shape != NULL, good = json_array_size(shape) == (size_t) rank + 1 &&
                                            json_is_null(json_array_get(shape, 0));
    for (int i = 1; good && i <= rank; i++)
        good = json_integer_value(json_array_get(shape, (size_t) i)) == 1;
    if (per_sample && !good)
        hpct_keras_fail(layer, "noise_shape is not supported but for one draw per sample: null, "
                               "then 1 for each axis");
    json_decref(shape);
    *(bool *) member = per_sample;
}

static int write_noise_shape(json_t *settings, const hpct_keras_field *field,
                             const hpct_layer *layer, const void *member)
{
    if (!*(const bool *) member)
        return 0;
    json_t *shape = json_pack("[n]");
    for (int i = 0; i < layer->output.rank; i++)
        json_array_append_new(shape, json_integer(1));
    return json_object_set_new(settings, field->key, shape);
}

const hpct_keras_special hpct_keras_noise_shape = {read_noise_shape, write_noise_shape};

/* ---- products, and operators with a number ---- */

static void add_sum(hpct_keras_layer *layer)
{
    if (layer->num_inputs > 1)
        hpct_model_add_add(layer->model, layer->inputs, layer->num_inputs);
    else
        hpct_model_add_rescaling(layer->model, 1, layer->number);
}

static void add_difference(hpct_keras_layer *layer)
{
    if (layer->num_inputs > 1)
        hpct_keras_fail(layer, "the difference of two tensors is not supported");
    else if (layer->number_first)
        hpct_model_add_rescaling(layer->model, -1, layer->number);
    else
        hpct_model_add_rescaling(layer->model, 1, -layer->number);
}

static void add_product(hpct_keras_layer *layer)
{
    if (layer->num_inputs > 1)
        hpct_model_add_multiply(layer->model, layer->inputs, layer->num_inputs);
    else
        hpct_model_add_rescaling(layer->model, layer->number, 0);
}

static void add_quotient(hpct_keras_layer *layer)
{
    if (layer->num_inputs > 1 || layer->number_first ||
        !(fabs(1 / layer->number) <= (double) FLT_MAX))
        hpct_keras_fail(layer, "only the division of a tensor by a number is supported");
    else
        hpct_model_add_rescaling(layer->model, 1 / layer->number, 0);
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "";
}

bool hpct_keras_is_function(const json_t *entry)
{
    return strcmp(text_of(entry, "class_name"), "TFOpLambda") == 0 && hpct_keras_is_own(entry);
}

bool hpct_keras_is_operation(const json_t *entry)
{
    const char *module = text_of(entry, "module");
    return strncmp(module, "keras.src.ops", 13) == 0 || strncmp(module, "keras.ops", 9) == 0 ||
           hpct_keras_is_function(entry);
}

hpct_keras_operation *hpct_keras_find_operation(const json_t *entry)
{
    static const struct {
        const char *name, *function; /* its class in Keras 3; TensorFlow's, in Keras 2 */
        hpct_keras_operation *add;
    } operations[] = {
        {"Add", "__operators__.add", add_sum},         {"Add", "math.add", add_sum},
        {"Divide", "math.divide", add_quotient},       {"Multiply", "math.multiply", add_product},
        {"Subtract", "math.subtract", add_difference}, {"TrueDivide", "math.truediv", add_quotient},
    };
    bool function = hpct_keras_is_function(entry);
    const char *name = function ? text_of(json_object_get(entry, "config"), "function")
                                : text_of(entry, "class_name");
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        if (strcmp(function ? operations[i].function : operations[i].name, name) == 0)
            return operations[i].add;
    }
    return NULL;
}
