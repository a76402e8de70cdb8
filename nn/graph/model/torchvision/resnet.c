/* ResNet-18, -34, -50, -101 and -152 (He and others, 2015) of torchvision/models/resnet.py: the
 * stride of a block is in its first 3x3 convolution (v1.5). */
#include "nn/graph/model/torchvision/parts.h"

#define NUM_STACKS 4

static void add_conv_norm(hpct_model *model, const char *block, int number, int filters, int kernel,
                          int stride)
{
    char name[HPCT_GRAPH_NAME_SIZE];
    snprintf(name, sizeof name, "%s.conv%d", block, number);
    hpct_vision_conv(model, name, filters, kernel, stride);
    snprintf(name, sizeof name, "%s.bn%d", block, number);
    hpct_vision_norm(model, name, HPCT_VISION_EPSILON);
}

/* The block's input, in the shape of its output. */
static int add_shortcut(hpct_model *model, const char *block, int filters, int stride)
{
    char name[HPCT_GRAPH_NAME_SIZE];
    if (stride > 1 || hpct_builtin_part_size(model, 2) != filters) {
        snprintf(name, sizeof name, "%s.downsample.0", block);
        hpct_vision_conv(model, name, filters, 1, stride);
        snprintf(name, sizeof name, "%s.downsample.1", block);
        hpct_vision_norm(model, name, HPCT_VISION_EPSILON);
    }
    return hpct_model_head(model);
}

static void add_block(hpct_model *model, const char *block, int filters, int stride,
                      bool bottleneck)
{
    int input = hpct_model_head(model);
    int shortcut = add_shortcut(model, block, bottleneck ? 4 * filters : filters, stride);
    hpct_model_set_head(model, input);
    add_conv_norm(model, block, 1, filters, bottleneck ? 1 : 3, bottleneck ? 1 : stride);
    hpct_model_add_activation(model, HPCT_RELU);
    add_conv_norm(model, block, 2, filters, 3, bottleneck ? stride : 1);
    if (bottleneck) {
        hpct_model_add_activation(model, HPCT_RELU);
        add_conv_norm(model, block, 3, 4 * filters, 1, 1);
    }
    hpct_model_add_add(model, (int[]){shortcut, hpct_model_head(model)}, 2);
    hpct_model_add_activation(model, HPCT_RELU);
}

static void describe(hpct_model *model, int classes, const int blocks[NUM_STACKS], bool bottleneck)
{
    char block[32];
    hpct_vision_normalize(model);
    hpct_vision_conv(model, "conv1", 64, 7, 2);
    hpct_vision_norm(model, "bn1", HPCT_VISION_EPSILON);
    hpct_model_add_activation(model, HPCT_RELU);
    hpct_vision_pool(model);
    for (int s = 0; s < NUM_STACKS; s++) {
        for (int b = 0; b < blocks[s]; b++) {
            snprintf(block, sizeof block, "layer%d.%d", s + 1, b);
            add_block(model, block, 64 << s, b == 0 && s > 0 ? 2 : 1, bottleneck);
        }
    }
    hpct_model_add_global_average_pool2d(model);
    hpct_vision_classifier(model, "fc", classes, 0);
}

static void describe_18(hpct_model *model, int classes)
{
    describe(model, classes, (const int[]){2, 2, 2, 2}, false);
}

static void describe_34(hpct_model *model, int classes)
{
    describe(model, classes, (const int[]){3, 4, 6, 3}, false);
}

static void describe_50(hpct_model *model, int classes)
{
    describe(model, classes, (const int[]){3, 4, 6, 3}, true);
}

static void describe_101(hpct_model *model, int classes)
{
    describe(model, classes, (const int[]){3, 4, 23, 3}, true);
}

static void describe_152(hpct_model *model, int classes)
{
    describe(model, classes, (const int[]){3, 8, 36, 3}, true);
}

const hpct_builtin hpct_vision_resnet18 = HPCT_VISION("resnet18-torchvision", 224, describe_18);
const hpct_builtin hpct_vision_resnet34 = HPCT_VISION("resnet34-torchvision", 224, describe_34);
const hpct_builtin hpct_vision_resnet50 = HPCT_VISION("resnet50-torchvision", 224, describe_50);
const hpct_builtin hpct_vision_resnet101 = HPCT_VISION("resnet101-torchvision", 224, describe_101);
const hpct_builtin hpct_vision_resnet152 = HPCT_VISION("resnet152-torchvision", 224, describe_152);
