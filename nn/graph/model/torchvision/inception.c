/* InceptionV3 (Szegedy and others, 2015) of torchvision/models/inception.py, without the auxiliary
 * classifier, and with transform_input=True, as it is with weights for ImageNet: of pictures that
 * are normalized it makes x / 127.5 - 1 of a byte x. Unlike Keras', normalizations have a gamma,
 * and the padding of means counts as zeros. */
#include "nn/graph/model/torchvision/parts.h"

#define EPSILON 1e-3
#define DROP 0.5
#define MAX_CONVS 5 /* of a branch */
#define MAX_BRANCHES 4

/* With stride 2 the picture is not padded. filters 0: no more convolutions. */
typedef struct conv {
    const char *module;
    int filters, height, width, stride;
} conv;

static void add_conv(hpct_model *model, const char *block, const conv *c, hpct_padding padding)
{
    char norm[HPCT_GRAPH_NAME_SIZE];
    hpct_builtin_part_name(model, "%s%s.conv", block, c->module);
    hpct_model_add_conv2d(model, &(hpct_conv2d){.filters = c->filters,
                                                .kernel = {c->height, c->width},
                                                .strides = {c->stride, c->stride},
                                                .padding = padding,
                                                .no_bias = true});
    snprintf(norm, sizeof norm, "%s%s.bn", block, c->module);
    hpct_vision_norm(model, norm, EPSILON);
    hpct_model_add_activation(model, HPCT_RELU);
}

/* Convolutions from a tensor on; returns their output. */
static int add_branch(hpct_model *model, const char *block, int from, const conv convs[MAX_CONVS])
{
    hpct_model_set_head(model, from);
    for (int i = 0; i < MAX_CONVS && convs[i].filters > 0; i++)
        add_conv(model, block, &convs[i], convs[i].stride > 1 ? HPCT_VALID : HPCT_SAME);
    return hpct_model_head(model);
}

/* The mean of a window, of which padding is a part, then a convolution. */
static int add_pooled(hpct_model *model, const char *block, int from, int filters)
{
    hpct_model_set_head(model, from);
    hpct_vision_pad(model, 1);
    hpct_model_add_average_pool2d(model, &(hpct_average_pool2d){.pool = {3, 3}, .strides = {1, 1}});
    add_conv(model, block, &(conv){"branch_pool", filters, 1, 1, 1}, HPCT_SAME);
    return hpct_model_head(model);
}

static int add_max_pool(hpct_model *model, int from)
{
    hpct_model_set_head(model, from);
    hpct_model_add_max_pool2d(model, &(hpct_max_pool2d){.pool = {3, 3}, .strides = {2, 2}});
    return hpct_model_head(model);
}

/* Branches of convolutions, and one of a mean and a convolution to `pooled` channels (0: of a
 * maximum), one beside the other. */
static void add_block(hpct_model *model, const char *block, const conv branches[][MAX_CONVS],
                      int count, int pooled)
{
    int x = hpct_model_head(model), joined[MAX_BRANCHES];
    for (int i = 0; i < count; i++)
        joined[i] = add_branch(model, block, x, branches[i]);
    joined[count] = pooled > 0 ? add_pooled(model, block, x, pooled) : add_max_pool(model, x);
    hpct_model_add_concatenate(model, joined, count + 1);
}

static void add_stem(hpct_model *model)
{
    add_conv(model, "", &(conv){"Conv2d_1a_3x3", 32, 3, 3, 2}, HPCT_VALID);
    add_conv(model, "", &(conv){"Conv2d_2a_3x3", 32, 3, 3, 1}, HPCT_VALID);
    add_conv(model, "", &(conv){"Conv2d_2b_3x3", 64, 3, 3, 1}, HPCT_SAME);
    add_max_pool(model, hpct_model_head(model));
    add_conv(model, "", &(conv){"Conv2d_3b_1x1", 80, 1, 1, 1}, HPCT_VALID);
    add_conv(model, "", &(conv){"Conv2d_4a_3x3", 192, 3, 3, 1}, HPCT_VALID);
    add_max_pool(model, hpct_model_head(model));
}

static void add_a(hpct_model *model, const char *block, int pooled)
{
    static const conv branches[][MAX_CONVS] = {
        {{"branch1x1", 64, 1, 1, 1}},
        {{"branch5x5_1", 48, 1, 1, 1}, {"branch5x5_2", 64, 5, 5, 1}},
        {{"branch3x3dbl_1", 64, 1, 1, 1},
         {"branch3x3dbl_2", 96, 3, 3, 1},
         {"branch3x3dbl_3", 96, 3, 3, 1}}};
    add_block(model, block, branches, 3, pooled);
}

