/* Keras' layer classes: conversion of settings from and to this project's layers. A new layer is a
 * function and a row of the table. */
#include "nn/file/keras/elements.h"
#include "nn/file/keras/keras.h"
#include "nn/file/keras/variations.h"

#include <limits.h>
#include <string.h>

/* Only channels last is supported. */
static void take_data_format(hpct_keras_layer *layer)
{
    static const char *const words[] = {"channels_last", NULL};
    if (hpct_keras_has(layer, "data_format")) /* null is Keras' default, channels last */
        hpct_keras_word(layer, "data_format", words);
}

/* The last axis, which Keras writes as -1, as its index with the batch axis counted, or as a list
 * of one. */
void hpct_keras_take_last_axis(hpct_keras_layer *layer)
{
    int rank = layer->model->tensors[layer->inputs[0]].shape.rank;
    json_t *value = hpct_keras_take(layer, "axis");
    if (value == NULL)
        return;
    const json_t *axis = json_array_size(value) == 1 ? json_array_get(value, 0) : value;
    json_int_t number = json_integer_value(axis);
    if (!json_is_integer(axis) || (number != -1 && number != rank))
        hpct_keras_fail(layer, "axis other than the last, -1, is not supported");
    json_decref(value);
}

static void must_not_be(hpct_keras_layer *layer, const char *key)
{
    if (hpct_keras_bool(layer, key, false))
        hpct_keras_fail(layer, "%s true is not supported", key);
}

