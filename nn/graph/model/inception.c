/* InceptionV3: Szegedy, Vanhoucke, Ioffe, Shlens and Wojna, Rethinking the Inception Architecture
 * for Computer Vision, 2015; as keras.applications, without the auxiliary classifier. */
#include "nn/graph/model/parts.h"

#define MAX_CONVS 5 /* of a branch */
#define MAX_BRANCHES 4

/* With stride 2 the picture is not padded. filters 0: no more convolutions. */
typedef struct conv {
    int filters, height, width, stride;
} conv;

static void add_conv(hpct_model *model, const conv *c, hpct_padding padding)
{
    hpct_model_add_conv2d(model, &(hpct_conv2d){.filters = c->filters,
                                                .kernel = {c->height, c->width},
                                                .strides = {c->stride, c->stride},
                                                .padding = padding,
                                                .no_bias = true});
    hpct_model_add_batch_normalization(model, &(hpct_batch_normalization){.no_scale = true});
    hpct_model_add_activation(model, HPCT_RELU);
}

/* Convolutions from a tensor on; returns their output. */
static int add_branch(hpct_model *model, int from, const conv convs[MAX_CONVS])
{
    hpct_model_set_head(model, from);
    for (int i = 0; i < MAX_CONVS && convs[i].filters > 0; i++)
        add_conv(model, &convs[i], convs[i].stride > 1 ? HPCT_VALID : HPCT_SAME);
    return hpct_model_head(model);
}

/* The mean of a window, then a convolution. */
static int add_pooled(hpct_model *model, int from, int filters)
{
    hpct_model_set_head(model, from);
    hpct_model_add_average_pool2d(
        model, &(hpct_average_pool2d){.pool = {3, 3}, .strides = {1, 1}, .padding = HPCT_SAME});
    add_conv(model, &(conv){filters, 1, 1, 1}, HPCT_SAME);
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
static void add_block(hpct_model *model, int number, const conv branches[][MAX_CONVS], int count,
                      int pooled)
{
    int x = hpct_model_head(model), joined[MAX_BRANCHES];
    for (int i = 0; i < count; i++)
        joined[i] = add_branch(model, x, branches[i]);
    joined[count] = pooled > 0 ? add_pooled(model, x, pooled) : add_max_pool(model, x);
    hpct_builtin_part_name(model, "mixed%d", number);
    hpct_model_add_concatenate(model, joined, count + 1);
}

static void add_stem(hpct_model *model)
{
    add_conv(model, &(conv){32, 3, 3, 2}, HPCT_VALID);
    add_conv(model, &(conv){32, 3, 3, 1}, HPCT_VALID);
    add_conv(model, &(conv){64, 3, 3, 1}, HPCT_SAME);
    add_max_pool(model, hpct_model_head(model));
    add_conv(model, &(conv){80, 1, 1, 1}, HPCT_VALID);
    add_conv(model, &(conv){192, 3, 3, 1}, HPCT_VALID);
    add_max_pool(model, hpct_model_head(model));
}

/* 35 x 35 */
static void add_block_a(hpct_model *model, int number, int pooled)
{
    static const conv branches[][MAX_CONVS] = {{{64, 1, 1, 1}},
                                               {{48, 1, 1, 1}, {64, 5, 5, 1}},
                                               {{64, 1, 1, 1}, {96, 3, 3, 1}, {96, 3, 3, 1}}};
    add_block(model, number, branches, 3, pooled);
}

/* To 17 x 17 */
static void add_reduction_a(hpct_model *model)
{
    static const conv branches[][MAX_CONVS] = {{{384, 3, 3, 2}},
                                               {{64, 1, 1, 1}, {96, 3, 3, 1}, {96, 3, 3, 2}}};
    add_block(model, 3, branches, 2, 0);
}

/* 17 x 17: a 7x7 convolution as 1x7 and 7x1 with n channels between them. */
static void add_block_b(hpct_model *model, int number, int n)
{
    const conv branches[][MAX_CONVS] = {
        {{192, 1, 1, 1}},
        {{n, 1, 1, 1}, {n, 1, 7, 1}, {192, 7, 1, 1}},
        {{n, 1, 1, 1}, {n, 7, 1, 1}, {n, 1, 7, 1}, {n, 7, 1, 1}, {192, 1, 7, 1}}};
    add_block(model, number, branches, 3, 192);
}

/* To 8 x 8 */
static void add_reduction_b(hpct_model *model)
{
    static const conv branches[][MAX_CONVS] = {
        {{192, 1, 1, 1}, {320, 3, 3, 2}},
        {{192, 1, 1, 1}, {192, 1, 7, 1}, {192, 7, 1, 1}, {192, 3, 3, 2}}};
    add_block(model, 8, branches, 2, 0);
}

/* A 3x3 convolution as 1x3 beside 3x1. */
static int add_fork(hpct_model *model, int x, const char *name)
{
    int branches[2];
    branches[0] = add_branch(model, x, (const conv[MAX_CONVS]){{384, 1, 3, 1}});
    branches[1] = add_branch(model, x, (const conv[MAX_CONVS]){{384, 3, 1, 1}});
    if (name != NULL)
        hpct_model_name_layer(model, name);
    hpct_model_add_concatenate(model, branches, 2);
    return hpct_model_head(model);
}

/* 8 x 8 */
static void add_block_c(hpct_model *model, int number, const char *fork)
{
    int x = hpct_model_head(model), branches[MAX_BRANCHES];
    branches[0] = add_branch(model, x, (const conv[MAX_CONVS]){{320, 1, 1, 1}});
    branches[1] = add_branch(model, x, (const conv[MAX_CONVS]){{384, 1, 1, 1}});
    branches[1] = add_fork(model, branches[1], fork);
    branches[2] = add_branch(model, x, (const conv[MAX_CONVS]){{448, 1, 1, 1}, {384, 3, 3, 1}});
    branches[2] = add_fork(model, branches[2], NULL);
    branches[3] = add_pooled(model, x, 192);
    hpct_builtin_part_name(model, "mixed%d", number);
    hpct_model_add_concatenate(model, branches, MAX_BRANCHES);
}

static void describe_v3(hpct_model *model, int classes)
{
    add_stem(model);
    add_block_a(model, 0, 32);
    add_block_a(model, 1, 64);
    add_block_a(model, 2, 64);
    add_reduction_a(model);
    add_block_b(model, 4, 128);
    add_block_b(model, 5, 160);
    add_block_b(model, 6, 160);
    add_block_b(model, 7, 192);
    add_reduction_b(model);
    add_block_c(model, 9, "mixed9_0");
    add_block_c(model, 10, "mixed9_1");
    hpct_builtin_part_head(model, classes);
}

const hpct_builtin hpct_builtin_inceptionv3 =
    HPCT_BUILTIN_IMAGENET("inceptionv3", 299, describe_v3);
