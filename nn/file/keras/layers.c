/* Keras' layer classes: settings of each, and how it is added to a model. A new layer is a function
 * that adds it, and a row with its settings. */
#include "nn/file/keras/elements.h"
#include "nn/file/keras/variations.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#define AT(member) .at = offsetof(hpct_layer_config, member)
#define FIELDS(...) .fields = ((const hpct_keras_field[]){__VA_ARGS__, {.key = NULL}})
#define DROP(name)                                                                                 \
    {                                                                                              \
        name, HPCT_KERAS_DROPPED, .read_only = true                                                \
    }
#define SEED DROP("seed") /* the seed of hpct_model_initialize is used */

static const char *const channels_last[] = {"channels_last", NULL};

/* null is Keras' default, channels last. */
#define DATA_FORMAT "data_format", HPCT_KERAS_ONLY, .words = channels_last, .nullable = true

/* ---- convolutions, poolings, Dense ---- */

static const char *const paddings[] = {[HPCT_VALID] = "valid", [HPCT_SAME] = "same", NULL};

#define WINDOW(layer)                                                                              \
    {"kernel_size", HPCT_KERAS_PAIR, AT(layer.kernel), .required = true},                          \
    {                                                                                              \
        "strides", HPCT_KERAS_PAIR, AT(layer.strides)                                              \
    }
#define RESULT(layer)                                                                              \
    {"padding", HPCT_KERAS_WORD, AT(layer.padding), .words = paddings},                            \
        {"use_bias", HPCT_KERAS_NOT, AT(layer.no_bias)},                                           \
        {"activation", HPCT_KERAS_ACTIVATION, AT(layer.activation)},                               \
    {                                                                                              \
        DATA_FORMAT                                                                                \
    }
/* Keras 2 writes 1, without meaning. */
#define ONE_GROUP                                                                                  \
    {                                                                                              \
        "groups", HPCT_KERAS_ONE, .read_only = true                                                \
    }

/* strides null: the pool size. */
static const hpct_keras_field pool2d[] = {
    {"pool_size", HPCT_KERAS_PAIR, AT(pool2d.pool), .fallback = 2},
    {"strides", HPCT_KERAS_PAIR, AT(pool2d.strides), .nullable = true},
    {"padding", HPCT_KERAS_WORD, AT(pool2d.padding), .words = paddings},
    {DATA_FORMAT},
    {.key = NULL},
};

static const hpct_keras_field global_pool2d[] = {
    {"keepdims", HPCT_KERAS_FLAG, AT(keepdims)},
    {DATA_FORMAT, .read_only = true},
    {.key = NULL},
};

static const hpct_keras_field none[] = {{.key = NULL}};
static const hpct_keras_field last_axis[] = {{"axis", .form = HPCT_KERAS_LAST_AXIS}, {.key = NULL}};

static const char *const bilinear[] = {"bilinear", NULL};
static const char *const interpolations[] = {"nearest", "bilinear", NULL};

/* ---- settings that are not one member each ---- */

/* A number stands for itself twice; a list of two for its elements. */
static const json_t *one_of_two(const json_t *value, int which)
{
    if (!json_is_array(value))
        return value;
    return json_array_size(value) == 2 ? json_array_get(value, (size_t) which) : NULL;
}

/* 1, [1, 2] (both sides of height, of width), or [[1, 2], [3, 4]]. */
static bool set_frame(const json_t *value, int frame[2][2])
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

static void read_frame(hpct_keras_layer *layer, const hpct_keras_field *field, void *member)
{
    int(*frame)[2] = member;
    json_t *value = hpct_keras_take(layer, field->key);
    for (int i = 0; i < 4; i++)
        frame[i / 2][i % 2] = 1;
    if (value != NULL && !set_frame(value, frame))
        hpct_keras_fail(layer, "%s is not one whole number, two, or two pairs", field->key);
    json_decref(value);
}

static int write_frame(json_t *settings, const hpct_keras_field *field, const hpct_layer *layer,
                       const void *member)
{
    (void) layer;
    const int(*frame)[2] = member;
    return json_object_set_new(
        settings, field->key,
        json_pack("[[i,i],[i,i]]", frame[0][0], frame[0][1], frame[1][0], frame[1][1]));
}

