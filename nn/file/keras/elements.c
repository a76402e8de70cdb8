/* Elementwise layers of Keras: activations with settings, Multiply, Rescaling, Normalization,
 * Dropout; and operators between tensors and numbers. */
#include "nn/file/keras/elements.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- activations ---- */

/* Keras' two usual ones are written as Activation. */
void hpct_keras_add_relu(hpct_keras_layer *layer)
{
    hpct_relu relu = {.max_value = INFINITY}; /* null */
    if (hpct_keras_has(layer, "max_value"))
        relu.max_value = hpct_keras_number(layer, "max_value", 0);
    relu.negative_slope = hpct_keras_number(layer, "negative_slope", 0);
    relu.threshold = hpct_keras_number(layer, "threshold", 0);
    bool plain = relu.negative_slope == 0 && relu.threshold == 0;
    if (!hpct_keras_taken(layer))
        return;
    if (plain && relu.max_value == 6)
        hpct_model_add_activation(layer->model, HPCT_RELU6);
    else if (plain && relu.max_value == INFINITY)
        hpct_model_add_activation(layer->model, HPCT_RELU);
    else
        hpct_model_add_relu(layer->model, &relu);
}

json_t *hpct_keras_relu_settings(const hpct_layer *layer)
{
    const hpct_relu *relu = &layer->config.relu;
    json_t *most = isfinite(relu->max_value) ? json_real(relu->max_value) : json_null();
    return json_pack("{s:o, s:f, s:f}", "max_value", most, "negative_slope", relu->negative_slope,
                     "threshold", relu->threshold);
}

/* Keras 2 calls it alpha. */
void hpct_keras_add_leaky_relu(hpct_keras_layer *layer)
{
    double slope = hpct_keras_number(layer, "alpha", 0.3);
    slope = hpct_keras_number(layer, "negative_slope", slope);
    if (hpct_keras_taken(layer))
        hpct_model_add_leaky_relu(layer->model, slope);
}

json_t *hpct_keras_leaky_relu_settings(const hpct_layer *layer)
{
    return json_pack("{s:f}", "negative_slope", layer->config.slope);
}

void hpct_keras_add_elu(hpct_keras_layer *layer)
{
    double alpha = hpct_keras_number(layer, "alpha", 1);
    if (hpct_keras_taken(layer))
        hpct_model_add_elu(layer->model, alpha);
}

json_t *hpct_keras_elu_settings(const hpct_layer *layer)
{
    return json_pack("{s:f}", "alpha", layer->config.slope);
}

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

void hpct_keras_add_prelu(hpct_keras_layer *layer)
{
    int rank = layer->model->tensors[layer->inputs[0]].shape.rank;
    json_t *axes = hpct_keras_take_or_null(layer, "shared_axes");
    bool none = axes == NULL || (json_is_array(axes) && json_array_size(axes) == 0);
    if (!none && !shares_all(axes, rank))
        hpct_keras_fail(layer, "shared_axes other than none, or all but the last, are not "
                               "supported");
    json_decref(axes);
    if (hpct_keras_taken(layer))
        hpct_model_add_prelu(layer->model, !none);
}

json_t *hpct_keras_prelu_settings(const hpct_layer *layer)
{
    json_t *axes = layer->config.shared ? json_array() : json_null();
    for (int i = 1; layer->config.shared && i < layer->output.rank; i++)
        json_array_append_new(axes, json_integer(i));
    return json_pack("{s:o}", "shared_axes", axes);
}

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
static hpct_per_channel take_each(hpct_keras_layer *layer, const char *first, const char *second)
{
    const hpct_shape *shape = &layer->model->tensors[layer->inputs[0]].shape;
    hpct_per_channel each = {.channels = shape->size[shape->rank - 1]};
    if (each.channels > HPCT_MAX_GIVEN) {
        hpct_keras_fail(layer,
                        "%s per channel is supported for at most %d channels, but there "
                        "are %d",
                        first, HPCT_MAX_GIVEN, each.channels);
        return each;
    }
    take_numbers(layer, first, each.channels, each.first);
    take_numbers(layer, second, each.channels, each.second);
    return each;
}

static json_t *list_of(const double *numbers, int count)
{
    json_t *list = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(list, json_real(numbers[i]));
    return list;
}

