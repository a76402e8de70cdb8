/* Reads and removes settings of a layer's config; the first error is kept. */
#include "nn/file/keras/keras.h"

#include "base/status.h"

#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

void hpct_keras_fail(hpct_keras_layer *layer, const char *format, ...)
{
    char text[512];
    va_list args;
    if (layer->status != HPCT_OK)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    layer->status = hpct_fail(HPCT_ERR_DATA, "layer \"%.63s\" (%.63s): %s", layer->name,
                              layer->class_name, text);
}

/* The value as in the file, truncated for the message. */
static void refuse_value(hpct_keras_layer *layer, const char *key, const json_t *value,
                         const char *wanted)
{
    char text[80] = "";
    size_t length = json_dumpb(value, text, sizeof text - 1, JSON_COMPACT | JSON_ENCODE_ANY);
    text[length < sizeof text ? length : sizeof text - 1] = '\0';
    hpct_keras_fail(layer, "%.63s %s is not supported%s%s", key, text,
                    wanted != NULL ? "; there is: " : "", wanted != NULL ? wanted : "");
}

bool hpct_keras_is_own(const json_t *object)
{
    static const char *const modules[] = {"keras", "tf_keras", "keras_core", "builtins"};
    const char *module = json_string_value(json_object_get(object, "module"));
    const char *registered = json_string_value(json_object_get(object, "registered_name"));
    bool own = module == NULL;
    for (size_t i = 0; i < sizeof modules / sizeof *modules && !own; i++) {
        size_t length = strlen(modules[i]);
        own = strncmp(module, modules[i], length) == 0 &&
              (module[length] == '.' || module[length] == '\0');
    }
    /* Keras' own have no registered name, or that of the class or function. */
    const char *class_name = json_string_value(json_object_get(object, "class_name"));
    const char *config = json_string_value(json_object_get(object, "config"));
    bool is_function = class_name != NULL && strcmp(class_name, "function") == 0;
    bool same = registered == NULL || registered[0] == '\0' ||
                (class_name != NULL && strcmp(registered, class_name) == 0) ||
                (is_function && config != NULL && strcmp(registered, config) == 0);
    return own && same;
}

bool hpct_keras_has(const hpct_keras_layer *layer, const char *key)
{
    const json_t *value = json_object_get(layer->settings, key);
    return value != NULL && !json_is_null(value);
}

void hpct_keras_need(hpct_keras_layer *layer, const char *key)
{
    if (json_object_get(layer->settings, key) == NULL)
        hpct_keras_fail(layer, "%s is missing", key);
}

json_t *hpct_keras_take(hpct_keras_layer *layer, const char *key)
{
    const json_t *value = json_object_get(layer->settings, key);
    if (value != NULL && json_is_null(value))
        hpct_keras_fail(layer, "%s null is not supported", key);
    return hpct_keras_take_or_null(layer, key);
}

json_t *hpct_keras_take_or_null(hpct_keras_layer *layer, const char *key)
{
    json_t *value = json_object_get(layer->settings, key);
    if (layer->status != HPCT_OK || value == NULL)
        return NULL;
    json_incref(value);
    json_object_del(layer->settings, key);
    if (!json_is_null(value))
        return value;
    json_decref(value);
    return NULL;
}

void hpct_keras_drop(hpct_keras_layer *layer, const char *key)
{
    json_decref(hpct_keras_take_or_null(layer, key));
}

static bool is_int(const json_t *value)
{
    json_int_t number = json_integer_value(value);
    return json_is_integer(value) && number >= INT_MIN && number <= INT_MAX;
}

static bool is_size(const json_t *value)
{
    return is_int(value) && json_integer_value(value) >= 1;
}

int hpct_keras_int(hpct_keras_layer *layer, const char *key, int fallback)
{
    json_t *value = hpct_keras_take(layer, key);
    if (value == NULL)
        return fallback;
    if (!is_size(value))
        refuse_value(layer, key, value, "a whole number from 1 on");
    int number = (int) json_integer_value(value);
    json_decref(value);
    return number;
}

double hpct_keras_number(hpct_keras_layer *layer, const char *key, double fallback)
{
    json_t *value = hpct_keras_take(layer, key);
    if (value == NULL)
        return fallback;
    double number = json_number_value(value);
    if (!json_is_number(value) || fabs(number) > FLT_MAX)
        refuse_value(layer, key, value, "one number that a float can hold");
    json_decref(value);
    return number;
}

bool hpct_keras_bool(hpct_keras_layer *layer, const char *key, bool fallback)
{
    json_t *value = fallback ? hpct_keras_take(layer, key) : hpct_keras_take_or_null(layer, key);
    if (value == NULL)
        return fallback;
    if (!json_is_boolean(value))
        refuse_value(layer, key, value, "true, false");
    bool truth = json_is_true(value);
    json_decref(value);
    return truth;
}

