/* ResNet-50, -101 and -152: He, Zhang, Ren and Sun, Deep Residual Learning for Image Recognition,
 * 2015, and Identity Mappings in Deep Residual Networks, 2016 (V2), with the layer graphs, names
 * and parameter counts of keras.applications. resnet50 is the variant known as v1.5: the stride of
 * a block is in its 3x3 convolution, after one cell of padding on each side, as in torchvision and
 * in Keras' V2; Keras' ResNet50 has it in the first 1x1. All else is as in Keras. */
#include "nn/graph/model/parts.h"

#include <stdio.h>

#define EPSILON 1.001e-5
#define NUM_STACKS 4

static void add_conv(hpct_model *model, const char *block, const char *part,
                     const hpct_conv2d *conv)
{
    hpct_builtin_part_name(model, "%s_%s", block, part);
    hpct_model_add_conv2d(model, conv);
}

static void add_norm(hpct_model *model, const char *block, const char *part)
{
    hpct_builtin_part_name(model, "%s_%s", block, part);
    hpct_model_add_batch_normalization(model, &(hpct_batch_normalization){.epsilon = EPSILON});
}

static void add_relu(hpct_model *model, const char *block, const char *part)
{
    hpct_builtin_part_name(model, "%s_%s", block, part);
    hpct_model_add_activation(model, HPCT_RELU);
}

static void add_frame(hpct_model *model, const char *block, const char *part, int width)
{
    hpct_builtin_part_name(model, "%s_%s", block, part);
    hpct_model_add_zero_padding2d(model, &(hpct_zero_padding2d){{{width, width}, {width, width}}});
}

/* ---- V2: normalization and ReLU come first ---- */

static void add_block_v2(hpct_model *model, const char *block, int filters, int stride,
                         bool conv_shortcut)
{
    int shortcut = hpct_model_head(model);
    add_norm(model, block, "preact_bn");
    add_relu(model, block, "preact_relu");
    int preact = hpct_model_head(model);
    if (conv_shortcut) {
        add_conv(
            model, block, "0_conv",
            &(hpct_conv2d){.filters = 4 * filters, .kernel = {1, 1}, .strides = {stride, stride}});
        shortcut = hpct_model_head(model);
    } else if (stride > 1) {
        hpct_model_set_head(model, shortcut);
        hpct_model_add_max_pool2d(model,
                                  &(hpct_max_pool2d){.pool = {1, 1}, .strides = {stride, stride}});
        shortcut = hpct_model_head(model);
    }
    hpct_model_set_head(model, preact);
    add_conv(model, block, "1_conv",
             &(hpct_conv2d){.filters = filters, .kernel = {1, 1}, .no_bias = true});
    add_norm(model, block, "1_bn");
    add_relu(model, block, "1_relu");
    add_frame(model, block, "2_pad", 1);
    add_conv(
        model, block, "2_conv",
        &(hpct_conv2d){
            .filters = filters, .kernel = {3, 3}, .strides = {stride, stride}, .no_bias = true});
    add_norm(model, block, "2_bn");
    add_relu(model, block, "2_relu");
    add_conv(model, block, "3_conv", &(hpct_conv2d){.filters = 4 * filters, .kernel = {1, 1}});
    hpct_builtin_part_name(model, "%s_out", block);
    hpct_model_add_add(model, (int[]){shortcut, hpct_model_head(model)}, 2);
}

/* The last block of each stack but the last one halves height and width. */
static void add_stacks_v2(hpct_model *model, const int blocks[NUM_STACKS])
{
    char block[32];
    for (int s = 0; s < NUM_STACKS; s++) {
        for (int b = 1; b <= blocks[s]; b++) {
            int stride = b == blocks[s] && s < NUM_STACKS - 1 ? 2 : 1;
            snprintf(block, sizeof block, "conv%d_block%d", s + 2, b);
            add_block_v2(model, block, 64 << s, stride, b == 1);
        }
    }
}

/* ---- v1.5: a ReLU follows the sum ---- */

