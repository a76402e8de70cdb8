/* EfficientNetB0: Tan and Le, EfficientNet: Rethinking Model Scaling for Convolutional Neural
 * Networks, 2019; as keras.applications, with its names, initial weights and order of weights. */
#include "nn/graph/initializer.h"
#include "nn/graph/model/inverted_residual.h"

#include <math.h>

#define LENGTH(array) (sizeof(array) / sizeof *(array))
#define DROP 0.2 /* of the blocks, growing to this rate, and before the last layer */

static const hpct_builtin_inverted_style style = {
    .expand = {"expand_conv", "expand_bn", "expand_activation"},
    .depthwise = {"dwconv", "bn", "activation"},
    .project = {"project_conv", "project_bn", NULL},
    .squeeze = {"se_squeeze", "se_reduce", "se_expand", "se_excite", HPCT_SILU, HPCT_SIGMOID},
    .pad = "dwconv_pad",
    .drop = "drop",
    .add = "add",
};

static const struct {
    int expansion, filters, kernel, stride, count;
} stacks[] = {{1, 16, 3, 1, 1},  {6, 24, 3, 2, 2},  {6, 40, 5, 2, 2}, {6, 80, 3, 2, 3},
              {6, 112, 5, 1, 3}, {6, 192, 5, 2, 4}, {6, 320, 3, 1, 1}};
#define NUM_BLOCKS 16

static void add_blocks(hpct_model *model)
{
    int block = 0;
    for (size_t s = 0; s < LENGTH(stacks); s++) {
        for (int i = 0; i < stacks[s].count; i++, block++) {
            char name[16];
            snprintf(name, sizeof name, "block%zu%c_", s + 1, 'a' + i);
            hpct_builtin_part_inverted(
                model, &style,
                &(hpct_builtin_inverted_residual){.name = name,
                                                  .expansion = stacks[s].expansion,
                                                  .filters = stacks[s].filters,
                                                  .kernel = stacks[s].kernel,
                                                  .stride = i == 0 ? stacks[s].stride : 1,
                                                  .squeezed = hpct_builtin_part_size(model, 2) / 4,
                                                  .activation = HPCT_SILU,
                                                  .drop = DROP * block / NUM_BLOCKS});
        }
    }
}

/* For the head or its input: a convolution, normalized. */
static void add_conv(hpct_model *model, const char *name, int filters, int kernel, int stride)
{
    hpct_builtin_part_name(model, "%s_conv", name);
    hpct_builtin_part_conv(model, filters, kernel, stride, HPCT_VALID);
    hpct_builtin_part_name(model, "%s_bn", name);
    hpct_model_add_batch_normalization(model, &(hpct_batch_normalization){0});
    hpct_builtin_part_name(model, "%s_activation", name);
    hpct_model_add_activation(model, HPCT_SILU);
}

/* Kernels of convolutions have rank 4, that of the dense layer has rank 2. */
static void set_initializers(hpct_model *model)
{
    for (int i = 0; i < model->num_params; i++) {
        hpct_graph_param *param = &model->params[i];
        if (param->shape.rank == 4)
            hpct_graph_param_scale_variance(param, 2, HPCT_GRAPH_FAN_OUT,
                                            HPCT_GRAPH_TRUNCATED_NORMAL);
        else if (param->shape.rank == 2)
            hpct_graph_param_scale_variance(param, 1 / 3.0, HPCT_GRAPH_FAN_OUT, HPCT_GRAPH_UNIFORM);
    }
}

/* As it is with weights="imagenet": in their file, standard deviations are in the place of
 * Normalization's variances, and Keras divides by their roots once more. */
static void add_imagenet_scaling(hpct_model *model)
{
    static const double deviations[] = {0.229, 0.224, 0.225};
    hpct_per_channel each = {.channels = LENGTH(deviations)};
    for (size_t c = 0; c < LENGTH(deviations); c++)
        each.first[c] = 1 / sqrt(deviations[c]);
    hpct_model_add_rescaling_by(model, &each);
}

static void describe_with(hpct_model *model, int classes, bool imagenet)
{
    hpct_model_add_rescaling(model, 1 / 255.0, 0);
    hpct_model_add_normalization(model);
    if (imagenet)
        add_imagenet_scaling(model);
    hpct_model_name_layer(model, "stem_conv_pad");
    hpct_builtin_part_pad(model, 3);
    add_conv(model, "stem", 32, 3, 2);
    add_blocks(model);
    add_conv(model, "top", 1280, 1, 1);
    hpct_model_name_layer(model, "avg_pool");
    hpct_model_add_global_average_pool2d(model);
    hpct_model_name_layer(model, "top_dropout");
    hpct_model_add_dropout(model, DROP);
    hpct_builtin_part_predictions(model, classes);
    set_initializers(model);
}

static void describe(hpct_model *model, int classes)
{
    describe_with(model, classes, false);
}

static void describe_imagenet(hpct_model *model, int classes)
{
    describe_with(model, classes, true);
}

const hpct_builtin hpct_builtin_efficientnetb0 =
    HPCT_BUILTIN_IMAGENET("efficientnetb0", 224, describe);
const hpct_builtin hpct_builtin_efficientnetb0_imagenet =
    HPCT_BUILTIN_IMAGENET("efficientnetb0-imagenet", 224, describe_imagenet);
