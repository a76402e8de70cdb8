/* BatchNormalization that an Add works out: of one of its inputs or both, with a ReLU or without,
 * in training and inference, as each would do by itself; and statistics from sums that are there.
 */
#include "tests/unit/cuda_backend.h"
#include "tests/unit/unit.h"

#include "nn/cuda/ops.h"
#include "nn/rng.h"
#include "nn/run.h"
#include "nn/step.h"

#include <math.h>
#include <string.h>

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

/* ---- statistics from sums that are there ---- */

#define ROWS 37
#define CHANNELS 19

static hpct_status add_twice(void *argument, float *data, size_t count)
{
    (void) argument;
    for (size_t i = 0; i < count; i++)
        data[i] *= 2; /* another replica has the same rows */
    return HPCT_OK;
}

static void normalize_rows(const float *src, const float *moments, bool synchronized, float *dst,
                           float *moving)
{
    int rows = ROWS;
    hpct_op_spec spec = {.kind = HPCT_OP_BATCH_NORM,
                         .norm = {.rows = 1,
                                  .channels = CHANNELS,
                                  .no_scale = true,
                                  .no_center = true,
                                  .synchronized = synchronized,
                                  .momentum = 0.5F,
                                  .epsilon = 1e-3F}};
    hpct_op_build build = {.batch_sizes = &rows, .num_batch_sizes = 1, .training = true};
    hpct_replicas replicas = {.sum = add_twice};
    hpct_op *op;
    assert_int_equal(hpct_cuda_make_batch_norm(&op, &spec, &build), HPCT_OK);
    void *workspace = hpct_host_allocate(op->workspace_bytes),
         *scratch = hpct_host_allocate(op->scratch_bytes);
    float *params[] = {moving, moving + CHANNELS};
    memset(moving, 0, 2 * CHANNELS * sizeof *moving);
    hpct_op_call call = {.n = ROWS,
                         .src = (const float *[]){src},
                         .moments = moments,
                         .dst = dst,
                         .param = params,
                         .workspace = workspace,
                         .scratch = scratch,
                         .replicas = synchronized ? &replicas : NULL,
                         .training = true};
    assert_int_equal(op->class->forward(op, &call), HPCT_OK);
    op->class->destroy(op);
    hpct_host_release(workspace);
    hpct_host_release(scratch);
}

static void sums_give_the_statistics(void **state)
{
    static float src[ROWS * CHANNELS], from_rows[ROWS * CHANNELS], from_sums[ROWS * CHANNELS];
    float sums[2 * CHANNELS] = {0}, moving[2][2 * CHANNELS];
    (void) state;
    for (int i = 0; i < ROWS * CHANNELS; i++) {
        src[i] = hpct_uniform(3, 1, (uint64_t) i) + (float) (i % CHANNELS) / 4;
        sums[i % CHANNELS] += src[i];
        sums[CHANNELS + i % CHANNELS] += src[i] * src[i];
    }
    for (int synchronized = 0; synchronized < 2; synchronized++) {
        normalize_rows(src, NULL, synchronized, from_rows, moving[0]);
        normalize_rows(src, sums, synchronized, from_sums, moving[1]);
        for (int i = 0; i < ROWS * CHANNELS; i++)
            assert_true(fabsf(from_rows[i] - from_sums[i]) < 1e-3F);
        for (int i = 0; i < 2 * CHANNELS; i++)
            assert_true(fabsf(moving[0][i] - moving[1][i]) < 1e-4F);
        assert_true(moving[1][0] > 0.2F && moving[1][CHANNELS] > 0.02F);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_add_normalizes),
        cmocka_unit_test(others_find_it_made),
        cmocka_unit_test(sums_give_the_statistics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