static void add_block(hpct_model *model, const char *block, int filters, int stride,
                      bool conv_shortcut)
{
    int input = hpct_model_head(model), shortcut = input;
    if (conv_shortcut) {
        add_conv(
            model, block, "0_conv",
            &(hpct_conv2d){.filters = 4 * filters, .kernel = {1, 1}, .strides = {stride, stride}});
        add_norm(model, block, "0_bn");
        shortcut = hpct_model_head(model);
    }
    hpct_model_set_head(model, input);
    add_conv(model, block, "1_conv", &(hpct_conv2d){.filters = filters, .kernel = {1, 1}});
    add_norm(model, block, "1_bn");
    add_relu(model, block, "1_relu");
    if (stride > 1) /* HPCT_SAME would pad one side only */
        add_frame(model, block, "2_pad", 1);
    add_conv(model, block, "2_conv",
             &(hpct_conv2d){.filters = filters,
                            .kernel = {3, 3},
                            .strides = {stride, stride},
                            .padding = stride > 1 ? HPCT_VALID : HPCT_SAME});
    add_norm(model, block, "2_bn");
    add_relu(model, block, "2_relu");
    add_conv(model, block, "3_conv", &(hpct_conv2d){.filters = 4 * filters, .kernel = {1, 1}});
    add_norm(model, block, "3_bn");
    hpct_builtin_part_name(model, "%s_add", block);
    hpct_model_add_add(model, (int[]){shortcut, hpct_model_head(model)}, 2);
    add_relu(model, block, "out");
}

/* The first block of each stack but the first one halves height and width. */
static void add_stacks(hpct_model *model, const int blocks[NUM_STACKS])
{
    char block[32];
    for (int s = 0; s < NUM_STACKS; s++) {
        for (int b = 1; b <= blocks[s]; b++) {
            snprintf(block, sizeof block, "conv%d_block%d", s + 2, b);
            add_block(model, block, 64 << s, b == 1 && s > 0 ? 2 : 1, b == 1);
        }
    }
}

static void describe(hpct_model *model, int classes, const int blocks[NUM_STACKS], bool v2)
{
    add_frame(model, "conv1", "pad", 3);
    add_conv(model, "conv1", "conv",
             &(hpct_conv2d){.filters = 64, .kernel = {7, 7}, .strides = {2, 2}});
    if (!v2) {
        add_norm(model, "conv1", "bn");
        add_relu(model, "conv1", "relu");
    }
    add_frame(model, "pool1", "pad", 1);
    hpct_model_name_layer(model, "pool1_pool");
    hpct_model_add_max_pool2d(model, &(hpct_max_pool2d){.pool = {3, 3}, .strides = {2, 2}});
    if (v2) {
        add_stacks_v2(model, blocks);
        add_norm(model, "post", "bn");
        add_relu(model, "post", "relu");
    } else {
        add_stacks(model, blocks);
    }
    hpct_builtin_part_head(model, classes);
}

static void describe_50(hpct_model *model, int classes)
{
    describe(model, classes, (const int[]){3, 4, 6, 3}, false);
}

static void describe_50v2(hpct_model *model, int classes)
{
    describe(model, classes, (const int[]){3, 4, 6, 3}, true);
}

static void describe_101v2(hpct_model *model, int classes)
{
    describe(model, classes, (const int[]){3, 4, 23, 3}, true);
}

static void describe_152v2(hpct_model *model, int classes)
{
    describe(model, classes, (const int[]){3, 8, 36, 3}, true);
}

const hpct_builtin hpct_builtin_resnet50 =
    HPCT_BUILTIN_IMAGENET_AS_TORCHVISION("resnet50", 224, describe_50);
const hpct_builtin hpct_builtin_resnet50v2 =
    HPCT_BUILTIN_IMAGENET("resnet50v2", 224, describe_50v2);
const hpct_builtin hpct_builtin_resnet101v2 =
    HPCT_BUILTIN_IMAGENET("resnet101v2", 224, describe_101v2);
const hpct_builtin hpct_builtin_resnet152v2 =
    HPCT_BUILTIN_IMAGENET("resnet152v2", 224, describe_152v2);