static const hpct_keras_special frame = {read_frame, write_frame};

#define AFFINE(layer)                                                                              \
    {"epsilon", HPCT_KERAS_POSITIVE, AT(layer.epsilon)},                                           \
        {"center", HPCT_KERAS_NOT, AT(layer.no_center)},                                           \
    {                                                                                              \
        "scale", HPCT_KERAS_NOT, AT(layer.no_scale)                                                \
    }

/* -1 is a group for each channel. */
static void read_groups(hpct_keras_layer *layer, const hpct_keras_field *field, void *member)
{
    const json_t *value = json_object_get(layer->settings, field->key);
    bool each = json_is_integer(value) && json_integer_value(value) == -1;
    if (each)
        hpct_keras_drop(layer, field->key);
    *(int *) member = each ? -1 : hpct_keras_int(layer, field->key, 0);
}

static int write_groups(json_t *settings, const hpct_keras_field *field, const hpct_layer *layer,
                        const void *member)
{
    (void) layer;
    return json_object_set_new(settings, field->key, json_integer(*(const int *) member));
}

static const hpct_keras_special groups = {read_groups, write_groups};

/* LayerScale repeats the input's number of channels. */
static void read_channels(hpct_keras_layer *layer, const hpct_keras_field *field, void *member)
{
    (void) member;
    const hpct_shape *input = &layer->model->tensors[layer->inputs[0]].shape;
    int own = input->size[input->rank - 1], channels = hpct_keras_int(layer, field->key, own);
    if (channels != own)
        hpct_keras_fail(layer, "%s %d is not the input's number of channels, %d", field->key,
                        channels, own);
}

static int write_channels(json_t *settings, const hpct_keras_field *field, const hpct_layer *layer,
                          const void *member)
{
    (void) member;
    return json_object_set_new(settings, field->key,
                               json_integer(layer->output.size[layer->output.rank - 1]));
}

static const hpct_keras_special channels = {read_channels, write_channels};

/* rng_type is Keras 2's random generator. */
#define RANDOM {DATA_FORMAT}, SEED, DROP("rng_type")

static const char *const flips[] = {
    [HPCT_FLIP_BOTH] = "horizontal_and_vertical",
    [HPCT_FLIP_HORIZONTAL] = "horizontal",
    [HPCT_FLIP_VERTICAL] = "vertical",
    NULL,
};
static const char *const fill_modes[] = {
    [HPCT_FILL_REFLECT] = "reflect",
    [HPCT_FILL_CONSTANT] = "constant",
    [HPCT_FILL_NEAREST] = "nearest",
    [HPCT_FILL_WRAP] = "wrap",
    NULL,
};
static const char *const fill_interpolations[] = {"bilinear", "nearest", NULL};

#define HEIGHT(name)                                                                               \
    {                                                                                              \
        name, HPCT_KERAS_SPECIAL, AT(random_affine.height), .special = &hpct_keras_factor,         \
                                                            .required = true                       \
    }
#define FILL                                                                                       \
    {"fill_mode", HPCT_KERAS_WORD, AT(random_affine.fill_mode), .words = fill_modes},              \
        {"fill_value", HPCT_KERAS_NUMBER, AT(random_affine.fill_value)},                           \
        {"interpolation", HPCT_KERAS_CHOICE, AT(random_affine.nearest),                            \
         .words = fill_interpolations},                                                            \
        RANDOM

#define TONE                                                                                       \
    {"value_range", HPCT_KERAS_SPECIAL, AT(random_tone.value_range),                               \
     .special = &hpct_keras_value_range},                                                          \
        {DATA_FORMAT, .read_only = true}, SEED, DROP("rng_type")

/* ---- adding ---- */

#define ADD(name, ...)                                                                             \
    static void add_##name(hpct_keras_layer *layer, const hpct_layer_config *config)               \
    {                                                                                              \
        (void) config;                                                                             \
        hpct_model_add_##name(layer->model, __VA_ARGS__);                                          \
    }

