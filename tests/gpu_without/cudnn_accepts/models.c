/* The built-in models; and MobileNetV2 and EfficientNetB0 with the layers of keras.applications,
 * for their depthwise convolutions. */
#include "tests/gpu_without/cudnn_accepts/models.h"

#include "base/status.h"

#include <string.h>

const char *const accepts_models[MODELS_ALL + 1] = {
    "mnist-cnn",   "mnist-convnet", "resnet50",       "resnet50v2",
    "resnet152v2", "MobileNetV2",   "EfficientNetB0", NULL};

#define CLASSES 1000

/* A convolution without bias, its normalization, an activation. */
static void add_conv(hpct_model *model, int filters, int kernel, int stride, hpct_activation after)
{
    hpct_model_add_conv2d(model, &(hpct_conv2d){.filters = filters,
                                                .kernel = {kernel, kernel},
                                                .strides = {stride, stride},
                                                .padding = HPCT_SAME,
                                                .no_bias = true});
    hpct_model_add_batch_normalization(model, &(hpct_batch_normalization){0});
    if (after != HPCT_LINEAR)
        hpct_model_add_activation(model, after);
}

/* With a stride Keras pads first, by one cell less above and on the left. */
static void add_depthwise(hpct_model *model, int kernel, int stride, hpct_activation after)
{
    int pad = kernel / 2;
    if (stride > 1)
        hpct_model_add_zero_padding2d(model,
                                      &(hpct_zero_padding2d){{{pad - 1, pad}, {pad - 1, pad}}});
    hpct_model_add_depthwise_conv2d(
        model, &(hpct_depthwise_conv2d){.kernel = {kernel, kernel},
                                        .strides = {stride, stride},
                                        .padding = stride > 1 ? HPCT_VALID : HPCT_SAME,
                                        .no_bias = true});
    hpct_model_add_batch_normalization(model, &(hpct_batch_normalization){0});
    hpct_model_add_activation(model, after);
}

/* A group of blocks; the first one has the stride. */
typedef struct group {
    int blocks, channels, expand, kernel, stride;
} group;

/* Squeeze and excite: each channel times a factor that follows from all. */
static void add_excite(hpct_model *model, int channels, int squeezed)
{
    int head = hpct_model_head(model);
    hpct_model_add_global_average_pool2d_keepdims(model);
    hpct_model_add_conv2d(
        model, &(hpct_conv2d){.filters = squeezed, .kernel = {1, 1}, .activation = HPCT_SILU});
    hpct_model_add_conv2d(
        model, &(hpct_conv2d){.filters = channels, .kernel = {1, 1}, .activation = HPCT_SIGMOID});
    hpct_model_add_multiply(model, (int[]){head, hpct_model_head(model)}, 2);
}

/* An inverted residual block of `in` channels. */
static void add_block(hpct_model *model, const group *g, int in, int stride, bool excites,
                      hpct_activation after)
{
    int head = hpct_model_head(model), wide = in * g->expand;
    if (g->expand > 1)
        add_conv(model, wide, 1, 1, after);
    add_depthwise(model, g->kernel, stride, after);
    if (excites)
        add_excite(model, wide, in / 4);
    add_conv(model, g->channels, 1, 1, HPCT_LINEAR);
    if (stride == 1 && in == g->channels)
        hpct_model_add_add(model, (int[]){head, hpct_model_head(model)}, 2);
}

static void add_groups(hpct_model *model, const group *groups, int count, bool excites,
                       hpct_activation after)
{
    int in = 32;
    add_conv(model, in, 3, 2, after);
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < groups[i].blocks; k++) {
            add_block(model, &groups[i], in, k == 0 ? groups[i].stride : 1, excites, after);
            in = groups[i].channels;
        }
    }
    add_conv(model, 1280, 1, 1, after);
    hpct_model_add_global_average_pool2d(model);
    hpct_model_add_dense(model, &(hpct_dense){.units = CLASSES, .activation = HPCT_SOFTMAX});
}

/* Sandler and others, MobileNetV2: Inverted Residuals and Linear Bottlenecks, 2018, table 2. */
static void add_mobilenet_v2(hpct_model *model)
{
    static const group groups[] = {{1, 16, 1, 3, 1}, {2, 24, 6, 3, 2}, {3, 32, 6, 3, 2},
                                   {4, 64, 6, 3, 2}, {3, 96, 6, 3, 1}, {3, 160, 6, 3, 2},
                                   {1, 320, 6, 3, 1}};
    add_groups(model, groups, 7, false, HPCT_RELU6);
}

/* Tan and Le, EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks, 2019, table
 * 1. */
static void add_efficientnet_b0(hpct_model *model)
{
    static const group groups[] = {{1, 16, 1, 3, 1}, {2, 24, 6, 3, 2},  {2, 40, 6, 5, 2},
                                   {3, 80, 6, 3, 2}, {3, 112, 6, 5, 1}, {4, 192, 6, 5, 2},
                                   {1, 320, 6, 3, 1}};
    add_groups(model, groups, 7, true, HPCT_SILU);
}

static hpct_status describe(hpct_model **out, const char *name)
{
    if (strcmp(name, "MobileNetV2") != 0 && strcmp(name, "EfficientNetB0") != 0)
        return hpct_model_builtin(out, name);
    *out = hpct_model_new(name, HPCT_SHAPE(224, 224, 3));
    if (*out == NULL)
        return hpct_fail_memory(0);
    if (strcmp(name, "MobileNetV2") == 0)
        add_mobilenet_v2(*out);
    else
        add_efficientnet_b0(*out);
    return HPCT_OK;
}

hpct_status accepts_model(hpct_model **out, const char *name, hpct_precision precision)
{
    const hpct_compile_options options = {
        .loss = HPCT_SPARSE_CATEGORICAL_CROSSENTROPY,
        .precision = precision,
        .optimizer = {.kind = HPCT_SGD, .learning_rate = 0.1, .momentum = 0.9}};
    *out = NULL;
    HPCT_TRY(describe(out, name));
    return hpct_model_compile_with(*out, &options);
}