static void add_b(hpct_model *model, const char *block)
{
    static const conv branches[][MAX_CONVS] = {{{"branch3x3", 384, 3, 3, 2}},
                                               {{"branch3x3dbl_1", 64, 1, 1, 1},
                                                {"branch3x3dbl_2", 96, 3, 3, 1},
                                                {"branch3x3dbl_3", 96, 3, 3, 2}}};
    add_block(model, block, branches, 2, 0);
}

static void add_c(hpct_model *model, const char *block, int n)
{
    const conv branches[][MAX_CONVS] = {
        {{"branch1x1", 192, 1, 1, 1}},
        {{"branch7x7_1", n, 1, 1, 1}, {"branch7x7_2", n, 1, 7, 1}, {"branch7x7_3", 192, 7, 1, 1}},
        {{"branch7x7dbl_1", n, 1, 1, 1},
         {"branch7x7dbl_2", n, 7, 1, 1},
         {"branch7x7dbl_3", n, 1, 7, 1},
         {"branch7x7dbl_4", n, 7, 1, 1},
         {"branch7x7dbl_5", 192, 1, 7, 1}}};
    add_block(model, block, branches, 3, 192);
}

static void add_d(hpct_model *model, const char *block)
{
    static const conv branches[][MAX_CONVS] = {
        {{"branch3x3_1", 192, 1, 1, 1}, {"branch3x3_2", 320, 3, 3, 2}},
        {{"branch7x7x3_1", 192, 1, 1, 1},
         {"branch7x7x3_2", 192, 1, 7, 1},
         {"branch7x7x3_3", 192, 7, 1, 1},
         {"branch7x7x3_4", 192, 3, 3, 2}}};
    add_block(model, block, branches, 2, 0);
}

/* A 3x3 convolution as 1x3 beside 3x1. */
static int add_fork(hpct_model *model, const char *block, int x, const char *wide, const char *high)
{
    int branches[2];
    branches[0] = add_branch(model, block, x, (const conv[MAX_CONVS]){{wide, 384, 1, 3, 1}});
    branches[1] = add_branch(model, block, x, (const conv[MAX_CONVS]){{high, 384, 3, 1, 1}});
    hpct_model_add_concatenate(model, branches, 2);
    return hpct_model_head(model);
}

static void add_e(hpct_model *model, const char *block)
{
    static const conv one[MAX_CONVS] = {{"branch1x1", 320, 1, 1, 1}},
                      three[MAX_CONVS] = {{"branch3x3_1", 384, 1, 1, 1}},
                      twice[MAX_CONVS] = {{"branch3x3dbl_1", 448, 1, 1, 1},
                                          {"branch3x3dbl_2", 384, 3, 3, 1}};
    int x = hpct_model_head(model), joined[MAX_BRANCHES];
    joined[0] = add_branch(model, block, x, one);
    joined[1] = add_branch(model, block, x, three);
    joined[1] = add_fork(model, block, joined[1], "branch3x3_2a", "branch3x3_2b");
    joined[2] = add_branch(model, block, x, twice);
    joined[2] = add_fork(model, block, joined[2], "branch3x3dbl_3a", "branch3x3dbl_3b");
    joined[3] = add_pooled(model, block, x, 192);
    hpct_model_add_concatenate(model, joined, MAX_BRANCHES);
}

static void describe_v3(hpct_model *model, int classes)
{
    hpct_model_add_rescaling(model, 1 / 127.5, -1);
    add_stem(model);
    add_a(model, "Mixed_5b.", 32);
    add_a(model, "Mixed_5c.", 64);
    add_a(model, "Mixed_5d.", 64);
    add_b(model, "Mixed_6a.");
    add_c(model, "Mixed_6b.", 128);
    add_c(model, "Mixed_6c.", 160);
    add_c(model, "Mixed_6d.", 160);
    add_c(model, "Mixed_6e.", 192);
    add_d(model, "Mixed_7a.");
    add_e(model, "Mixed_7b.");
    add_e(model, "Mixed_7c.");
    hpct_model_add_global_average_pool2d(model);
    hpct_vision_classifier(model, "fc", classes, DROP);
}

const hpct_builtin hpct_vision_inceptionv3 =
    HPCT_VISION("inceptionv3-torchvision", 299, describe_v3);
