/* DenseNet-121 (Huang and others, 2016) of torchvision/models/densenet.py. */
#include "nn/graph/model/torchvision/parts.h"

#define GROWTH 32 /* channels that each layer adds */
#define NUM_BLOCKS 4

/* Normalization and ReLU; the module is NAME.normEND. */
static void add_norm_relu(hpct_model *model, const char *name, const char *end)
{
    char norm[HPCT_GRAPH_NAME_SIZE];
    snprintf(norm, sizeof norm, "%s.norm%s", name, end);
    hpct_vision_norm(model, norm, HPCT_VISION_EPSILON);
    hpct_model_add_activation(model, HPCT_RELU);
}

static void add_conv(hpct_model *model, const char *name, const char *end, int filters, int kernel,
                     int stride)
{
    char conv[HPCT_GRAPH_NAME_SIZE];
    snprintf(conv, sizeof conv, "%s.conv%s", name, end);
    hpct_vision_conv(model, conv, filters, kernel, stride);
}

static void add_layer(hpct_model *model, int block, int number)
{
    char name[48];
    int input = hpct_model_head(model);
    snprintf(name, sizeof name, "features.denseblock%d.denselayer%d", block, number);
    add_norm_relu(model, name, "1");
    add_conv(model, name, "1", 4 * GROWTH, 1, 1);
    add_norm_relu(model, name, "2");
    add_conv(model, name, "2", GROWTH, 3, 1);
    hpct_model_add_concatenate(model, (int[]){input, hpct_model_head(model)}, 2);
}

static void add_transition(hpct_model *model, int block)
{
    char name[32];
    snprintf(name, sizeof name, "features.transition%d", block);
    add_norm_relu(model, name, "");
    add_conv(model, name, "", hpct_builtin_part_size(model, 2) / 2, 1, 1);
    hpct_model_add_average_pool2d(model, &(hpct_average_pool2d){.pool = {2, 2}});
}

static void describe_121(hpct_model *model, int classes)
{
    static const int layers[NUM_BLOCKS] = {6, 12, 24, 16};
    hpct_vision_normalize(model);
    add_conv(model, "features", "0", 64, 7, 2);
    add_norm_relu(model, "features", "0");
    hpct_vision_pool(model);
    for (int b = 1; b <= NUM_BLOCKS; b++) {
        for (int i = 1; i <= layers[b - 1]; i++)
            add_layer(model, b, i);
        if (b < NUM_BLOCKS)
            add_transition(model, b);
    }
    add_norm_relu(model, "features", "5");
    hpct_model_add_global_average_pool2d(model);
    hpct_vision_classifier(model, "classifier", classes, 0);
}

const hpct_builtin hpct_vision_densenet121 =
    HPCT_VISION("densenet121-torchvision", 224, describe_121);
