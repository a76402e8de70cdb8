/* Keras' layer classes: for each, its settings and the layer of ours they describe. A new layer is
 * a function and a row of the table. */
#include "nn/keras/keras.h"

#include "nn/keras/initializers.h"

#include <string.h>

/* Pictures are channels last here. */
static void take_data_format(hpct_keras_layer *layer)
{
    static const char *const words[] = {"channels_last", NULL};
    hpct_keras_word(layer, "data_format", words);
}

static void must_be(hpct_keras_layer *layer, const char *key, bool wanted)
{
    if (hpct_keras_bool(layer, key, wanted) != wanted)
        hpct_keras_fail(layer, "%s %s is not supported", key, wanted ? "false" : "true");
}

static void add_conv2d(hpct_keras_layer *layer)
{
    hpct_conv2d conv = {0};
    take_data_format(layer);
    conv.filters = hpct_keras_int(layer, "filters", 0);
    hpct_keras_pair(layer, "kernel_size", conv.kernel);
    hpct_keras_pair(layer, "strides", conv.strides);
    hpct_keras_pair(layer, "dilation_rate", conv.dilation);
    conv.groups = hpct_keras_int(layer, "groups", 1);
    conv.padding = hpct_keras_padding(layer);
    conv.no_bias = !hpct_keras_bool(layer, "use_bias", true);
    conv.activation = hpct_keras_activation(layer);
    if (hpct_keras_taken(layer))
        hpct_model_add_conv2d(layer->model, &conv);
}

static void add_depthwise_conv2d(hpct_keras_layer *layer)
{
    static const char *const groups[] = {"1", NULL};
    hpct_depthwise_conv2d conv = {0};
    take_data_format(layer);
    hpct_keras_pair(layer, "kernel_size", conv.kernel);
    hpct_keras_pair(layer, "strides", conv.strides);
    hpct_keras_pair(layer, "dilation_rate", conv.dilation);
    conv.multiplier = hpct_keras_int(layer, "depth_multiplier", 1);
    conv.padding = hpct_keras_padding(layer);
    conv.no_bias = !hpct_keras_bool(layer, "use_bias", true);
    conv.activation = hpct_keras_activation(layer);
    if (hpct_keras_int(layer, "groups", 1) != 1) /* Keras 2 writes 1, which means nothing */
        hpct_keras_fail(layer, "groups other than %s are not supported", groups[0]);
    if (hpct_keras_taken(layer))
        hpct_model_add_depthwise_conv2d(layer->model, &conv);
}

static void add_max_pool2d(hpct_keras_layer *layer)
{
    hpct_max_pool2d pool = {.pool = {2, 2}};
    take_data_format(layer);
    hpct_keras_pair(layer, "pool_size", pool.pool);
    hpct_keras_pair(layer, "strides", pool.strides);
    pool.padding = hpct_keras_padding(layer);
    if (hpct_keras_taken(layer))
        hpct_model_add_max_pool2d(layer->model, &pool);
}

static void add_dense(hpct_keras_layer *layer)
{
    hpct_dense dense = {0};
    dense.units = hpct_keras_int(layer, "units", 0);
    dense.no_bias = !hpct_keras_bool(layer, "use_bias", true);
    dense.activation = hpct_keras_activation(layer);
    if (hpct_keras_taken(layer))
        hpct_model_add_dense(layer->model, &dense);
}

static void add_flatten(hpct_keras_layer *layer)
{
    take_data_format(layer);
    if (hpct_keras_taken(layer))
        hpct_model_add_flatten(layer->model);
}

static void add_reshape(hpct_keras_layer *layer)
{
    hpct_shape shape = hpct_keras_shape(layer, "target_shape");
    if (hpct_keras_taken(layer))
        hpct_model_add_reshape(layer->model, shape);
}

static void add_activation(hpct_keras_layer *layer)
{
    hpct_activation activation = hpct_keras_activation(layer);
    if (hpct_keras_taken(layer))
        hpct_model_add_activation(layer->model, activation);
}

static void add_softmax(hpct_keras_layer *layer)
{
    if (hpct_keras_int(layer, "axis", -1) != -1)
        hpct_keras_fail(layer, "axis other than -1 is not supported");
    if (hpct_keras_taken(layer))
        hpct_model_add_activation(layer->model, HPCT_SOFTMAX);
}

static const hpct_keras_class classes[] = {
    {"Activation", 1, 1, add_activation}, {"Conv2D", 1, 1, add_conv2d},
    {"Dense", 1, 1, add_dense},           {"DepthwiseConv2D", 1, 1, add_depthwise_conv2d},
    {"Flatten", 1, 1, add_flatten},       {"MaxPooling2D", 1, 1, add_max_pool2d},
    {"Reshape", 1, 1, add_reshape},       {"Softmax", 1, 1, add_softmax},
};
#define NUM_CLASSES (sizeof classes / sizeof *classes)

const hpct_keras_class *hpct_keras_find(const char *class_name)
{
    for (size_t i = 0; i < NUM_CLASSES; i++) {
        if (strcmp(classes[i].class_name, class_name) == 0)
            return &classes[i];
    }
    return NULL;
}

void hpct_keras_list(char *text, size_t size)
{
    size_t used = (size_t) snprintf(text, size, "InputLayer");
    for (size_t i = 0; i < NUM_CLASSES && used < size; i++)
        used += (size_t) snprintf(text + used, size - used, ", %s", classes[i].class_name);
}
