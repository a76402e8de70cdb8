/* BatchNormalization that an Add works out: of one of its inputs or both, with a ReLU or without,
 * in training and inference, as each would do by itself. */
#include "tests/unit/cuda_backend.h"
#include "tests/unit/unit.h"

#include "nn/rng.h"
#include "nn/run.h"
#include "nn/step.h"

#include <math.h>

#define BATCH 5

static uint64_t draws;

static int pick(int low, int high)
{
    return low + (int) (hpct_uniform(5, 9, draws++) * (float) (high - low + 1));
}

static void normalize(hpct_model *model, int from, int kind)
{
    hpct_model_set_head(model, from);
    hpct_model_add_activation(model, kind == 0 ? HPCT_TANH : HPCT_GELU);
    hpct_model_add_batch_normalization(
        model, &(hpct_batch_normalization){.no_scale = kind == 1, .no_center = kind == 0});
}

/* Two branches from the input, added up. */
static hpct_model *model_of(int side, int channels, bool both, bool first, bool relu)
{
    hpct_model *model = hpct_model_new("sum", HPCT_SHAPE(side, side + 1, channels));
    int input = hpct_model_head(model), heads[2];
    normalize(model, input, 0);
    heads[first ? 0 : 1] = hpct_model_head(model);
    if (both)
        normalize(model, input, 1);
    if (!both) {
        hpct_model_set_head(model, input);
        hpct_model_add_activation(model, HPCT_SIGMOID);
    }
    heads[first ? 1 : 0] = hpct_model_head(model);
    hpct_model_add_add(model, heads, 2);
    if (relu)
        hpct_model_add_activation(model, HPCT_RELU);
    hpct_model_add_global_average_pool2d(model);
    hpct_optimizer sgd = {.kind = HPCT_SGD, .learning_rate = 0.5};
    assert_int_equal(
        hpct_model_compile(model, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS, &sgd), HPCT_OK);
    assert_int_equal(hpct_model_initialize(model, 3), HPCT_OK);
    return model;
}

static void build(hpct_model *model, const hpct_backend *backend)
{
    int batch = BATCH;
    hpct_build_options options = {.batch_sizes = &batch, .num_batch_sizes = 1};
    model->backend = backend;
    if (hpct_model_build(model, &options) != HPCT_OK)
        fail_msg("%s", hpct_last_error());
    float *input = hpct_model_input(model);
    size_t count = BATCH * hpct_shape_count(&model->tensors[0].shape);
    for (size_t i = 0; i < count; i++)
        input[i] = 3 * hpct_uniform(7, 1, i) - 1;
    for (int i = 0; i < BATCH; i++)
        hpct_model_labels(model)[i] = i % hpct_model_count_labels(model);
}

static void assert_near(const float *a, const float *b, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!(fabsf(a[i] - b[i]) < 1e-5F * (1 + fabsf(b[i]))))
            fail_msg("%zu of %zu: %g, not %g", i, count, (double) a[i], (double) b[i]);
    }
}

static void assert_same(hpct_model *a, hpct_model *b)
{
    size_t count;
    assert_near(hpct_model_output(a), hpct_model_output(b),
                (size_t) BATCH * (size_t) hpct_model_count_labels(a));
    const float *states = hpct_model_states(a, &count);
    assert_near(states, hpct_model_states(b, &count), count);
    const float *gradients = hpct_model_gradients(a, &count);
    assert_near(gradients, hpct_model_gradients(b, &count), count);
}

static int count_deferred(const hpct_model *model)
{
    int count = 0;
    for (int i = 0; i < model->num_nodes; i++)
        count += model->run->nodes[i].op->build.deferred;
    return count;
}

static void an_add_normalizes(void **state)
{
    static const int widths[] = {3, 8, 16, 40};
    (void) state;
    for (int way = 0; way < 8; way++) {
        bool both = (way & 1) != 0, first = (way & 2) != 0, relu = (way & 4) != 0;
        int side = pick(1, 7), channels = widths[pick(0, 3)];
        hpct_model *plain = model_of(side, channels, both, first, relu),
                   *fused = model_of(side, channels, both, first, relu);
        build(plain, &hpct_backend_ref);
        build(fused, &cuda_backend_on_host);
        assert_int_equal(count_deferred(plain), 0);
        assert_int_equal(count_deferred(fused), both ? 2 : 1);
        for (int step = 0; step < 3; step++) {
            hpct_model *const models[] = {plain, fused};
            for (int i = 0; i < 2; i++) {
                assert_int_equal(hpct_model_forward(models[i], BATCH, true), HPCT_OK);
                assert_int_equal(hpct_model_loss(models[i], BATCH, 1.0F / BATCH, NULL), HPCT_OK);
                assert_int_equal(hpct_model_backward(models[i], BATCH), HPCT_OK);
            }
            assert_same(fused, plain);
            for (int i = 0; i < 2; i++) {
                assert_int_equal(hpct_model_update(models[i]), HPCT_OK);
                assert_int_equal(hpct_model_forward(models[i], BATCH, false), HPCT_OK);
            }
            assert_same(fused, plain);
        }
        hpct_model_free(plain);
        hpct_model_free(fused);
    }
}

/* What somebody else reads, or what is the model's result, is made where it is. */
static void others_find_it_made(void **state)
{
    (void) state;
    hpct_model *model = hpct_model_new("shared", HPCT_SHAPE(3, 3, 8));
    normalize(model, hpct_model_head(model), 0);
    int norm = hpct_model_head(model);
    hpct_model_add_activation(model, HPCT_TANH);
    hpct_model_add_add(model, (int[]){norm, hpct_model_head(model)}, 2);
    hpct_model_add_global_average_pool2d(model);
    hpct_optimizer sgd = {.kind = HPCT_SGD, .learning_rate = 0.5};
    assert_int_equal(
        hpct_model_compile(model, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS, &sgd), HPCT_OK);
    assert_int_equal(hpct_model_initialize(model, 3), HPCT_OK);
    build(model, &cuda_backend_on_host);
    assert_int_equal(count_deferred(model), 0);
    hpct_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_add_normalizes),
        cmocka_unit_test(others_find_it_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