ADD(activation, config->activation)
ADD(add, layer->inputs, layer->num_inputs)
ADD(average_pool2d, &config->pool2d)
ADD(batch_normalization, &config->batch_normalization)
ADD(concatenate, layer->inputs, layer->num_inputs)
ADD(conv2d, &config->conv2d)
ADD(conv2d_transpose, &config->conv2d_transpose)
ADD(cropping2d, &config->cropping2d)
ADD(dense, &config->dense)
ADD(depthwise_conv2d, &config->depthwise_conv2d)
ADD(elu, config->slope)
ADD(gaussian_noise, config->gaussian_noise)
ADD(group_normalization, &config->group_normalization)
ADD(layer_normalization, &config->layer_normalization)
ADD(layer_scale, config->layer_scale)
ADD(leaky_relu, config->slope)
ADD(max_pool2d, &config->pool2d)
ADD(multiply, layer->inputs, layer->num_inputs)
ADD(prelu, config->shared)
ADD(random_brightness, &config->random_tone)
ADD(random_contrast, &config->random_tone)
ADD(random_crop, config->size[0], config->size[1])
ADD(random_flip, config->random_flip)
ADD(random_translation, &config->random_affine)
ADD(random_zoom, &config->random_affine)
ADD(reshape, config->shape)
ADD(resizing, config->size[0], config->size[1])
ADD(scaled_add, layer->inputs, config->scaled_add)
ADD(separable_conv2d, &config->separable_conv2d)
ADD(spatial_dropout2d, config->dropout.rate)
ADD(stochastic_depth, config->dropout.rate)
ADD(up_sampling2d, &config->up_sampling2d)
ADD(zero_padding2d, &config->zero_padding2d)

static void add_dropout(hpct_keras_layer *layer, const hpct_layer_config *config)
{
    if (config->dropout.per_sample)
        hpct_model_add_sample_dropout(layer->model, config->dropout.rate);
    else
        hpct_model_add_dropout(layer->model, config->dropout.rate);
}

static void add_flatten(hpct_keras_layer *layer, const hpct_layer_config *config)
{
    (void) config;
    hpct_model_add_flatten(layer->model);
}

static void add_global_average_pool2d(hpct_keras_layer *layer, const hpct_layer_config *config)
{
    if (config->keepdims)
        hpct_model_add_global_average_pool2d_keepdims(layer->model);
    else
        hpct_model_add_global_average_pool2d(layer->model);
}

static void add_global_max_pool2d(hpct_keras_layer *layer, const hpct_layer_config *config)
{
    if (config->keepdims)
        hpct_model_add_global_max_pool2d_keepdims(layer->model);
    else
        hpct_model_add_global_max_pool2d(layer->model);
}

static void add_normalization(hpct_keras_layer *layer, const hpct_layer_config *config)
{
    if (config->normalization.channels > 0)
        hpct_model_add_normalization_by(layer->model, &config->normalization);
    else
        hpct_model_add_normalization(layer->model);
}

static void add_permute(hpct_keras_layer *layer, const hpct_layer_config *config)
{
    if (config->shape.rank != layer->model->tensors[layer->inputs[0]].shape.rank)
        hpct_keras_fail(layer, "dims must have as many axes as the input");
    else
        hpct_model_add_permute(layer->model, config->shape.size);
}

/* Keras' two usual ones are written as Activation. */
static void add_relu(hpct_keras_layer *layer, const hpct_layer_config *config)
{
    const hpct_relu *own = &config->relu;
    bool plain = own->negative_slope == 0 && own->threshold == 0;
    if (plain && own->max_value == 6)
        hpct_model_add_activation(layer->model, HPCT_RELU6);
    else if (plain && own->max_value == INFINITY)
        hpct_model_add_activation(layer->model, HPCT_RELU);
    else
        hpct_model_add_relu(layer->model, own);
}

static void add_random_rotation(hpct_keras_layer *layer, const hpct_layer_config *config)
{
    hpct_random_affine affine = config->random_affine;
    affine.square = true; /* one factor */
    hpct_model_add_random_rotation(layer->model, &affine);
}

