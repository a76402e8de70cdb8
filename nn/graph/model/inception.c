/* InceptionV3: Szegedy, Vanhoucke, Ioffe, Shlens and Wojna, Rethinking the Inception Architecture
 * for Computer Vision, 2015; without the auxiliary classifier; and its form in keras.applications.
 */
#include "nn/graph/model/inception.h"

#define MAX_CONVS 5 /* of a branch */
#define MAX_BRANCHES 4

typedef hpct_builtin_inception_conv conv;

typedef struct block {
    const char *module, *name; /* torchvision's and Keras' */
    int channels;
    const char *fork; /* Keras' name for the first concatenation within it */
} block;

/* A block that is being added. */
typedef struct adding {
    hpct_model *model;
    const hpct_builtin_inception_form *form;
    const block *block;
} adding;

/* With normalization and ReLU. */
static void add_conv(const adding *a, const conv *c, hpct_padding padding)
{
    char name[HPCT_GRAPH_NAME_SIZE];
    snprintf(name, sizeof name, "%s%s", a->block->module, c->module);
    if (a->form->name_conv != NULL)
        a->form->name_conv(a->model, name);
    hpct_model_add_conv2d(a->model, &(hpct_conv2d){.filters = c->filters,
                                                   .kernel = {c->height, c->width},
                                                   .strides = {c->stride, c->stride},
                                                   .padding = padding,
                                                   .no_bias = true});
    a->form->add_norm(a->model, name);
    hpct_model_add_activation(a->model, HPCT_RELU);
}

/* Convolutions from a tensor on; returns their output. */
static int add_branch(const adding *a, int from, const conv convs[MAX_CONVS])
{
    hpct_model_set_head(a->model, from);
    for (int i = 0; i < MAX_CONVS && convs[i].filters > 0; i++)
        add_conv(a, &convs[i], convs[i].stride > 1 ? HPCT_VALID : HPCT_SAME);
    return hpct_model_head(a->model);
}

/* The mean of a window, then a convolution. */
static int add_pooled(const adding *a, int from, int filters)
{
    hpct_model_set_head(a->model, from);
    a->form->add_mean(a->model);
    add_conv(a, &(conv){"branch_pool", filters, 1, 1, 1}, HPCT_SAME);
    return hpct_model_head(a->model);
}

static int add_max_pool(const adding *a, int from)
{
    hpct_model_set_head(a->model, from);
    hpct_model_add_max_pool2d(a->model, &(hpct_max_pool2d){.pool = {3, 3}, .strides = {2, 2}});
    return hpct_model_head(a->model);
}

static void join(const adding *a, const char *name, const int *branches, int count)
{
    if (a->form->names_joins && name != NULL)
        hpct_model_name_layer(a->model, name);
    hpct_model_add_concatenate(a->model, branches, count);
}

/* Branches of convolutions, and one of a mean and a convolution to `pooled` channels (0: of a
 * maximum), one beside the other. */
static void add_block(const adding *a, const conv branches[][MAX_CONVS], int count, int pooled)
{
    int x = hpct_model_head(a->model), joined[MAX_BRANCHES];
    for (int i = 0; i < count; i++)
        joined[i] = add_branch(a, x, branches[i]);
    joined[count] = pooled > 0 ? add_pooled(a, x, pooled) : add_max_pool(a, x);
    join(a, a->block->name, joined, count + 1);
}

static void add_stem(const adding *a)
{
    add_conv(a, &(conv){"Conv2d_1a_3x3", 32, 3, 3, 2}, HPCT_VALID);
    add_conv(a, &(conv){"Conv2d_2a_3x3", 32, 3, 3, 1}, HPCT_VALID);
    add_conv(a, &(conv){"Conv2d_2b_3x3", 64, 3, 3, 1}, HPCT_SAME);
    add_max_pool(a, hpct_model_head(a->model));
    add_conv(a, &(conv){"Conv2d_3b_1x1", 80, 1, 1, 1}, HPCT_VALID);
    add_conv(a, &(conv){"Conv2d_4a_3x3", 192, 3, 3, 1}, HPCT_VALID);
    add_max_pool(a, hpct_model_head(a->model));
}

/* 35 x 35 */
static void add_block_a(const adding *a)
{
    static const conv branches[][MAX_CONVS] = {
        {{"branch1x1", 64, 1, 1, 1}},
        {{"branch5x5_1", 48, 1, 1, 1}, {"branch5x5_2", 64, 5, 5, 1}},
        {{"branch3x3dbl_1", 64, 1, 1, 1},
         {"branch3x3dbl_2", 96, 3, 3, 1},
         {"branch3x3dbl_3", 96, 3, 3, 1}}};
    add_block(a, branches, 3, a->block->channels);
}

/* To 17 x 17 */
static void add_reduction_a(const adding *a)
{
    static const conv branches[][MAX_CONVS] = {{{"branch3x3", 384, 3, 3, 2}},
                                               {{"branch3x3dbl_1", 64, 1, 1, 1},
                                                {"branch3x3dbl_2", 96, 3, 3, 1},
                                                {"branch3x3dbl_3", 96, 3, 3, 2}}};
    add_block(a, branches, 2, 0);
}

