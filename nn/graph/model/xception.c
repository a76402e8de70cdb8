/* Xception: Chollet, Xception: Deep Learning with Depthwise Separable Convolutions, 2016; as
 * keras.applications. */
#include "nn/graph/model/parts.h"

static void add_norm(hpct_model *model)
{
    hpct_model_add_batch_normalization(model, &(hpct_batch_normalization){0});
}

static void add_relu(hpct_model *model, const char *kind, int block, int number)
{
    hpct_builtin_part_name(model, "block%d_%s%d_act", block, kind, number);
    hpct_model_add_activation(model, HPCT_RELU);
}

/* A convolution of the first block. */
static void add_conv(hpct_model *model, int number, int filters, int stride)
{
    hpct_builtin_part_name(model, "block1_conv%d", number);
    hpct_builtin_part_conv(model, filters, 3, stride, HPCT_VALID);
    hpct_builtin_part_name(model, "block1_conv%d_bn", number);
    add_norm(model);
    add_relu(model, "conv", 1, number);
}

static void add_separable(hpct_model *model, int block, int number, int filters)
{
    hpct_builtin_part_name(model, "block%d_sepconv%d", block, number);
    hpct_model_add_separable_conv2d(
        model, &(hpct_separable_conv2d){
                   .filters = filters, .kernel = {3, 3}, .padding = HPCT_SAME, .no_bias = true});
    hpct_builtin_part_name(model, "block%d_sepconv%d_bn", block, number);
    add_norm(model);
}

/* Halves height and width, in the shortcut by a convolution. Block 2's input has its ReLU. */
static void add_entry(hpct_model *model, int block, int first, int last)
{
    int input = hpct_model_head(model);
    hpct_builtin_part_conv(model, last, 1, 2, HPCT_SAME);
    add_norm(model);
    int shortcut = hpct_model_head(model);
    hpct_model_set_head(model, input);
    if (block > 2)
        add_relu(model, "sepconv", block, 1);
    add_separable(model, block, 1, first);
    add_relu(model, "sepconv", block, 2);
    add_separable(model, block, 2, last);
    hpct_builtin_part_name(model, "block%d_pool", block);
    hpct_model_add_max_pool2d(
        model, &(hpct_max_pool2d){.pool = {3, 3}, .strides = {2, 2}, .padding = HPCT_SAME});
    hpct_model_add_add(model, (int[]){hpct_model_head(model), shortcut}, 2);
}

static void add_middle(hpct_model *model, int block)
{
    int input = hpct_model_head(model);
    for (int i = 1; i <= 3; i++) {
        add_relu(model, "sepconv", block, i);
        add_separable(model, block, i, 728);
    }
    hpct_model_add_add(model, (int[]){hpct_model_head(model), input}, 2);
}

static void describe(hpct_model *model, int classes)
{
    add_conv(model, 1, 32, 2);
    add_conv(model, 2, 64, 1);
    add_entry(model, 2, 128, 128);
    add_entry(model, 3, 256, 256);
    add_entry(model, 4, 728, 728);
    for (int block = 5; block <= 12; block++)
        add_middle(model, block);
    add_entry(model, 13, 728, 1024);
    for (int i = 1; i <= 2; i++) {
        add_separable(model, 14, i, i == 1 ? 1536 : 2048);
        add_relu(model, "sepconv", 14, i);
    }
    hpct_builtin_part_head(model, classes);
}

const hpct_builtin hpct_builtin_xception = HPCT_BUILTIN_IMAGENET("xception", 299, describe);