static void add_rescaling(hpct_keras_layer *layer, const hpct_layer_config *config)
{
    if (config->rescaling.each.channels > 0)
        hpct_model_add_rescaling_by(layer->model, &config->rescaling.each);
    else
        hpct_model_add_rescaling(layer->model, config->rescaling.scale, config->rescaling.offset);
}

static void add_softmax(hpct_keras_layer *layer, const hpct_layer_config *config)
{
    (void) config;
    hpct_model_add_activation(layer->model, HPCT_SOFTMAX);
}

/* ---- the table ---- */

#define CONVNEXT "keras.src.applications.convnext"
#define INCEPTION "keras.src.applications.inception_resnet_v2"
#define MANY HPCT_KERAS_MAX_INPUTS

static const hpct_keras_class classes[] = {
    {"Activation", 1, 1, add_activation,
     FIELDS({"activation", HPCT_KERAS_ACTIVATION, AT(activation), .required = true})},
    {"Add", 2, MANY, add_add, .fields = none},
    {"AveragePooling2D", 1, 1, add_average_pool2d, .fields = pool2d},
    {"BatchNormalization", 1, 1, add_batch_normalization,
     FIELDS({"axis", .form = HPCT_KERAS_LAST_AXIS},
            {"momentum", HPCT_KERAS_POSITIVE, AT(batch_normalization.momentum)},
            AFFINE(batch_normalization),
            {"synchronized", HPCT_KERAS_FLAG, AT(batch_normalization.synchronized)},
            {"renorm", HPCT_KERAS_FALSE, .read_only = true},
            DROP("renorm_momentum"))} /* of renorm */,
    {"Concatenate", 2, MANY, add_concatenate, .fields = last_axis},
    {"Conv2D", 1, 1, add_conv2d,
     FIELDS({"filters", HPCT_KERAS_SIZE, AT(conv2d.filters), .required = true}, WINDOW(conv2d),
            {"dilation_rate", HPCT_KERAS_PAIR, AT(conv2d.dilation)},
            {"groups", HPCT_KERAS_SIZE, AT(conv2d.groups)}, RESULT(conv2d))},
    {"Conv2DTranspose", 1, 1, add_conv2d_transpose,
     FIELDS({"filters", HPCT_KERAS_SIZE, AT(conv2d_transpose.filters), .required = true},
            WINDOW(conv2d_transpose), RESULT(conv2d_transpose),
            {"dilation_rate", HPCT_KERAS_ONES, .read_only = true}, ONE_GROUP)},
    {"Cropping2D", 1, 1, add_cropping2d,
     FIELDS({"cropping", HPCT_KERAS_SPECIAL, AT(cropping2d.cropping), .special = &frame,
             .required = true},
            {DATA_FORMAT})},
    {"CustomScaleLayer", 2, 2, add_scaled_add,
     FIELDS({"scale", HPCT_KERAS_NUMBER, AT(scaled_add), .required = true}), .module = INCEPTION},
    {"Dense", 1, 1, add_dense,
     FIELDS({"units", HPCT_KERAS_SIZE, AT(dense.units), .required = true},
            {"use_bias", HPCT_KERAS_NOT, AT(dense.no_bias)},
            {"activation", HPCT_KERAS_ACTIVATION, AT(dense.activation)})},
    {"DepthwiseConv2D", 1, 1, add_depthwise_conv2d,
     FIELDS(WINDOW(depthwise_conv2d),
            {"dilation_rate", HPCT_KERAS_PAIR, AT(depthwise_conv2d.dilation)},
            {"depth_multiplier", HPCT_KERAS_SIZE, AT(depthwise_conv2d.multiplier)},
            RESULT(depthwise_conv2d), ONE_GROUP)},
    {"Dropout", 1, 1, add_dropout,
     FIELDS({"rate", HPCT_KERAS_NUMBER, AT(dropout.rate), .required = true},
            {"noise_shape", HPCT_KERAS_SPECIAL, AT(dropout.per_sample),
             .special = &hpct_keras_noise_shape},
            SEED),
     .rate = "rate"},
    {"ELU", 1, 1, add_elu, FIELDS({"alpha", HPCT_KERAS_NUMBER, AT(slope), .fallback = 1})},
    {"Flatten", 1, 1, add_flatten, FIELDS({DATA_FORMAT, .read_only = true})},
    {"GaussianNoise", 1, 1, add_gaussian_noise,
     FIELDS({"stddev", HPCT_KERAS_NUMBER, AT(gaussian_noise), .required = true}, SEED),
     .rate = "stddev"},
    {"GlobalAveragePooling2D", 1, 1, add_global_average_pool2d, .fields = global_pool2d},
    {"GlobalMaxPooling2D", 1, 1, add_global_max_pool2d, .fields = global_pool2d},
    {"GroupNormalization", 1, 1, add_group_normalization,
     FIELDS({"groups", HPCT_KERAS_SPECIAL, AT(group_normalization.groups), .special = &groups},
            {"axis", .form = HPCT_KERAS_LAST_AXIS}, AFFINE(group_normalization))},
    {"LayerNormalization", 1, 1, add_layer_normalization,
     FIELDS({"axis", .form = HPCT_KERAS_LAST_AXIS}, AFFINE(layer_normalization),
            {"rms_scaling", HPCT_KERAS_FALSE, .read_only = true})},
    {"LayerScale", 1, 1, add_layer_scale,
     FIELDS({"init_values", HPCT_KERAS_NUMBER, AT(layer_scale), .required = true},
            {"projection_dim", HPCT_KERAS_SPECIAL, .special = &channels}),
     .module = CONVNEXT},
    {"LeakyReLU", 1, 1, add_leaky_relu,
     FIELDS({"negative_slope", HPCT_KERAS_SPECIAL, AT(slope), .special = &hpct_keras_slope})},
    {"MaxPooling2D", 1, 1, add_max_pool2d, .fields = pool2d},
    {"Multiply", 2, MANY, add_multiply, .fields = none},
    {"Normalization", 1, 1, add_normalization,
     FIELDS({"axis", .form = HPCT_KERAS_LAST_AXIS}, {"invert", .form = HPCT_KERAS_FALSE},
            {"mean", HPCT_KERAS_SPECIAL, AT(normalization),
             .special = &hpct_keras_mean_and_variance})},
    {"PReLU", 1, 1, add_prelu,
     FIELDS({"shared_axes", HPCT_KERAS_SPECIAL, AT(shared), .special = &hpct_keras_shared_axes})},
    {"Permute", 1, 1, add_permute, FIELDS({"dims", HPCT_KERAS_SHAPE, AT(shape), .required = true})},
    {"RandomBrightness", 1, 1, add_random_brightness,
     FIELDS({"factor", HPCT_KERAS_SPECIAL, AT(random_tone.factor), .special = &hpct_keras_factor,
             .required = true},
            TONE)},
    {"RandomContrast", 1, 1, add_random_contrast,
     FIELDS({"factor", HPCT_KERAS_SPECIAL, AT(random_tone.factor),
             .special = &hpct_keras_contrast_factor, .required = true},
            TONE)},
    {"RandomCrop", 1, 1, add_random_crop,
     FIELDS({"height", HPCT_KERAS_SIZE, AT(size[0]), .required = true},
            {"width", HPCT_KERAS_SIZE, AT(size[1]), .required = true}, RANDOM)},
    {"RandomFlip", 1, 1, add_random_flip,
     FIELDS({"mode", HPCT_KERAS_WORD, AT(random_flip), .words = flips}, RANDOM)},
    {"RandomRotation", 1, 1, add_random_rotation, FIELDS(HEIGHT("factor"), FILL)},
    {"RandomTranslation", 1, 1, add_random_translation,
     FIELDS(HEIGHT("height_factor"),
            {"width_factor", HPCT_KERAS_SPECIAL, AT(random_affine.width),
             .special = &hpct_keras_factor, .required = true},
            FILL)},
    {"RandomZoom", 1, 1, add_random_zoom,
     FIELDS(HEIGHT("height_factor"),
            {"width_factor", HPCT_KERAS_SPECIAL, AT(random_affine),
             .special = &hpct_keras_width_factor, .nullable = true},
            FILL)},
    {"ReLU", 1, 1, add_relu,
     FIELDS({"max_value", HPCT_KERAS_NUMBER, AT(relu.max_value), .fallback = INFINITY,
             .nullable = true},
            {"negative_slope", HPCT_KERAS_NUMBER, AT(relu.negative_slope)},
            {"threshold", HPCT_KERAS_NUMBER, AT(relu.threshold)})},
    {"Rescaling", 1, 1, add_rescaling,
     FIELDS({"scale", HPCT_KERAS_SPECIAL, AT(rescaling), .special = &hpct_keras_scale_and_offset,
             .required = true})},
    {"Reshape", 1, 1, add_reshape,
     FIELDS({"target_shape", HPCT_KERAS_SHAPE, AT(shape), .required = true})},
    {"Resizing", 1, 1, add_resizing,
     FIELDS({"height", HPCT_KERAS_SIZE, AT(size[0]), .required = true},
            {"width", HPCT_KERAS_SIZE, AT(size[1]), .required = true}, {DATA_FORMAT},
            {"interpolation", HPCT_KERAS_ONLY, .words = bilinear, .read_only = true},
            {"crop_to_aspect_ratio", HPCT_KERAS_FALSE, .read_only = true},
            {"pad_to_aspect_ratio", HPCT_KERAS_FALSE, .read_only = true},
            {"antialias", HPCT_KERAS_FALSE, .read_only = true},
            DROP("fill_mode"), /* of padding, which is not supported */
            DROP("fill_value"))},
    {"SeparableConv2D", 1, 1, add_separable_conv2d,
     FIELDS({"filters", HPCT_KERAS_SIZE, AT(separable_conv2d.filters), .required = true},
            WINDOW(separable_conv2d),
            {"dilation_rate", HPCT_KERAS_PAIR, AT(separable_conv2d.dilation)},
            {"depth_multiplier", HPCT_KERAS_SIZE, AT(separable_conv2d.multiplier)},
            RESULT(separable_conv2d), ONE_GROUP)},
    {"Softmax", 1, 1, add_softmax, .fields = last_axis},
    {"SpatialDropout2D", 1, 1, add_spatial_dropout2d,
     FIELDS({"rate", HPCT_KERAS_NUMBER, AT(dropout.rate), .required = true}, {DATA_FORMAT},
            DROP("noise_shape"), /* Keras writes that of its base class, null */
            SEED),
     .rate = "rate"},
    {"StochasticDepth", 1, 1, add_stochastic_depth,
     FIELDS({"drop_path_rate", HPCT_KERAS_NUMBER, AT(dropout.rate), .required = true}, SEED),
     .module = CONVNEXT, .rate = "drop_path_rate"},
    {"UpSampling2D", 1, 1, add_up_sampling2d,
     FIELDS(
         {"size", HPCT_KERAS_PAIR, AT(up_sampling2d.size), .fallback = 2},
         {"interpolation", HPCT_KERAS_CHOICE, AT(up_sampling2d.bilinear), .words = interpolations},
         {DATA_FORMAT})},
    {"ZeroPadding2D", 1, 1, add_zero_padding2d,
     FIELDS({"padding", HPCT_KERAS_SPECIAL, AT(zero_padding2d.padding), .special = &frame},
            {DATA_FORMAT})},
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

void hpct_keras_add(const hpct_keras_class *class, hpct_keras_layer *layer)
{
    hpct_layer_config config;
    memset(&config, 0, sizeof config);
    hpct_keras_read_fields(layer, class->fields, &config);
    if (hpct_keras_taken(layer))
        class->add(layer, &config);
}

json_t *hpct_keras_settings(const hpct_layer *layer)
{
    const hpct_keras_class *class = hpct_keras_find(layer->type);
    return class != NULL ? hpct_keras_write_fields(class->fields, layer) : NULL;
}

void hpct_keras_list(char *text, size_t size)
{
    size_t used = (size_t) snprintf(text, size, "InputLayer");
    for (size_t i = 0; i < NUM_CLASSES && used < size; i++)
        used += (size_t) snprintf(text + used, size - used, ", %s", classes[i].class_name);
}
