/* Work of one operation that another one does: convolutions that make the sum of an Add, Adds that
 * work out what a normalization left to them; over drawn sums. */
#include "nn/backend/ref/ref.h"
#include "nn/graph/rng.h"
#include "nn/plan/run.h"
#include "nn/run/step.h"
#include "tests/unit/nn/nn_case.h"
#include "tests/unit/unit.h"

#define BATCH 3

static uint64_t draws;

static int pick(int low, int high)
{
    return low + (int) (hpct_graph_uniform(5, 9, draws++) * (float) (high - low + 1));
}

/* What a residual block has in its middle. */
static void draw_normed(hpct_model *model)
{
    int window = pick(1, 3);
    hpct_model_add_batch_normalization(model,
                                       &(hpct_batch_normalization){.no_center = pick(0, 3) == 0});
    if (pick(0, 2) > 0)
        hpct_model_add_activation(model, HPCT_RELU);
    hpct_model_add_conv2d(
        model, &(hpct_conv2d){.filters = 4, .kernel = {window, window}, .padding = HPCT_SAME});
    hpct_model_add_batch_normalization(model, &(hpct_batch_normalization){0});
}

/* One branch of a sum: what a residual block may end with. */
static int draw_branch(hpct_model *model, int from)
{
    int window = pick(1, 3);
    hpct_model_set_head(model, from);
    if (pick(0, 3) == 0)
        return from;
    hpct_model_add_conv2d(model,
                          &(hpct_conv2d){.filters = 4,
                                         .kernel = {window, window},
                                         .padding = HPCT_SAME,
                                         .no_bias = pick(0, 1) == 1,
                                         .activation = pick(0, 3) ? HPCT_LINEAR : HPCT_RELU});
    for (int i = pick(0, 2); i > 0 && pick(0, 1) == 1; i--)
        draw_normed(model);
    if (pick(0, 1) == 1)
        hpct_model_add_batch_normalization(
            model, &(hpct_batch_normalization){.no_scale = pick(0, 1) == 1});
    return hpct_model_head(model);
}

static hpct_model *draw_sums(void)
{
    hpct_model *model = hpct_model_new("sums", HPCT_SHAPE(5, 4, 4));
    for (int i = pick(1, 4); i > 0; i--) {
        int from = hpct_model_head(model), heads[2];
        heads[0] = draw_branch(model, from);
        heads[1] = draw_branch(model, from);
        if (heads[0] == heads[1])
            hpct_model_add_activation(model, HPCT_TANH);
        else
            hpct_model_add_add(model, pick(0, 1) ? heads : (int[]){heads[1], heads[0]}, 2);
        if (pick(0, 1) == 1)
            hpct_model_add_activation(model, HPCT_RELU);
    }
    hpct_model_add_flatten(model);
    hpct_model_add_dense(model, &(hpct_dense){.units = 3});
    return model;
}

static void fill_input(hpct_model *model)
{
    hpct_shape shape = hpct_model_input_shape(model);
    float *input = hpct_model_input(model);
    for (size_t i = 0; i < BATCH * hpct_graph_shape_count(&shape); i++)
        input[i] = hpct_graph_uniform(draws, 3, i) - 0.5f;
    for (int i = 0; i < BATCH; i++)
        hpct_model_labels(model)[i] = i;
}

/* A step; the outputs go to [BATCH * 3]. */
static void step_on(hpct_model *model, const hpct_backend *backend, float *outputs)
{
    int batch = BATCH;
    size_t count;
    hpct_optimizer sgd = {.kind = HPCT_SGD, .learning_rate = 0.1};
    hpct_run_build_options options = {.batch_sizes = &batch, .num_batch_sizes = 1};
    if (hpct_model_compile(model, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS, &sgd) !=
        HPCT_OK)
        fail_msg("%s", hpct_last_error());
    assert_int_equal(hpct_model_initialize(model, 3), HPCT_OK);
    model->backend = backend;
    if (hpct_model_build(model, &options) != HPCT_OK)
        fail_msg("%s", hpct_last_error());
    float *parameters = hpct_model_parameters(model, &count);
    for (size_t i = 0; i < count; i++) /* biases begin with zeros */
        parameters[i] += 0.4f * hpct_graph_uniform(17, 3, i) - 0.2f;
    fill_input(model);
    assert_int_equal(hpct_model_forward(model, BATCH, true), HPCT_OK);
    memcpy(outputs, hpct_model_output(model), BATCH * 3 * sizeof *outputs);
    assert_int_equal(hpct_model_loss(model, BATCH, 1, NULL), HPCT_OK);
    assert_int_equal(hpct_model_backward(model, BATCH), HPCT_OK);
}

/* Built for nothing else: what forward has read may go. */
static void infer(hpct_model *model, float *outputs)
{
    int batch = BATCH;
    hpct_run_build_options options = {
        .batch_sizes = &batch, .num_batch_sizes = 1, .inference_only = true};
    assert_int_equal(hpct_model_build(model, &options), HPCT_OK);
    fill_input(model);
    assert_int_equal(hpct_model_forward(model, BATCH, false), HPCT_OK);
    memcpy(outputs, hpct_model_output(model), BATCH * 3 * sizeof *outputs);
}

static bool fuse_all(hpct_backend_fusion fusion, const hpct_op_spec *spec,
                     const hpct_op_build *build, const hpct_op_spec *other)
{
    (void) spec, (void) build, (void) other;
    return fusion != HPCT_BACKEND_FUSION_POOL;
}

TEST(additions_elsewhere_are_the_same)
{
    hpct_backend other = hpct_ref_backend;
    int sums = 0, fused_downstream = 0, biases = 0;
    other.fuses = fuse_all;
    for (int i = 0; i < unit_cases(120); i++) {
        float here[BATCH * 3], there[BATCH * 3];
        size_t count;
        uint64_t begin = draws;
        hpct_model *a = draw_sums();
        draws = begin;
        hpct_model *b = draw_sums();
        step_on(a, &hpct_ref_backend, here);
        step_on(b, &other, there);
        assert_true(nn_difference(there, here, BATCH * 3) <= 1e-5);
        const float *expected = hpct_model_gradients(a, &count);
        assert_true(nn_difference(hpct_model_gradients(b, &count), expected, count) <= 1e-4);
        expected = hpct_model_states(a, &count);
        assert_true(nn_difference(hpct_model_states(b, &count), expected, count) <= 1e-5);
        for (int k = 0; k < b->num_nodes; k++) {
            sums += b->run->nodes[k].op->build.adds;
            fused_downstream += b->run->nodes[k].op->build.fused_downstream;
            biases += b->run->nodes[k].bias != NULL;
        }
        infer(a, here);
        infer(b, there);
        assert_true(nn_difference(there, here, BATCH * 3) <= 1e-5);
        hpct_model_free(a);
        hpct_model_free(b);
    }
    print_message("%d convolutions made sums, %d normalizations were left, %d had a bias\n", sums,
                  fused_downstream, biases);
    int least = unit_cases(20); /* it is not an empty test */
    assert_true(sums > least && fused_downstream > least && biases > least);
}
