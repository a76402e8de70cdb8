/* Which nodes the rules of nn/plan/fusions.c fuse, on a backend that supports every fusion. */
#include "nn/backend/ref/ref.h"
#include "nn/plan/fusions.h"
#include "nn/split/stage.h"
#include "tests/unit/unit.h"

static bool fuse_all(hpct_backend_fusion fusion, const hpct_op_spec *spec,
                     const hpct_op_build *build, const hpct_op_spec *other)
{
    (void) fusion, (void) spec, (void) build, (void) other;
    return true;
}

/* Fails unless the model's links are these, in this order. */
static void expect_links(hpct_model *model, const hpct_run_link *expected, int num)
{
    int batch = 2;
    hpct_backend backend = hpct_ref_backend;
    const hpct_run_build_options options = {.batch_sizes = &batch, .num_batch_sizes = 1};
    hpct_run *run;
    backend.fuses = fuse_all;
    model->backend = &backend;
    if (hpct_run_prepare(&run, model, &options) != HPCT_OK)
        fail_msg("%s", hpct_last_error());
    assert_int_equal(run->plan.num_links, num);
    for (int i = 0; i < num; i++) {
        const hpct_run_link *link = &run->plan.links[i];
        assert_int_equal(link->fusion, expected[i].fusion);
        assert_int_equal(link->from, expected[i].from);
        assert_int_equal(link->to, expected[i].to);
        assert_int_equal(link->input, expected[i].input);
    }
    hpct_run_free(run);
    model->backend = NULL;
}
#define EXPECT_LINKS(model, ...)                                                                   \
    expect_links(model, (const hpct_run_link[]){__VA_ARGS__},                                      \
                 sizeof((const hpct_run_link[]){__VA_ARGS__}) / sizeof(hpct_run_link))

static int convolve(hpct_model *model, hpct_activation activation)
{
    hpct_model_add_conv2d(
        model, &(hpct_conv2d){
                   .filters = 4, .kernel = {3, 3}, .padding = HPCT_SAME, .activation = activation});
    return hpct_model_head(model);
}

static int normalize(hpct_model *model)
{
    hpct_model_add_batch_normalization(model, &(hpct_batch_normalization){0});
    return hpct_model_head(model);
}

static hpct_model *finish(hpct_model *model)
{
    hpct_model_add_flatten(model);
    hpct_model_add_dense(model, &(hpct_dense){.units = 3});
    if (hpct_model_compile(model, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS,
                           &(hpct_optimizer){0}) != HPCT_OK)
        fail_msg("%s", hpct_last_error());
    return model;
}

TEST(a_residual_block_is_fused)
{
    hpct_model *model = hpct_model_new("block", HPCT_SHAPE(6, 6, 4));
    int stem = convolve(model, HPCT_LINEAR); /* 0: read by 1 and 4 */
    normalize(model);                        /* 1 */
    hpct_model_add_activation(model, HPCT_RELU);
    convolve(model, HPCT_LINEAR);                        /* 2 */
    int branch = normalize(model);                       /* 3 */
    hpct_model_add_add(model, (int[]){stem, branch}, 2); /* 4: read by 5 and 6 */
    int sum = hpct_model_head(model);
    branch = convolve(model, HPCT_LINEAR);              /* 5 */
    hpct_model_add_add(model, (int[]){branch, sum}, 2); /* 6 */
    finish(model);
    EXPECT_LINKS(model, {HPCT_BACKEND_FUSION_BIAS, 2, 3, 0},
                 {HPCT_BACKEND_FUSION_ADD_NORM, 3, 4, 1}, {HPCT_BACKEND_FUSION_SUM, 5, 6, 0});
    hpct_model_free(model);
}

/* A ReLU between convolution and normalization: the bias no longer cancels. */
TEST(relu_before_a_normalization_is_not_fused)
{
    hpct_model *model = hpct_model_new("relu", HPCT_SHAPE(6, 6, 4));
    convolve(model, HPCT_RELU);
    normalize(model);
    expect_links(finish(model), NULL, 0);
    hpct_model_free(model);
}

static int pool(hpct_model *model, int from, bool maximum)
{
    hpct_model_set_head(model, from);
    if (maximum)
        hpct_model_add_max_pool2d(model, &(hpct_max_pool2d){.pool = {2, 2}});
    else
        hpct_model_add_average_pool2d(model, &(hpct_average_pool2d){.pool = {2, 2}});
    return hpct_model_head(model);
}

static hpct_model *pooled_once(void)
{
    hpct_model *model = hpct_model_new("pooled", HPCT_SHAPE(6, 6, 1));
    pool(model, convolve(model, HPCT_RELU), true);
    return finish(model);
}

/* Two nodes read the convolution; the maximum is the first of them, or the second. */
static hpct_model *pooled_twice(bool first)
{
    hpct_model *model = hpct_model_new("pooled twice", HPCT_SHAPE(6, 6, 1));
    int convolution = convolve(model, HPCT_RELU), heads[2];
    heads[0] = pool(model, convolution, first);
    heads[1] = pool(model, convolution, !first);
    hpct_model_add_concatenate(model, heads, 2);
    return finish(model);
}

TEST(a_pooling_is_fused_with_its_source)
{
    hpct_model *model = pooled_once();
    EXPECT_LINKS(model, {HPCT_BACKEND_FUSION_POOL, 0, 1, 0});
    hpct_model_free(model);
}

TEST(a_pooling_beside_another_reader_is_not)
{
    for (int first = 0; first < 2; first++) {
        hpct_model *model = pooled_twice(first == 1);
        expect_links(model, NULL, 0);
        hpct_model_free(model);
    }
}

/* The first stage has the first `nodes` nodes. */
static hpct_split_stage *first_stage(const hpct_model *model, int nodes)
{
    const hpct_split_cut cut = {.stages = 2, .first = {0, nodes, model->num_nodes}};
    hpct_split_stage *stage;
    if (hpct_split_stage_open(&stage, model, &cut, 0) != HPCT_OK)
        fail_msg("%s", hpct_last_error());
    return stage;
}

TEST(nothing_is_fused_across_pipeline_stages)
{
    hpct_model *one = pooled_once(), *two = pooled_twice(true);
    hpct_split_stage *both = first_stage(one, 2), *convolution = first_stage(one, 1),
                     *shared = first_stage(two, 2); /* the next stage reads the convolution */
    EXPECT_LINKS(hpct_split_stage_model(both), {HPCT_BACKEND_FUSION_POOL, 0, 1, 0});
    expect_links(hpct_split_stage_model(convolution), NULL, 0);
    expect_links(hpct_split_stage_model(shared), NULL, 0);
    hpct_split_stage_close(both);
    hpct_split_stage_close(convolution);
    hpct_split_stage_close(shared);
    hpct_model_free(one);
    hpct_model_free(two);
}