void hpct_keras_add_rescaling(hpct_keras_layer *layer)
{
    hpct_keras_need(layer, "scale");
    bool lists = json_is_array(json_object_get(layer->settings, "scale")) ||
                 json_is_array(json_object_get(layer->settings, "offset"));
    hpct_per_channel each = {.channels = 0};
    if (lists)
        each = take_each(layer, "scale", "offset");
    double scale = hpct_keras_number(layer, "scale", 1);
    double offset = hpct_keras_number(layer, "offset", 0);
    if (!hpct_keras_taken(layer))
        return;
    if (lists)
        hpct_model_add_rescaling_by(layer->model, &each);
    else
        hpct_model_add_rescaling(layer->model, scale, offset);
}

json_t *hpct_keras_rescaling_settings(const hpct_layer *layer)
{
    const hpct_per_channel *each = &layer->config.rescaling.each;
    if (each->channels == 0)
        return json_pack("{s:f, s:f}", "scale", layer->config.rescaling.scale, "offset",
                         layer->config.rescaling.offset);
    return json_pack("{s:o, s:o}", "scale", list_of(each->first, each->channels), "offset",
                     list_of(each->second, each->channels));
}

/* Its numbers are in the config, or with the weights if adapt() found them. */
void hpct_keras_add_normalization(hpct_keras_layer *layer)
{
    bool given = hpct_keras_has(layer, "mean") || hpct_keras_has(layer, "variance");
    hpct_per_channel each = {.channels = 0};
    hpct_keras_take_last_axis(layer);
    if (hpct_keras_bool(layer, "invert", false))
        hpct_keras_fail(layer, "invert true is not supported");
    if (given) {
        hpct_keras_need(layer, "mean");
        hpct_keras_need(layer, "variance");
        each = take_each(layer, "mean", "variance");
    }
    if (!hpct_keras_taken(layer))
        return;
    if (given)
        hpct_model_add_normalization_by(layer->model, &each);
    else
        hpct_model_add_normalization(layer->model);
}

json_t *hpct_keras_normalization_settings(const hpct_layer *layer)
{
    const hpct_per_channel *each = &layer->config.normalization;
    json_t *settings =
        json_pack("{s:i, s:b, s:n, s:n}", "axis", -1, "invert", 0, "mean", "variance");
    if (each->channels > 0) {
        json_object_set_new(settings, "mean", list_of(each->first, each->channels));
        json_object_set_new(settings, "variance", list_of(each->second, each->channels));
    }
    return settings;
}

/* ---- Dropout ---- */

/* Keras' default null, or [null, 1, 1, 1]: one draw per sample. */
static bool take_noise_shape(hpct_keras_layer *layer)
{
    int rank = layer->model->tensors[layer->inputs[0]].shape.rank;
    json_t *shape = hpct_keras_take_or_null(layer, "noise_shape");
    bool per_sample = shape != NULL, good = json_array_size(shape) == (size_t) rank + 1 &&
                                            json_is_null(json_array_get(shape, 0));
    for (int i = 1; good && i <= rank; i++)
        good = json_integer_value(json_array_get(shape, (size_t) i)) == 1;
    if (per_sample && !good)
        hpct_keras_fail(layer, "noise_shape is not supported but for one draw per sample: null, "
                               "then 1 for each axis");
    json_decref(shape);
    return per_sample;
}

void hpct_keras_add_dropout(hpct_keras_layer *layer)
{
    hpct_keras_need(layer, "rate");
    double rate = hpct_keras_number(layer, "rate", 0);
    bool per_sample = take_noise_shape(layer);
    hpct_keras_drop(layer, "seed"); /* the seed of hpct_model_initialize is used */
    if (!hpct_keras_taken(layer))
        return;
    if (per_sample)
        hpct_model_add_sample_dropout(layer->model, rate);
    else
        hpct_model_add_dropout(layer->model, rate);
}

json_t *hpct_keras_dropout_settings(const hpct_layer *layer)
{
    json_t *settings = json_pack("{s:f}", "rate", layer->config.dropout.rate);
    json_t *shape = json_pack("[n]");
    for (int i = 0; i < layer->output.rank; i++)
        json_array_append_new(shape, json_integer(1));
    if (layer->config.dropout.per_sample)
        json_object_set(settings, "noise_shape", shape);
    json_decref(shape);
    return settings;
}

/* ---- products, and operators with a number ---- */

void hpct_keras_add_multiply(hpct_keras_layer *layer)
{
    if (hpct_keras_taken(layer))
        hpct_model_add_multiply(layer->model, layer->inputs, layer->num_inputs);
}

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
