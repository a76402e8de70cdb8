/* MobileNet: Howard and others, MobileNets: Efficient Convolutional Neural Networks for Mobile
 * Vision Applications, 2017; MobileNetV2: Sandler and others, 2018; MobileNetV3Small: Howard and
 * others, Searching for MobileNetV3, 2019. All of width 1, as keras.applications, with its names
 * and order of weights; activations that it has as layers of their own are some layers' settings
 * here. */
#include "nn/graph/model/inverted_residual.h"

#define LENGTH(array) (sizeof(array) / sizeof *(array))
#define MOMENTUM 0.999 /* of V2's and V3's BatchNormalization */

static void add_norm(hpct_model *model, const char *name, double momentum)
{
    hpct_model_name_layer(model, name);
    hpct_model_add_batch_normalization(model, &(hpct_batch_normalization){.momentum = momentum});
}

static void add_activation(hpct_model *model, const char *name, hpct_activation activation)
{
    if (name != NULL)
        hpct_model_name_layer(model, name);
    hpct_model_add_activation(model, activation);
}

/* A convolution in the place of a dense layer, of one cell. */
static void add_wide(hpct_model *model, const char *name, int filters, hpct_activation activation)
{
    hpct_model_name_layer(model, name);
    hpct_model_add_conv2d(model, &(hpct_conv2d){.filters = filters,
                                                .kernel = {1, 1},
                                                .padding = HPCT_SAME,
                                                .activation = activation});
}

static void add_softmax(hpct_model *model)
{
    hpct_model_name_layer(model, "predictions");
    hpct_model_add_activation(model, HPCT_SOFTMAX);
}

/* ---- V1: depthwise separable convolutions ---- */

static void add_part(hpct_model *model, const char *part, int block)
{
    hpct_builtin_part_name(model, "conv_%s_%d_bn", part, block);
    hpct_model_add_batch_normalization(model, &(hpct_batch_normalization){0});
    hpct_builtin_part_name(model, "conv_%s_%d_relu", part, block);
    hpct_model_add_activation(model, HPCT_RELU6);
}

static void add_separable(hpct_model *model, int block, int filters, int stride)
{
    if (stride > 1) {
        hpct_builtin_part_name(model, "conv_pad_%d", block);
        hpct_model_add_zero_padding2d(model, &(hpct_zero_padding2d){{{0, 1}, {0, 1}}});
    }
    hpct_builtin_part_name(model, "conv_dw_%d", block);
    hpct_builtin_part_depthwise(model, 3, stride);
    add_part(model, "dw", block);
    hpct_builtin_part_name(model, "conv_pw_%d", block);
    hpct_builtin_part_conv(model, filters, 1, 1, HPCT_SAME);
    add_part(model, "pw", block);
}

static void describe_v1(hpct_model *model, int classes)
{
    static const int blocks[][2] = {/* filters, stride */
                                    {64, 1},  {128, 2},  {128, 1}, {256, 2}, {256, 1},
                                    {512, 2}, {512, 1},  {512, 1}, {512, 1}, {512, 1},
                                    {512, 1}, {1024, 2}, {1024, 1}};
    hpct_model_name_layer(model, "conv1");
    hpct_builtin_part_conv(model, 32, 3, 2, HPCT_SAME);
    add_norm(model, "conv1_bn", 0);
    add_activation(model, "conv1_relu", HPCT_RELU6);
    for (size_t i = 0; i < LENGTH(blocks); i++)
        add_separable(model, (int) i + 1, blocks[i][0], blocks[i][1]);
    hpct_model_add_global_average_pool2d_keepdims(model);
    hpct_model_name_layer(model, "dropout");
    hpct_model_add_dropout(model, 0.001);
    add_wide(model, "conv_preds", classes, HPCT_LINEAR);
    hpct_model_name_layer(model, "reshape_2");
    hpct_model_add_reshape(model, HPCT_SHAPE(-1));
    add_softmax(model);
}

/* ---- V2 ---- */

static const hpct_builtin_inverted_style style_v2 = {
    .momentum = MOMENTUM,
    .expand = {"expand", "expand_BN", "expand_relu"},
    .depthwise = {"depthwise", "depthwise_BN", "depthwise_relu"},
    .project = {"project", "project_BN", NULL},
    .pad = "pad",
    .add = "add",
};