void hpct_keras_pair(hpct_keras_layer *layer, const char *key, int pair[2])
{
    json_t *value = hpct_keras_take(layer, key);
    if (value == NULL)
        return;
    bool two = json_array_size(value) == 2;
    const json_t *first = two ? json_array_get(value, 0) : value;
    const json_t *second = two ? json_array_get(value, 1) : value;
    if (is_size(first) && is_size(second)) {
        pair[0] = (int) json_integer_value(first);
        pair[1] = (int) json_integer_value(second);
    } else
        refuse_value(layer, key, value, "one whole number from 1 on, or two");
    json_decref(value);
}

hpct_shape hpct_keras_shape(hpct_keras_layer *layer, const char *key)
{
    hpct_shape shape = {0};
    json_t *value = hpct_keras_take(layer, key);
    size_t rank = json_array_size(value);
    bool good = json_is_array(value) && rank >= 1 && rank <= HPCT_MAX_RANK;
    for (size_t i = 0; good && i < rank; i++) {
        good = is_int(json_array_get(value, i));
        shape.size[i] = (int) json_integer_value(json_array_get(value, i));
    }
    shape.rank = (int) rank;
    if (value != NULL && !good)
        refuse_value(layer, key, value, "1 to 4 sizes");
    else if (value == NULL)
        hpct_keras_fail(layer, "%s is missing", key);
    json_decref(value);
    return shape;
}

int hpct_keras_word(hpct_keras_layer *layer, const char *key, const char *const *words)
{
    char list[256] = "";
    int found = 0;
    json_t *value = hpct_keras_take(layer, key);
    if (value == NULL)
        return 0;
    const char *word = json_string_value(value);
    while (words[found] != NULL && (word == NULL || strcmp(word, words[found]) != 0)) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s\"%s\"", found == 0 ? "" : ", ", words[found]);
        found++;
    }
    if (words[found] == NULL) {
        refuse_value(layer, key, value, list);
        found = 0;
    }
    json_decref(value);
    return found;
}

#define ROW(kind, name, ...)                                                                       \
    {                                                                                              \
#name, HPCT_##kind                                                                         \
    }

static const struct {
    const char *name;
    hpct_activation activation;
} activations[] = {
    {"linear", HPCT_LINEAR}, HPCT_GRAPH_ELEMENT_ROWS(ROW), {"softmax", HPCT_SOFTMAX},
    {"selu", HPCT_SELU},     {"swish", HPCT_SILU},         {"hard_swish", HPCT_HARD_SILU},
};
#define NUM_ACTIVATIONS (sizeof activations / sizeof *activations)

const char *hpct_keras_activation_name(hpct_activation activation)
{
    for (size_t i = 0; i < NUM_ACTIVATIONS; i++) {
        if (activations[i].activation == activation)
            return activations[i].name;
    }
    return NULL;
}

/* Keras 2's is 0.2 x + 0.5, Keras 3's x / 6 + 0.5. */
static void check_hard_sigmoid(hpct_keras_layer *layer, hpct_activation activation)
{
    if (activation != HPCT_HARD_SIGMOID || layer->generation == 3)
        return;
    if (layer->generation == 2)
        hpct_keras_fail(layer, "activation \"hard_sigmoid\" of Keras 2 is not supported: it has "
                               "another slope than Keras 3's");
    else
        hpct_keras_fail(layer, "activation \"hard_sigmoid\" has another slope in Keras 2 than in "
                               "Keras 3, and nothing in the file says which one wrote it: if it "
                               "was Keras 3, add \"keras_version\": \"3\" beside the model's "
                               "class_name");
}

hpct_activation hpct_keras_activation(hpct_keras_layer *layer)
{
    char list[256] = "";
    json_t *value = hpct_keras_take_or_null(layer, "activation");
    if (value == NULL)
        return HPCT_LINEAR;
    /* Functions may be objects: {"class_name": "function", "config": "relu"}. */
    const char *class_name = json_string_value(json_object_get(value, "class_name"));
    bool spelled_out = class_name != NULL && strcmp(class_name, "function") == 0;
    const json_t *plain =
        spelled_out && hpct_keras_is_own(value) ? json_object_get(value, "config") : value;
    const char *name = json_string_value(plain);
    for (size_t i = 0; i < NUM_ACTIVATIONS; i++) {
        if (name != NULL && strcmp(name, activations[i].name) == 0) {
            json_decref(value);
            check_hard_sigmoid(layer, activations[i].activation);
            return activations[i].activation;
        }
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i == 0 ? "" : ", ", activations[i].name);
    }
    refuse_value(layer, "activation", value, list);
    json_decref(value);
    return HPCT_LINEAR;
}

bool hpct_keras_taken(hpct_keras_layer *layer)
{
    const char *key;
    json_t *value;
    json_object_foreach (layer->settings, key, value) {
        if (!json_is_null(value))
            refuse_value(layer, key, value, NULL);
    }
    return layer->status == HPCT_OK;
}
