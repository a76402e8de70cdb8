/* DenseNet-121: Huang, Liu, van der Maaten and Weinberger, Densely Connected Convolutional
 * Networks, 2016; as keras.applications. */
#include "nn/graph/model/parts.h"

#define EPSILON 1.001e-5
#define GROWTH 32 /* channels that each layer adds */
#define NUM_BLOCKS 4

static void add_norm_relu(hpct_model *model, const char *name, const char *end)
{
    hpct_builtin_part_name(model, "%s%sbn", name, end);
    hpct_model_add_batch_normalization(model, &(hpct_batch_normalization){.epsilon = EPSILON});
    hpct_builtin_part_name(model, "%s%srelu", name, end);
    hpct_model_add_activation(model, HPCT_RELU);
}

/* A layer of a dense block: its output goes beside its input. */
static void add_layer(hpct_model *model, int block, int number)
{
    char name[32];
    int input = hpct_model_head(model);
    snprintf(name, sizeof name, "conv%d_block%d", block, number);
    add_norm_relu(model, name, "_0_");
    hpct_builtin_part_name(model, "%s_1_conv", name);
    hpct_builtin_part_conv(model, 4 * GROWTH, 1, 1, HPCT_VALID);
    add_norm_relu(model, name, "_1_");
    hpct_builtin_part_name(model, "%s_2_conv", name);
    hpct_builtin_part_conv(model, GROWTH, 3, 1, HPCT_SAME);
    hpct_builtin_part_name(model, "%s_concat", name);
    hpct_model_add_concatenate(model, (int[]){input, hpct_model_head(model)}, 2);
}

/* Halves channels, height and width. */
static void add_transition(hpct_model *model, int block)
{
    char name[16];
    snprintf(name, sizeof name, "pool%d", block);
    add_norm_relu(model, name, "_");
    hpct_builtin_part_name(model, "%s_conv", name);
    hpct_builtin_part_conv(model, hpct_builtin_part_size(model, 2) / 2, 1, 1, HPCT_VALID);
    hpct_builtin_part_name(model, "%s_pool", name);
    hpct_model_add_average_pool2d(model, &(hpct_average_pool2d){.pool = {2, 2}});
}

static void add_frame(hpct_model *model, int width)
{
    hpct_model_add_zero_padding2d(model, &(hpct_zero_padding2d){{{width, width}, {width, width}}});
}

static void describe_121(hpct_model *model, int classes)
{
    static const int layers[NUM_BLOCKS] = {6, 12, 24, 16};
    add_frame(model, 3);
    hpct_model_name_layer(model, "conv1_conv");
    hpct_builtin_part_conv(model, 64, 7, 2, HPCT_VALID);
    add_norm_relu(model, "conv1", "_");
    add_frame(model, 1);
    hpct_model_name_layer(model, "pool1");
    hpct_model_add_max_pool2d(model, &(hpct_max_pool2d){.pool = {3, 3}, .strides = {2, 2}});
    for (int b = 0; b < NUM_BLOCKS; b++) {
        for (int i = 1; i <= layers[b]; i++)
            add_layer(model, b + 2, i);
        if (b < NUM_BLOCKS - 1)
            add_transition(model, b + 2);
    }
    add_norm_relu(model, "", "");
    hpct_builtin_part_head(model, classes);
}

const hpct_builtin hpct_builtin_densenet121 =
    HPCT_BUILTIN_IMAGENET_AS_TORCHVISION("densenet121", 224, describe_121);