/* 17 x 17: a 7x7 convolution as 1x7 and 7x1 with n channels between them. */
static void add_block_b(const adding *a)
{
    int n = a->block->channels;
    const conv branches[][MAX_CONVS] = {
        {{"branch1x1", 192, 1, 1, 1}},
        {{"branch7x7_1", n, 1, 1, 1}, {"branch7x7_2", n, 1, 7, 1}, {"branch7x7_3", 192, 7, 1, 1}},
        {{"branch7x7dbl_1", n, 1, 1, 1},
         {"branch7x7dbl_2", n, 7, 1, 1},
         {"branch7x7dbl_3", n, 1, 7, 1},
         {"branch7x7dbl_4", n, 7, 1, 1},
         {"branch7x7dbl_5", 192, 1, 7, 1}}};
    add_block(a, branches, 3, 192);
}

/* To 8 x 8 */
static void add_reduction_b(const adding *a)
{
    static const conv branches[][MAX_CONVS] = {
        {{"branch3x3_1", 192, 1, 1, 1}, {"branch3x3_2", 320, 3, 3, 2}},
        {{"branch7x7x3_1", 192, 1, 1, 1},
         {"branch7x7x3_2", 192, 1, 7, 1},
         {"branch7x7x3_3", 192, 7, 1, 1},
         {"branch7x7x3_4", 192, 3, 3, 2}}};
    add_block(a, branches, 2, 0);
}

/* A 3x3 convolution as 1x3 beside 3x1. */
static int add_fork(const adding *a, int x, const char *name, const char *wide, const char *high)
{
    int branches[2];
    branches[0] = add_branch(a, x, (const conv[MAX_CONVS]){{wide, 384, 1, 3, 1}});
    branches[1] = add_branch(a, x, (const conv[MAX_CONVS]){{high, 384, 3, 1, 1}});
    join(a, name, branches, 2);
    return hpct_model_head(a->model);
}

/* 8 x 8 */
static void add_block_c(const adding *a)
{
    static const conv one[MAX_CONVS] = {{"branch1x1", 320, 1, 1, 1}},
                      three[MAX_CONVS] = {{"branch3x3_1", 384, 1, 1, 1}},
                      twice[MAX_CONVS] = {{"branch3x3dbl_1", 448, 1, 1, 1},
                                          {"branch3x3dbl_2", 384, 3, 3, 1}};
    int x = hpct_model_head(a->model), joined[MAX_BRANCHES];
    joined[0] = add_branch(a, x, one);
    joined[1] = add_branch(a, x, three);
    joined[1] = add_fork(a, joined[1], a->block->fork, "branch3x3_2a", "branch3x3_2b");
    joined[2] = add_branch(a, x, twice);
    joined[2] = add_fork(a, joined[2], NULL, "branch3x3dbl_3a", "branch3x3dbl_3b");
    joined[3] = add_pooled(a, x, 192);
    join(a, a->block->name, joined, MAX_BRANCHES);
}

void hpct_builtin_inception(hpct_model *model, const hpct_builtin_inception_form *form)
{
    static const struct {
        void (*add)(const adding *a);
        block block;
    } blocks[] = {
        {add_stem, {.module = ""}},
        {add_block_a, {"Mixed_5b.", "mixed0", 32, NULL}},
        {add_block_a, {"Mixed_5c.", "mixed1", 64, NULL}},
        {add_block_a, {"Mixed_5d.", "mixed2", 64, NULL}},
        {add_reduction_a, {"Mixed_6a.", "mixed3", 0, NULL}},
        {add_block_b, {"Mixed_6b.", "mixed4", 128, NULL}},
        {add_block_b, {"Mixed_6c.", "mixed5", 160, NULL}},
        {add_block_b, {"Mixed_6d.", "mixed6", 160, NULL}},
        {add_block_b, {"Mixed_6e.", "mixed7", 192, NULL}},
        {add_reduction_b, {"Mixed_7a.", "mixed8", 0, NULL}},
        {add_block_c, {"Mixed_7b.", "mixed9", 0, "mixed9_0"}},
        {add_block_c, {"Mixed_7c.", "mixed10", 0, "mixed9_1"}},
    };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        blocks[i].add(&(adding){model, form, &blocks[i].block});
}

/* ---- Keras' form ---- */

static void add_keras_norm(hpct_model *model, const char *name)
{
    (void) name;
    hpct_model_add_batch_normalization(model, &(hpct_batch_normalization){.no_scale = true});
}

static void add_keras_mean(hpct_model *model)
{
    hpct_model_add_average_pool2d(
        model, &(hpct_average_pool2d){.pool = {3, 3}, .strides = {1, 1}, .padding = HPCT_SAME});
}

static void describe_v3(hpct_model *model, int classes)
{
    static const hpct_builtin_inception_form keras = {NULL, add_keras_norm, add_keras_mean, true};
    hpct_builtin_inception(model, &keras);
    hpct_builtin_part_head(model, classes);
}

const hpct_builtin hpct_builtin_inceptionv3 =
    HPCT_BUILTIN_IMAGENET("inceptionv3", 299, describe_v3);
