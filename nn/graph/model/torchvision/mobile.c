/* MobileNetV2, MobileNetV3Small and EfficientNetB0 of torchvision/models/mobilenetv2.py,
 * mobilenetv3.py and efficientnet.py: inverted residuals. A block is a Sequential of modules that
 * are there or not, so that their numbers differ. */
#include "nn/graph/model/inverted_residual.h"
#include "nn/graph/model/torchvision/parts.h"

#define LENGTH(array) (sizeof(array) / sizeof *(array))
#define DROP 0.2

#define NORMS(EPSILON, MOMENTUM) .epsilon = EPSILON, .momentum = MOMENTUM, .symmetric = true

/* The head or the stem: a convolution, normalized. */
static void add_conv(hpct_model *model, int module, int filters, int kernel, int stride,
                     const hpct_builtin_inverted_style *style)
{
    char name[32];
    snprintf(name, sizeof name, "features.%d.0", module);
    hpct_vision_conv(model, name, filters, kernel, stride);
    hpct_builtin_part_name(model, "features.%d.1", module);
    hpct_model_add_batch_normalization(
        model, &(hpct_batch_normalization){.momentum = style->momentum, .epsilon = style->epsilon});
}

/* ---- MobileNetV2 ---- */

static const hpct_builtin_inverted_style first_v2 = {
    .depthwise = {"conv.0.0", "conv.0.1", NULL},
    .project = {"conv.1", "conv.2", NULL},
    NORMS(HPCT_VISION_EPSILON, HPCT_VISION_MOMENTUM),
};
static const hpct_builtin_inverted_style style_v2 = {
    .expand = {"conv.0.0", "conv.0.1", NULL},
    .depthwise = {"conv.1.0", "conv.1.1", NULL},
    .project = {"conv.2", "conv.3", NULL},
    NORMS(HPCT_VISION_EPSILON, HPCT_VISION_MOMENTUM),
};

static int add_blocks_v2(hpct_model *model)
{
    static const struct {
        int filters, count, stride;
    } stacks[] = {{16, 1, 1}, {24, 2, 2},  {32, 3, 2}, {64, 4, 2},
                  {96, 3, 1}, {160, 3, 2}, {320, 1, 1}};
    int module = 1;
    for (size_t s = 0; s < LENGTH(stacks); s++) {
        for (int i = 0; i < stacks[s].count; i++, module++) {
            char name[32];
            snprintf(name, sizeof name, "features.%d.", module);
            hpct_builtin_part_inverted(
                model, module > 1 ? &style_v2 : &first_v2,
                &(hpct_builtin_inverted_residual){.name = name,
                                                  .expansion = module > 1 ? 6 : 1,
                                                  .filters = stacks[s].filters,
                                                  .kernel = 3,
                                                  .stride = i == 0 ? stacks[s].stride : 1,
                                                  .activation = HPCT_RELU6});
        }
    }
    return module;
}

static void describe_v2(hpct_model *model, int classes)
{
    hpct_vision_normalize(model);
    add_conv(model, 0, 32, 3, 2, &style_v2);
    hpct_model_add_activation(model, HPCT_RELU6);
    add_conv(model, add_blocks_v2(model), 1280, 1, 1, &style_v2);
    hpct_model_add_activation(model, HPCT_RELU6);
    hpct_model_add_global_average_pool2d(model);
    hpct_vision_classifier(model, "classifier.1", classes, DROP);
}

/* ---- MobileNetV3Small ---- */

#define NORMS_V3 NORMS(1e-3, 0.99)
#define GATE_V3(MODULE)                                                                            \
    .squeeze = {NULL, MODULE ".fc1", MODULE ".fc2", NULL, HPCT_RELU, HPCT_HARD_SIGMOID}

static const hpct_builtin_inverted_style first_v3 = {
    .depthwise = {"block.0.0", "block.0.1", NULL},
    GATE_V3("block.1"),
    .project = {"block.2.0", "block.2.1", NULL},
    NORMS_V3,
};
static const hpct_builtin_inverted_style plain_v3 = {
    .expand = {"block.0.0", "block.0.1", NULL},
    .depthwise = {"block.1.0", "block.1.1", NULL},
    .project = {"block.2.0", "block.2.1", NULL},
    NORMS_V3,
};
static const hpct_builtin_inverted_style gated_v3 = {
    .expand = {"block.0.0", "block.0.1", NULL},
    .depthwise = {"block.1.0", "block.1.1", NULL},
    GATE_V3("block.2"),
    .project = {"block.3.0", "block.3.1", NULL},
    NORMS_V3,
};