static void describe_v2(hpct_model *model, int classes)
{
    static const struct {
        int filters, count, stride;
    } stacks[] = {{16, 1, 1}, {24, 2, 2},  {32, 3, 2}, {64, 4, 2},
                  {96, 3, 1}, {160, 3, 2}, {320, 1, 1}};
    int number = 0;
    hpct_model_name_layer(model, "Conv1");
    hpct_builtin_part_conv(model, 32, 3, 2, HPCT_SAME);
    add_norm(model, "bn_Conv1", MOMENTUM);
    add_activation(model, "Conv1_relu", HPCT_RELU6);
    for (size_t s = 0; s < LENGTH(stacks); s++) {
        for (int i = 0; i < stacks[s].count; i++, number++) {
            char name[32] = "expanded_conv_";
            if (number > 0)
                snprintf(name, sizeof name, "block_%d_", number);
            hpct_builtin_part_inverted(
                model, &style_v2,
                &(hpct_builtin_inverted_residual){.name = name,
                                                  .expansion = number > 0 ? 6 : 1,
                                                  .filters = stacks[s].filters,
                                                  .kernel = 3,
                                                  .stride = i == 0 ? stacks[s].stride : 1,
                                                  .activation = HPCT_RELU6});
        }
    }
    hpct_model_name_layer(model, "Conv_1");
    hpct_builtin_part_conv(model, 1280, 1, 1, HPCT_VALID);
    add_norm(model, "Conv_1_bn", MOMENTUM);
    add_activation(model, "out_relu", HPCT_RELU6);
    hpct_model_add_global_average_pool2d(model);
    hpct_builtin_part_predictions(model, classes);
}

/* ---- V3 ---- */

static const hpct_builtin_inverted_style style_v3 = {
    .momentum = MOMENTUM,
    .expand = {"expand", "expand_bn", NULL},
    .depthwise = {"depthwise", "depthwise_bn", NULL},
    .project = {"project", "project_bn", NULL},
    .squeeze = {"squeeze_excite_avg_pool", "squeeze_excite_conv", "squeeze_excite_conv_1",
                "squeeze_excite_mul", HPCT_RELU, HPCT_HARD_SIGMOID},
    .pad = "depthwise_pad",
    .add = "add",
};

static void add_blocks_v3_small(hpct_model *model)
{
    static const struct {
        double expansion;
        int filters, kernel, stride;
        bool squeezed;
        hpct_activation activation;
    } blocks[] = {
        {1, 16, 3, 2, true, HPCT_RELU},          {72.0 / 16, 24, 3, 2, false, HPCT_RELU},
        {88.0 / 24, 24, 3, 1, false, HPCT_RELU}, {4, 40, 5, 2, true, HPCT_HARD_SILU},
        {6, 40, 5, 1, true, HPCT_HARD_SILU},     {6, 40, 5, 1, true, HPCT_HARD_SILU},
        {3, 48, 5, 1, true, HPCT_HARD_SILU},     {3, 48, 5, 1, true, HPCT_HARD_SILU},
        {6, 96, 5, 2, true, HPCT_HARD_SILU},     {6, 96, 5, 1, true, HPCT_HARD_SILU},
        {6, 96, 5, 1, true, HPCT_HARD_SILU},
    };
    for (size_t i = 0; i < LENGTH(blocks); i++) {
        char name[32] = "expanded_conv_";
        if (i > 0)
            snprintf(name, sizeof name, "expanded_conv_%zu_", i);
        int inner = hpct_builtin_part_width(hpct_builtin_part_size(model, 2) * blocks[i].expansion);
        hpct_builtin_part_inverted(
            model, &style_v3,
            &(hpct_builtin_inverted_residual){
                .name = name,
                .expansion = blocks[i].expansion,
                .filters = blocks[i].filters,
                .kernel = blocks[i].kernel,
                .stride = blocks[i].stride,
                .squeezed = blocks[i].squeezed ? hpct_builtin_part_width(inner * 0.25) : 0,
                .activation = blocks[i].activation});
    }
}

static void describe_v3_small(hpct_model *model, int classes)
{
    hpct_model_add_rescaling(model, 1 / 127.5, -1);
    hpct_model_name_layer(model, "conv");
    hpct_builtin_part_conv(model, 16, 3, 2, HPCT_SAME);
    add_norm(model, "conv_bn", MOMENTUM);
    add_activation(model, NULL, HPCT_HARD_SILU);
    add_blocks_v3_small(model);
    hpct_model_name_layer(model, "conv_1");
    hpct_builtin_part_conv(model, 576, 1, 1, HPCT_SAME);
    add_norm(model, "conv_1_bn", MOMENTUM);
    add_activation(model, NULL, HPCT_HARD_SILU);
    hpct_model_add_global_average_pool2d_keepdims(model);
    add_wide(model, "conv_2", 1024, HPCT_HARD_SILU);
    hpct_model_add_dropout(model, 0.2);
    add_wide(model, "logits", classes, HPCT_LINEAR);
    hpct_model_add_flatten(model);
    add_softmax(model);
}

const hpct_builtin hpct_builtin_mobilenet = HPCT_BUILTIN_IMAGENET("mobilenet", 224, describe_v1);
const hpct_builtin hpct_builtin_mobilenetv2 =
    HPCT_BUILTIN_IMAGENET("mobilenetv2", 224, describe_v2);
const hpct_builtin hpct_builtin_mobilenetv3small =
    HPCT_BUILTIN_IMAGENET("mobilenetv3small", 224, describe_v3_small);