static void add_conv2d(hpct_keras_layer *layer)
{
    hpct_conv2d conv = {0};
    take_data_format(layer);
    hpct_keras_need(layer, "filters");
    hpct_keras_need(layer, "kernel_size");
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

static const char *padding_name(hpct_padding padding)
{
    return padding == HPCT_SAME ? "same" : "valid";
}

static int or_one(int number)
{
    return number == 0 ? 1 : number;
}

static json_t *conv2d_settings(const hpct_layer *layer)
{
    const hpct_conv2d *conv = &layer->config.conv2d;
    return json_pack("{s:i, s:[i,i], s:[i,i], s:[i,i], s:i, s:s, s:b, s:s, s:s}", "filters",
                     conv->filters, "kernel_size", conv->kernel[0], conv->kernel[1], "strides",
                     or_one(conv->strides[0]), or_one(conv->strides[1]), "dilation_rate",
                     or_one(conv->dilation[0]), or_one(conv->dilation[1]), "groups",
                     or_one(conv->groups), "padding", padding_name(conv->padding), "use_bias",
                     !conv->no_bias, "activation", hpct_keras_activation_name(conv->activation),
                     "data_format", "channels_last");
}

static void add_depthwise_conv2d(hpct_keras_layer *layer)
{
    hpct_depthwise_conv2d conv = {0};
    take_data_format(layer);
    hpct_keras_need(layer, "kernel_size");
    hpct_keras_pair(layer, "kernel_size", conv.kernel);
    hpct_keras_pair(layer, "strides", conv.strides);
    hpct_keras_pair(layer, "dilation_rate", conv.dilation);
    conv.multiplier = hpct_keras_int(layer, "depth_multiplier", 1);
    conv.padding = hpct_keras_padding(layer);
    conv.no_bias = !hpct_keras_bool(layer, "use_bias", true);
    conv.activation = hpct_keras_activation(layer);
    if (hpct_keras_int(layer, "groups", 1) != 1) /* Keras 2 writes 1, without meaning */
        hpct_keras_fail(layer, "groups other than 1 are not supported");
    if (hpct_keras_taken(layer))
        hpct_model_add_depthwise_conv2d(layer->model, &conv);
}

static json_t *depthwise_conv2d_settings(const hpct_layer *layer)
{
    const hpct_depthwise_conv2d *conv = &layer->config.depthwise_conv2d;
    return json_pack("{s:[i,i], s:[i,i], s:[i,i], s:i, s:s, s:b, s:s, s:s}", "kernel_size",
                     conv->kernel[0], conv->kernel[1], "strides", or_one(conv->strides[0]),
                     or_one(conv->strides[1]), "dilation_rate", or_one(conv->dilation[0]),
                     or_one(conv->dilation[1]), "depth_multiplier", or_one(conv->multiplier),
                     "padding", padding_name(conv->padding), "use_bias", !conv->no_bias,
                     "activation", hpct_keras_activation_name(conv->activation), "data_format",
                     "channels_last");
}

static void add_conv2d_transpose(hpct_keras_layer *layer)
{
    hpct_conv2d_transpose conv = {0};
    int dilation[2] = {1, 1};
    take_data_format(layer);
    hpct_keras_need(layer, "filters");
    hpct_keras_need(layer, "kernel_size");
    conv.filters = hpct_keras_int(layer, "filters", 0);
    hpct_keras_pair(layer, "kernel_size", conv.kernel);
    hpct_keras_pair(layer, "strides", conv.strides);
    hpct_keras_pair(layer, "dilation_rate", dilation);
    conv.padding = hpct_keras_padding(layer);
    conv.no_bias = !hpct_keras_bool(layer, "use_bias", true);
    conv.activation = hpct_keras_activation(layer);
    if (dilation[0] != 1 || dilation[1] != 1)
        hpct_keras_fail(layer, "dilation_rate other than 1 is not supported");
    if (hpct_keras_int(layer, "groups", 1) != 1) /* Keras 2 writes 1, without meaning */
        hpct_keras_fail(layer, "groups other than 1 are not supported");
    if (hpct_keras_taken(layer))
        hpct_model_add_conv2d_transpose(layer->model, &conv);
}

static json_t *conv2d_transpose_settings(const hpct_layer *layer)
{
    const hpct_conv2d_transpose *conv = &layer->config.conv2d_transpose;
    return json_pack("{s:i, s:[i,i], s:[i,i], s:s, s:b, s:s, s:s}", "filters", conv->filters,
                     "kernel_size", conv->kernel[0], conv->kernel[1], "strides",
                     or_one(conv->strides[0]), or_one(conv->strides[1]), "padding",
                     padding_name(conv->padding), "use_bias", !conv->no_bias, "activation",
                     hpct_keras_activation_name(conv->activation), "data_format", "channels_last");
}

static void add_separable_conv2d(hpct_keras_layer *layer)
{
    hpct_separable_conv2d conv = {0};
    take_data_format(layer);
    hpct_keras_need(layer, "filters");
    hpct_keras_need(layer, "kernel_size");
    conv.filters = hpct_keras_int(layer, "filters", 0);
    hpct_keras_pair(layer, "kernel_size", conv.kernel);
    hpct_keras_pair(layer, "strides", conv.strides);
    hpct_keras_pair(layer, "dilation_rate", conv.dilation);
    conv.multiplier = hpct_keras_int(layer, "depth_multiplier", 1);
    conv.padding = hpct_keras_padding(layer);
    conv.no_bias = !hpct_keras_bool(layer, "use_bias", true);
    conv.activation = hpct_keras_activation(layer);
    if (hpct_keras_int(layer, "groups", 1) != 1) /* Keras 2 writes 1, without meaning */
        hpct_keras_fail(layer, "groups other than 1 are not supported");
    if (hpct_keras_taken(layer))
        hpct_model_add_separable_conv2d(layer->model, &conv);
}

static json_t *separable_conv2d_settings(const hpct_layer *layer)
{
    const hpct_separable_conv2d *conv = &layer->config.separable_conv2d;
    return json_pack("{s:i, s:[i,i], s:[i,i], s:[i,i], s:i, s:s, s:b, s:s, s:s}", "filters",
                     conv->filters, "kernel_size", conv->kernel[0], conv->kernel[1], "strides",
                     or_one(conv->strides[0]), or_one(conv->strides[1]), "dilation_rate",
                     or_one(conv->dilation[0]), or_one(conv->dilation[1]), "depth_multiplier",
                     or_one(conv->multiplier), "padding", padding_name(conv->padding), "use_bias",
                     !conv->no_bias, "activation", hpct_keras_activation_name(conv->activation),
                     "data_format", "channels_last");
}

static hpct_pool2d take_pool2d(hpct_keras_layer *layer)
{
    hpct_pool2d pool = {.pool = {2, 2}};
    take_data_format(layer);
    hpct_keras_pair(layer, "pool_size", pool.pool);
    if (hpct_keras_has(layer, "strides")) /* null: the pool size */
        hpct_keras_pair(layer, "strides", pool.strides);
    pool.padding = hpct_keras_padding(layer);
    return pool;
}

static json_t *pool2d_settings(const hpct_layer *layer)
{
    const hpct_pool2d *pool = &layer->config.pool2d;
    return json_pack("{s:[i,i], s:[i,i], s:s, s:s}", "pool_size", pool->pool[0], pool->pool[1],
                     "strides", pool->strides[0] == 0 ? pool->pool[0] : pool->strides[0],
                     pool->strides[1] == 0 ? pool->pool[1] : pool->strides[1], "padding",
                     padding_name(pool->padding), "data_format", "channels_last");
}

static void add_max_pool2d(hpct_keras_layer *layer)
{
    hpct_max_pool2d pool = take_pool2d(layer);
    if (hpct_keras_taken(layer))
        hpct_model_add_max_pool2d(layer->model, &pool);
}

static void add_average_pool2d(hpct_keras_layer *layer)
{
    hpct_average_pool2d pool = take_pool2d(layer);
    if (hpct_keras_taken(layer))
        hpct_model_add_average_pool2d(layer->model, &pool);
}

static void add_dense(hpct_keras_layer *layer)
{
    hpct_dense dense = {0};
    hpct_keras_need(layer, "units");
    dense.units = hpct_keras_int(layer, "units", 0);
    dense.no_bias = !hpct_keras_bool(layer, "use_bias", true);
    dense.activation = hpct_keras_activation(layer);
    if (hpct_keras_taken(layer))
        hpct_model_add_dense(layer->model, &dense);
}

static json_t *dense_settings(const hpct_layer *layer)
{
    const hpct_dense *dense = &layer->config.dense;
    return json_pack("{s:i, s:b, s:s}", "units", dense->units, "use_bias", !dense->no_bias,
                     "activation", hpct_keras_activation_name(dense->activation));
}

static json_t *no_settings(const hpct_layer *layer)
{
    (void) layer;
    return json_object();
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

static json_t *reshape_settings(const hpct_layer *layer)
{
    json_t *sizes = json_array();
    for (int i = 0; i < layer->output.rank; i++)
        json_array_append_new(sizes, json_integer(layer->output.size[i]));
    return json_pack("{s:o}", "target_shape", sizes);
}

static void add_activation(hpct_keras_layer *layer)
{
    hpct_keras_need(layer, "activation");
    hpct_activation activation = hpct_keras_activation(layer);
    if (hpct_keras_taken(layer))
        hpct_model_add_activation(layer->model, activation);
}

static json_t *activation_settings(const hpct_layer *layer)
{
    return json_pack("{s:s}", "activation", hpct_keras_activation_name(layer->config.activation));
}

static void add_softmax(hpct_keras_layer *layer)
{
    hpct_keras_take_last_axis(layer);
    if (hpct_keras_taken(layer))
        hpct_model_add_activation(layer->model, HPCT_SOFTMAX);
}

static void add_add(hpct_keras_layer *layer)
{
    if (hpct_keras_taken(layer))
        hpct_model_add_add(layer->model, layer->inputs, layer->num_inputs);
}

static void add_concatenate(hpct_keras_layer *layer)
{
    hpct_keras_take_last_axis(layer);
    if (hpct_keras_taken(layer))
        hpct_model_add_concatenate(layer->model, layer->inputs, layer->num_inputs);
}

static json_t *concatenate_settings(const hpct_layer *layer)
{
    (void) layer;
    return json_pack("{s:i}", "axis", -1);
}

static double take_random(hpct_keras_layer *layer, const char *key)
{
    hpct_keras_need(layer, key);
    double number = hpct_keras_number(layer, key, 0);
    hpct_keras_drop(layer, "seed"); /* the seed of hpct_model_initialize is used */
    return number;
}

static void add_spatial_dropout2d(hpct_keras_layer *layer)
{
    double rate = take_random(layer, "rate");
    take_data_format(layer);
    hpct_keras_drop(layer, "noise_shape"); /* Keras writes that of its base class, null */
    if (hpct_keras_taken(layer))
        hpct_model_add_spatial_dropout2d(layer->model, rate);
}

static json_t *spatial_dropout2d_settings(const hpct_layer *layer)
{
    return json_pack("{s:f, s:s}", "rate", layer->config.dropout.rate, "data_format",
                     "channels_last");
}

static void add_gaussian_noise(hpct_keras_layer *layer)
{
    double stddev = take_random(layer, "stddev");
    if (hpct_keras_taken(layer))
        hpct_model_add_gaussian_noise(layer->model, stddev);
}

static json_t *gaussian_noise_settings(const hpct_layer *layer)
{
    return json_pack("{s:f}", "stddev", layer->config.gaussian_noise);
}

/* Of keras.applications' ConvNeXt. */
static void add_stochastic_depth(hpct_keras_layer *layer)
{
    double rate = take_random(layer, "drop_path_rate");
    if (hpct_keras_taken(layer))
        hpct_model_add_stochastic_depth(layer->model, rate);
}

static json_t *stochastic_depth_settings(const hpct_layer *layer)
{
    return json_pack("{s:f}", "drop_path_rate", layer->config.dropout.rate);
}

/* Of ConvNeXt, too; the number of channels, which Keras repeats, must be the input's. */
static void add_layer_scale(hpct_keras_layer *layer)
{
    const hpct_shape *input = &layer->model->tensors[layer->inputs[0]].shape;
    hpct_keras_need(layer, "init_values");
    double initial = hpct_keras_number(layer, "init_values", 0);
    int channels = hpct_keras_int(layer, "projection_dim", input->size[input->rank - 1]);
    if (channels != input->size[input->rank - 1])
        hpct_keras_fail(layer, "projection_dim %d is not the input's number of channels, %d",
                        channels, input->size[input->rank - 1]);
    if (hpct_keras_taken(layer))
        hpct_model_add_layer_scale(layer->model, initial);
}

static json_t *layer_scale_settings(const hpct_layer *layer)
{
    return json_pack("{s:f, s:i}", "init_values", layer->config.layer_scale, "projection_dim",
                     layer->output.size[layer->output.rank - 1]);
}

/* Of keras.applications' InceptionResNetV2. */
static void add_custom_scale(hpct_keras_layer *layer)
{
    hpct_keras_need(layer, "scale");
    double scale = hpct_keras_number(layer, "scale", 1);
    if (hpct_keras_taken(layer))
        hpct_model_add_scaled_add(layer->model, layer->inputs, scale);
}

static json_t *custom_scale_settings(const hpct_layer *layer)
{
    return json_pack("{s:f}", "scale", layer->config.scaled_add);
}

static void take_size(hpct_keras_layer *layer, int *height, int *width)
{
    hpct_keras_need(layer, "height");
    hpct_keras_need(layer, "width");
    *height = hpct_keras_int(layer, "height", 0);
    *width = hpct_keras_int(layer, "width", 0);
}

static void add_resizing(hpct_keras_layer *layer)
{
    static const char *const words[] = {"bilinear", NULL};
    int height, width;
    take_size(layer, &height, &width);
    take_data_format(layer);
    hpct_keras_word(layer, "interpolation", words);
    must_not_be(layer, "crop_to_aspect_ratio");
    must_not_be(layer, "pad_to_aspect_ratio");
    must_not_be(layer, "antialias");
    hpct_keras_drop(layer, "fill_mode"); /* of padding, which is not supported */
    hpct_keras_drop(layer, "fill_value");
    if (hpct_keras_taken(layer))
        hpct_model_add_resizing(layer->model, height, width);
}

static json_t *size_settings(const hpct_layer *layer)
{
    return json_pack("{s:i, s:i, s:s}", "height", layer->output.size[0], "width",
                     layer->output.size[1], "data_format", "channels_last");
}

static const char *const flips[] = {
    [HPCT_FLIP_BOTH] = "horizontal_and_vertical",
    [HPCT_FLIP_HORIZONTAL] = "horizontal",
    [HPCT_FLIP_VERTICAL] = "vertical",
    NULL,
};

static void add_random_flip(hpct_keras_layer *layer)
{
    int mode = hpct_keras_word(layer, "mode", flips);
    take_data_format(layer);
    hpct_keras_drop(layer, "seed");
    hpct_keras_drop(layer, "rng_type"); /* Keras 2: its random generator */
    if (hpct_keras_taken(layer))
        hpct_model_add_random_flip(layer->model, (hpct_flip) mode);
}

static json_t *random_flip_settings(const hpct_layer *layer)
{
    return json_pack("{s:s, s:s}", "mode", flips[layer->config.random_flip], "data_format",
                     "channels_last");
}

static void add_random_crop(hpct_keras_layer *layer)
{
    int height, width;
    take_size(layer, &height, &width);
    take_data_format(layer);
    hpct_keras_drop(layer, "seed");
    hpct_keras_drop(layer, "rng_type");
    if (hpct_keras_taken(layer))
        hpct_model_add_random_crop(layer->model, height, width);
}

/* `keeps`: the one with keepdims. */
static void add_global_pool2d(hpct_keras_layer *layer, void (*add)(hpct_model *model),
                              void (*keeps)(hpct_model *model))
{
    take_data_format(layer);
    bool keepdims = hpct_keras_bool(layer, "keepdims", false);
    if (hpct_keras_taken(layer))
        (keepdims ? keeps : add)(layer->model);
}

static void add_global_average_pool2d(hpct_keras_layer *layer)
{
    add_global_pool2d(layer, hpct_model_add_global_average_pool2d,
                      hpct_model_add_global_average_pool2d_keepdims);
}

static void add_global_max_pool2d(hpct_keras_layer *layer)
{
    add_global_pool2d(layer, hpct_model_add_global_max_pool2d,
                      hpct_model_add_global_max_pool2d_keepdims);
}

static json_t *global_pool2d_settings(const hpct_layer *layer)
{
    return json_pack("{s:b}", "keepdims", layer->output.rank == 3);
}

/* 0, the default, if absent. */
static double take_positive(hpct_keras_layer *layer, const char *key)
{
    if (json_object_get(layer->settings, key) == NULL)
        return 0;
    double number = hpct_keras_number(layer, key, 0);
    if (!(number > 0))
        hpct_keras_fail(layer, "%s %g is not supported: it must be above 0", key, number);
    return number;
}

static void add_batch_normalization(hpct_keras_layer *layer)
{
    hpct_batch_normalization norm = {0};
    hpct_keras_take_last_axis(layer);
    norm.momentum = take_positive(layer, "momentum");
    norm.epsilon = take_positive(layer, "epsilon");
    norm.no_center = !hpct_keras_bool(layer, "center", true);
    norm.no_scale = !hpct_keras_bool(layer, "scale", true);
    norm.synchronized = hpct_keras_bool(layer, "synchronized", false);
    must_not_be(layer, "renorm");
    hpct_keras_drop(layer, "renorm_momentum"); /* of renorm, which is not supported */
    if (hpct_keras_taken(layer))
        hpct_model_add_batch_normalization(layer->model, &norm);
}

static json_t *batch_normalization_settings(const hpct_layer *layer)
{
    const hpct_batch_normalization *norm = &layer->config.batch_normalization;
    return json_pack("{s:i, s:f, s:f, s:b, s:b, s:b}", "axis", -1, "momentum", norm->momentum,
                     "epsilon", norm->epsilon, "center", !norm->no_center, "scale", !norm->no_scale,
                     "synchronized", norm->synchronized);
}

static void add_layer_normalization(hpct_keras_layer *layer)
{
    hpct_layer_normalization norm = {0};
    hpct_keras_take_last_axis(layer);
    norm.epsilon = take_positive(layer, "epsilon");
    norm.no_center = !hpct_keras_bool(layer, "center", true);
    norm.no_scale = !hpct_keras_bool(layer, "scale", true);
    must_not_be(layer, "rms_scaling");
    if (hpct_keras_taken(layer))
        hpct_model_add_layer_normalization(layer->model, &norm);
}

static json_t *layer_normalization_settings(const hpct_layer *layer)
{
    const hpct_layer_normalization *norm = &layer->config.layer_normalization;
    return json_pack("{s:i, s:f, s:b, s:b}", "axis", -1, "epsilon", norm->epsilon, "center",
                     !norm->no_center, "scale", !norm->no_scale);
}

/* -1 is a group for each channel. */
static int take_groups(hpct_keras_layer *layer)
{
    const json_t *value = json_object_get(layer->settings, "groups");
    if (!json_is_integer(value) || json_integer_value(value) != -1)
        return hpct_keras_int(layer, "groups", 0);
    hpct_keras_drop(layer, "groups");
    return -1;
}

static void add_group_normalization(hpct_keras_layer *layer)
{
    hpct_group_normalization norm = {0};
    hpct_keras_take_last_axis(layer);
    norm.groups = take_groups(layer);
    norm.epsilon = take_positive(layer, "epsilon");
    norm.no_center = !hpct_keras_bool(layer, "center", true);
    norm.no_scale = !hpct_keras_bool(layer, "scale", true);
    if (hpct_keras_taken(layer))
        hpct_model_add_group_normalization(layer->model, &norm);
}

static json_t *group_normalization_settings(const hpct_layer *layer)
{
    const hpct_group_normalization *norm = &layer->config.group_normalization;
    return json_pack("{s:i, s:i, s:f, s:b, s:b}", "groups", norm->groups, "axis", -1, "epsilon",
                     norm->epsilon, "center", !norm->no_center, "scale", !norm->no_scale);
}

/* A number stands for itself twice; a list of two for its elements. */
static const json_t *one_of_two(const json_t *value, int which)
{
    if (!json_is_array(value))
        return value;
    return json_array_size(value) == 2 ? json_array_get(value, (size_t) which) : NULL;
}

/* 1, [1, 2] (both sides of height, of width), or [[1, 2], [3, 4]]. */
static bool read_frame(const json_t *value, int frame[2][2])
{
    for (int i = 0; i < 4; i++) {
        const json_t *at = one_of_two(one_of_two(value, i / 2), i % 2);
        json_int_t number = json_integer_value(at);
        if (!json_is_integer(at) || number < 0 || number > INT_MAX)
            return false;
        frame[i / 2][i % 2] = (int) number;
    }
    return true;
}

static void add_zero_padding2d(hpct_keras_layer *layer)
{
    hpct_zero_padding2d frame = {.padding = {{1, 1}, {1, 1}}};
    take_data_format(layer);
    json_t *value = hpct_keras_take(layer, "padding");
    if (value != NULL && !read_frame(value, frame.padding))
        hpct_keras_fail(layer, "padding is not one whole number, two, or two pairs");
    json_decref(value);
    if (hpct_keras_taken(layer))
        hpct_model_add_zero_padding2d(layer->model, &frame);
}

static json_t *zero_padding2d_settings(const hpct_layer *layer)
{
    const int(*frame)[2] = layer->config.zero_padding2d.padding;
    return json_pack("{s:[[i,i],[i,i]], s:s}", "padding", frame[0][0], frame[0][1], frame[1][0],
                     frame[1][1], "data_format", "channels_last");
}

static void add_cropping2d(hpct_keras_layer *layer)
{
    hpct_cropping2d frame = {0};
    take_data_format(layer);
    hpct_keras_need(layer, "cropping");
    json_t *value = hpct_keras_take(layer, "cropping");
    if (value != NULL && !read_frame(value, frame.cropping))
        hpct_keras_fail(layer, "cropping is not one whole number, two, or two pairs");
    json_decref(value);
    if (hpct_keras_taken(layer))
        hpct_model_add_cropping2d(layer->model, &frame);
}

static json_t *cropping2d_settings(const hpct_layer *layer)
{
    const int(*frame)[2] = layer->config.cropping2d.cropping;
    return json_pack("{s:[[i,i],[i,i]], s:s}", "cropping", frame[0][0], frame[0][1], frame[1][0],
                     frame[1][1], "data_format", "channels_last");
}

static const char *const interpolations[] = {"nearest", "bilinear", NULL};

static void add_up_sampling2d(hpct_keras_layer *layer)
{
    hpct_up_sampling2d sampling = {.size = {2, 2}};
    take_data_format(layer);
    hpct_keras_pair(layer, "size", sampling.size);
    sampling.bilinear = hpct_keras_word(layer, "interpolation", interpolations) == 1;
    if (hpct_keras_taken(layer))
        hpct_model_add_up_sampling2d(layer->model, &sampling);
}

static json_t *up_sampling2d_settings(const hpct_layer *layer)
{
    const hpct_up_sampling2d *sampling = &layer->config.up_sampling2d;
    return json_pack("{s:[i,i], s:s, s:s}", "size", sampling->size[0], sampling->size[1],
                     "interpolation", interpolations[sampling->bilinear], "data_format",
                     "channels_last");
}

static void add_permute(hpct_keras_layer *layer)
{
    hpct_shape axes = hpct_keras_shape(layer, "dims");
    if (axes.rank != layer->model->tensors[layer->inputs[0]].shape.rank)
        hpct_keras_fail(layer, "dims must have as many axes as the input");
    if (hpct_keras_taken(layer))
        hpct_model_add_permute(layer->model, axes.size);
}

static json_t *permute_settings(const hpct_layer *layer)
{
    json_t *axes = json_array();
    for (int i = 0; i < layer->output.rank; i++)
        json_array_append_new(axes, json_integer(layer->config.permute[i]));
    return json_pack("{s:o}", "dims", axes);
}

static const hpct_keras_class classes[] = {
    {"Activation", 1, 1, add_activation, activation_settings},
    {"Add", 2, HPCT_KERAS_MAX_INPUTS, add_add, no_settings},
    {"AveragePooling2D", 1, 1, add_average_pool2d, pool2d_settings},
    {"BatchNormalization", 1, 1, add_batch_normalization, batch_normalization_settings},
    {"Concatenate", 2, HPCT_KERAS_MAX_INPUTS, add_concatenate, concatenate_settings},
    {"Conv2D", 1, 1, add_conv2d, conv2d_settings},
    {"Conv2DTranspose", 1, 1, add_conv2d_transpose, conv2d_transpose_settings},
    {"Cropping2D", 1, 1, add_cropping2d, cropping2d_settings},
    {"CustomScaleLayer", 2, 2, add_custom_scale, custom_scale_settings},
    {"Dense", 1, 1, add_dense, dense_settings},
    {"DepthwiseConv2D", 1, 1, add_depthwise_conv2d, depthwise_conv2d_settings},
    {"Dropout", 1, 1, hpct_keras_add_dropout, hpct_keras_dropout_settings},
    {"ELU", 1, 1, hpct_keras_add_elu, hpct_keras_elu_settings},
    {"Flatten", 1, 1, add_flatten, no_settings},
    {"GaussianNoise", 1, 1, add_gaussian_noise, gaussian_noise_settings},
    {"GlobalAveragePooling2D", 1, 1, add_global_average_pool2d, global_pool2d_settings},
    {"GlobalMaxPooling2D", 1, 1, add_global_max_pool2d, global_pool2d_settings},
    {"GroupNormalization", 1, 1, add_group_normalization, group_normalization_settings},
    {"LayerNormalization", 1, 1, add_layer_normalization, layer_normalization_settings},
    {"LayerScale", 1, 1, add_layer_scale, layer_scale_settings},
    {"LeakyReLU", 1, 1, hpct_keras_add_leaky_relu, hpct_keras_leaky_relu_settings},
    {"MaxPooling2D", 1, 1, add_max_pool2d, pool2d_settings},
    {"Multiply", 2, HPCT_KERAS_MAX_INPUTS, hpct_keras_add_multiply, no_settings},
    {"Normalization", 1, 1, hpct_keras_add_normalization, hpct_keras_normalization_settings},
    {"PReLU", 1, 1, hpct_keras_add_prelu, hpct_keras_prelu_settings},
    {"Permute", 1, 1, add_permute, permute_settings},
    {"RandomBrightness", 1, 1, hpct_keras_add_random_brightness, hpct_keras_random_tone_settings},
    {"RandomContrast", 1, 1, hpct_keras_add_random_contrast, hpct_keras_random_tone_settings},
    {"RandomCrop", 1, 1, add_random_crop, size_settings},
    {"RandomFlip", 1, 1, add_random_flip, random_flip_settings},
    {"RandomRotation", 1, 1, hpct_keras_add_random_rotation, hpct_keras_random_rotation_settings},
    {"RandomTranslation", 1, 1, hpct_keras_add_random_translation,
     hpct_keras_random_sizes_settings},
    {"RandomZoom", 1, 1, hpct_keras_add_random_zoom, hpct_keras_random_sizes_settings},
    {"ReLU", 1, 1, hpct_keras_add_relu, hpct_keras_relu_settings},
    {"Rescaling", 1, 1, hpct_keras_add_rescaling, hpct_keras_rescaling_settings},
    {"Reshape", 1, 1, add_reshape, reshape_settings},
    {"Resizing", 1, 1, add_resizing, size_settings},
    {"SeparableConv2D", 1, 1, add_separable_conv2d, separable_conv2d_settings},
    {"Softmax", 1, 1, add_softmax, NULL},
    {"SpatialDropout2D", 1, 1, add_spatial_dropout2d, spatial_dropout2d_settings},
    {"StochasticDepth", 1, 1, add_stochastic_depth, stochastic_depth_settings},
    {"UpSampling2D", 1, 1, add_up_sampling2d, up_sampling2d_settings},
    {"ZeroPadding2D", 1, 1, add_zero_padding2d, zero_padding2d_settings},
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

const char *hpct_keras_module(const char *class_name)
{
    static const struct {
        const char *class_name, *module;
    } others[] = {
        {"CustomScaleLayer", "keras.src.applications.inception_resnet_v2"},
        {"LayerScale", "keras.src.applications.convnext"},
        {"StochasticDepth", "keras.src.applications.convnext"},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (strcmp(others[i].class_name, class_name) == 0)
            return others[i].module;
    }
    return "keras.layers";
}

void hpct_keras_list(char *text, size_t size)
{
    size_t used = (size_t) snprintf(text, size, "InputLayer");
    for (size_t i = 0; i < NUM_CLASSES && used < size; i++)
        used += (size_t) snprintf(text + used, size - used, ", %s", classes[i].class_name);
}