static int add_blocks_v3(hpct_model *model)
{
    static const struct {
        int inner, filters, kernel, stride;
        bool gated, hard;
    } blocks[] = {
        {16, 16, 3, 2, true, false}, {72, 24, 3, 2, false, false}, {88, 24, 3, 1, false, false},
        {96, 40, 5, 2, true, true},  {240, 40, 5, 1, true, true},  {240, 40, 5, 1, true, true},
        {120, 48, 5, 1, true, true}, {144, 48, 5, 1, true, true},  {288, 96, 5, 2, true, true},
        {576, 96, 5, 1, true, true}, {576, 96, 5, 1, true, true}};
    int module = 1;
    for (size_t i = 0; i < LENGTH(blocks); i++, module++) {
        char name[32];
        int inner = blocks[i].inner;
        snprintf(name, sizeof name, "features.%d.", module);
        hpct_builtin_part_inverted(
            model,
            i == 0            ? &first_v3
            : blocks[i].gated ? &gated_v3
                              : &plain_v3,
            &(hpct_builtin_inverted_residual){
                .name = name,
                .expansion = (double) inner / hpct_builtin_part_size(model, 2),
                .filters = blocks[i].filters,
                .kernel = blocks[i].kernel,
                .stride = blocks[i].stride,
                .squeezed = blocks[i].gated ? hpct_builtin_part_width(inner / 4) : 0,
                .activation = blocks[i].hard ? HPCT_HARD_SILU : HPCT_RELU});
    }
    return module;
}

static void describe_v3_small(hpct_model *model, int classes)
{
    hpct_vision_normalize(model);
    add_conv(model, 0, 16, 3, 2, &plain_v3);
    hpct_model_add_activation(model, HPCT_HARD_SILU);
    add_conv(model, add_blocks_v3(model), 576, 1, 1, &plain_v3);
    hpct_model_add_activation(model, HPCT_HARD_SILU);
    hpct_model_add_global_average_pool2d(model);
    hpct_model_name_layer(model, "classifier.0");
    hpct_model_add_dense(model, &(hpct_dense){.units = 1024, .activation = HPCT_HARD_SILU});
    hpct_vision_classifier(model, "classifier.3", classes, DROP);
}

/* ---- EfficientNetB0 ---- */

#define GATE_B0(MODULE)                                                                            \
    .squeeze = {NULL, MODULE ".fc1", MODULE ".fc2", NULL, HPCT_SILU, HPCT_SIGMOID}

static const hpct_builtin_inverted_style first_b0 = {
    .depthwise = {"block.0.0", "block.0.1", NULL},
    GATE_B0("block.1"),
    .project = {"block.2.0", "block.2.1", NULL},
    NORMS(HPCT_VISION_EPSILON, HPCT_VISION_MOMENTUM),
};
static const hpct_builtin_inverted_style style_b0 = {
    .expand = {"block.0.0", "block.0.1", NULL},
    .depthwise = {"block.1.0", "block.1.1", NULL},
    GATE_B0("block.2"),
    .project = {"block.3.0", "block.3.1", NULL},
    NORMS(HPCT_VISION_EPSILON, HPCT_VISION_MOMENTUM),
};

#define NUM_BLOCKS_B0 16
#define NUM_STACKS_B0 7

static void add_blocks_b0(hpct_model *model)
{
    static const struct {
        int expansion, filters, kernel, stride, count;
    } stacks[NUM_STACKS_B0] = {{1, 16, 3, 1, 1}, {6, 24, 3, 2, 2},  {6, 40, 5, 2, 2},
                               {6, 80, 3, 2, 3}, {6, 112, 5, 1, 3}, {6, 192, 5, 2, 4},
                               {6, 320, 3, 1, 1}};
    int block = 0;
    for (int s = 0; s < NUM_STACKS_B0; s++) {
        for (int i = 0; i < stacks[s].count; i++, block++) {
            char name[32];
            snprintf(name, sizeof name, "features.%d.%d.", s + 1, i);
            hpct_builtin_part_inverted(
                model, s == 0 ? &first_b0 : &style_b0,
                &(hpct_builtin_inverted_residual){.name = name,
                                                  .expansion = stacks[s].expansion,
                                                  .filters = stacks[s].filters,
                                                  .kernel = stacks[s].kernel,
                                                  .stride = i == 0 ? stacks[s].stride : 1,
                                                  .squeezed = hpct_builtin_part_size(model, 2) / 4,
                                                  .activation = HPCT_SILU,
                                                  .drop = DROP * block / NUM_BLOCKS_B0});
        }
    }
}

static void describe_b0(hpct_model *model, int classes)
{
    hpct_vision_normalize(model);
    add_conv(model, 0, 32, 3, 2, &style_b0);
    hpct_model_add_activation(model, HPCT_SILU);
    add_blocks_b0(model);
    add_conv(model, NUM_STACKS_B0 + 1, 1280, 1, 1, &style_b0);
    hpct_model_add_activation(model, HPCT_SILU);
    hpct_model_add_global_average_pool2d(model);
    hpct_vision_classifier(model, "classifier.1", classes, DROP);
}

const hpct_builtin hpct_vision_mobilenetv2 =
    HPCT_VISION("mobilenetv2-torchvision", 224, describe_v2);
const hpct_builtin hpct_vision_mobilenetv3small =
    HPCT_VISION("mobilenetv3small-torchvision", 224, describe_v3_small);
const hpct_builtin hpct_vision_efficientnetb0 =
    HPCT_VISION("efficientnetb0-torchvision", 224, describe_b0);
