/* fp16: rounding, whole models beside fp32, and the scale of the loss: by the reference, or by the
 * backend that HPC_TRAIN_TEST_BACKEND names. */
#include "base/fp16.h"
#include "nn/graph/rng.h"
#include "nn/run/run.h"
#include "nn/run/snapshot.h"
#include "tests/unit/nn/nn_small.h"

#include <math.h>

static const struct {
    float number, nearest;
} roundings[] = {
    {65504, 65504},
    {65519.996f, 65504},
    {65520, INFINITY},
    {-1e30f, -INFINITY},
    {1 + 0x1p-11f, 1}, /* halfway: to the even one */
    {1 + 3 * 0x1p-11f, 1 + 0x1p-9f},
    {1 + 0x1.008p-11f, 1 + 0x1p-10f},
    {0x1p-14f, 0x1p-14f},
    {0x1p-24f, 0x1p-24f},
    {0x1p-25f, 0},
    {0x1.8p-24f, 0x1p-23f},
    {0x1.02p-25f, 0x1p-24f},
    {-0x1p-26f, -0.0f},
    {INFINITY, INFINITY},
};

TEST(rounding_is_to_nearest_even)
{
    for (size_t i = 0; i < sizeof roundings / sizeof *roundings; i++)
        assert_true(hpct_fp16_value(hpct_fp16_of(roundings[i].number)) == roundings[i].nearest);
    assert_true(isnan(hpct_fp16_value(hpct_fp16_of(NAN))));
    for (uint32_t half = 0; half < 1 << 16; half++) {
        float value = hpct_fp16_value((uint16_t) half);
        assert_true(isnan(value) ? (half & 0x7fff) > 0x7c00 : hpct_fp16_of(value) == half);
    }
}

/* Beside the compiler's own type, of all exponents. */
TEST(rounding_is_the_compilers)
{
#ifdef __FLT16_MAX__
    for (uint64_t i = 0; i < 200000; i++) {
        uint32_t bits = (uint32_t) (hpct_graph_uniform(1, 0, i) * 65536) << 16 |
                        (uint32_t) (hpct_graph_uniform(1, 1, i) * 65536);
        float number = hpct_float_of_bits(bits);
        _Float16 nearest = (_Float16) number;
        uint16_t expected;
        memcpy(&expected, &nearest, sizeof expected);
        if (isnan(number))
            continue;
        assert_int_equal(hpct_fp16_of(number), expected);
    }
#else
    skip();
#endif
}

/* ---- models ---- */

static const char *backend(void)
{
    const char *name = small_backend();
    return strcmp(name, "cpu") == 0 ? "ref" : name;
}

static const hpct_optimizer sgd = {.learning_rate = 0.02, .momentum = 0.9};

static hpct_model *compiled(hpct_precision precision, const hpct_optimizer *optimizer)
{
    hpct_model *model = small_model(true);
    hpct_compile_options options = {.loss = HPCT_SPARSE_CATEGORICAL_CROSSENTROPY,
                                    .precision = precision,
                                    .optimizer = *optimizer};
    assert_int_equal(hpct_model_compile_with(model, &options), HPCT_OK);
    assert_int_equal(hpct_model_initialize(model, 5), HPCT_OK);
    return model;
}

static hpct_model *ready(hpct_precision precision, const hpct_optimizer *optimizer)
{
    hpct_model *model = compiled(precision, optimizer);
    small_build(model, (hpct_run_build_options){.backend = backend()});
    return model;
}

static hpct_model *ready_at(float scale, const hpct_optimizer *optimizer)
{
    hpct_model *model = compiled(HPCT_FP16, optimizer);
    model->scaling.scale = scale;
    small_build(model, (hpct_run_build_options){.backend = backend()});
    return model;
}

static hpct_graph_loss_scaling scaling_of(const hpct_model *model)
{
    hpct_graph_loss_scaling scaling = model->scaling;
    if (model->run != NULL)
        assert_int_equal(hpct_backend_memory_to_host(model->run->backend, &scaling,
                                                     model->run->arenas.scaling, sizeof scaling),
                         HPCT_OK);
    return scaling;
}

TEST(trains_as_fp32_does)
{
    hpct_model *low = ready(HPCT_FP16, &sgd), *wide = ready(HPCT_FP32, &sgd);
    bool differs = false;
    double first = 0, last = 0;
    for (uint32_t t = 0; t < 12; t++) {
        int n = t % 3 == 2 ? 5 : 8;
        double exact = small_step(wide, n, t);
        last = small_step(low, n, t);
        first = t == 0 ? last : first;
        assert_true(fabs(last - exact) < 0.03 * exact);
        differs = differs || last != exact;
    }
    assert_true(differs && last < first);
    assert_null(wide->run->arenas.scaling);
    assert_true(scaling_of(low).scale == HPCT_GRAPH_SCALING_FIRST);
    assert_int_equal(scaling_of(low).good, 12);
    hpct_model_free(low);
    hpct_model_free(wide);
}

/* The whole gradient, on the host, and its length. */
static double length_of_gradient(hpct_model *model, float **gradient, size_t *count)
{
    const float *from = hpct_model_gradients(model, count);
    double sum = 0;
    *gradient = malloc(*count * sizeof **gradient);
    assert_int_equal(hpct_backend_memory_to_host(model->run->backend, *gradient, from,
                                                 *count * sizeof **gradient),
                     HPCT_OK);
    for (size_t i = 0; i < *count; i++)
        sum += (double) (*gradient)[i] * (double) (*gradient)[i];
    return sqrt(sum);
}

TEST(gradients_are_scaled)
{
    hpct_model *models[2] = {ready_at(1024, &sgd), ready(HPCT_FP32, &sgd)};
    float *gradients[2];
    double length[2], apart = 0;
    size_t count = 0;
    for (int k = 0; k < 2; k++) {
        small_fill(models[k], 8, 0);
        assert_int_equal(hpct_model_forward(models[k], 8, true), HPCT_OK);
        assert_int_equal(hpct_model_loss(models[k], 8, 1.0f / 8, NULL), HPCT_OK);
        assert_int_equal(hpct_model_backward(models[k], 8), HPCT_OK);
        length[k] = length_of_gradient(models[k], &gradients[k], &count);
    }
    for (size_t i = 0; i < count; i++)
        apart += pow((double) gradients[0][i] / 1024 - (double) gradients[1][i], 2);
    assert_true(length[1] > 0 && sqrt(apart) < 0.02 * length[1]);
    for (int k = 0; k < 2; k++) {
        free(gradients[k]);
        hpct_model_free(models[k]);
    }
}

static float *weights_of(const hpct_model *model, size_t *count)
{
    *count = hpct_model_count_trainable(model);
    float *all = malloc(*count * sizeof *all);
    size_t at = 0;
    for (int i = 0; i < model->num_params; i++) {
        if (model->params[i].state)
            continue;
        assert_int_equal(hpct_run_param_get(model, i, all + at), HPCT_OK);
        at += hpct_graph_shape_count(&model->params[i].shape);
    }
    assert_int_equal(at, *count);
    return all;
}

/* With a scale too large nothing happens but that it is halved; from then on the model is one that
 * never saw those batches, Adam's corrections included. */
TEST(steps_that_overflow_are_left_out)
{
    static const hpct_optimizer optimizers[] = {
        {.kind = HPCT_SGD, .learning_rate = 0.02, .momentum = 0.9},
        {.kind = HPCT_ADAM, .learning_rate = 0.01},
        {.kind = HPCT_ADAMW, .learning_rate = 0.01, .weight_decay = 0.1, .global_clipnorm = 0.5},
        {.kind = HPCT_LAMB, .learning_rate = 0.01, .weight_decay = 0.01},
        {.kind = HPCT_LARS, .learning_rate = 0.5, .momentum = 0.9, .clipnorm = 0.2},
    };
    for (size_t o = 0; o < sizeof optimizers / sizeof *optimizers; o++) {
        hpct_model *model = ready_at(HPCT_GRAPH_SCALING_MOST, &optimizers[o]);
        int left_out = 0;
        size_t count;
        for (;; left_out++) {
            float *before = weights_of(model, &count);
            small_step(model, 8, 0);
            float *after = weights_of(model, &count);
            bool same = memcmp(before, after, count * sizeof *before) == 0;
            free(before);
            free(after);
            if (!same)
                break;
            assert_true(scaling_of(model).scale ==
                        HPCT_GRAPH_SCALING_MOST / (float) (2 << left_out));
            assert_int_equal(scaling_of(model).left_out, left_out + 1);
            assert_int_equal(model->steps, left_out + 1);
            assert_true(left_out < 40);
        }
        assert_true(left_out > 2);
        hpct_model *other = ready_at(scaling_of(model).scale, &optimizers[o]);
        small_step(other, 8, 0);
        assert_same_weights(model, other, 1e-6f);
        for (uint32_t t = 1; t < 6; t++) {
            small_step(model, 8, t);
            small_step(other, 8, t);
        }
        assert_int_equal(scaling_of(model).good, 6);
        assert_same_weights(model, other, 1e-2f); /* rounding has grown */
        hpct_model_free(model);
        hpct_model_free(other);
    }
}

/* However many updates were left out, late corrections are 1. */
TEST(corrections_end)
{
    hpct_graph_loss_scaling s = HPCT_GRAPH_LOSS_SCALING_BEGIN;
    for (int i = 0; i < 9000; i++)
        hpct_graph_loss_scaling_move(&s, false, 0.9, 0.999);
    assert_true(isinf(s.undo_1));
    assert_true(hpct_graph_loss_scaling_bias(1, s.undo_1) == 1);
    assert_true(s.scale == HPCT_GRAPH_SCALING_LEAST);
}

TEST(the_scale_grows_when_all_is_well)
{
    hpct_model *model = compiled(HPCT_FP16, &sgd);
    model->scaling.scale = 512;
    model->scaling.good = HPCT_GRAPH_SCALING_STEPS - 2;
    small_build(model, (hpct_run_build_options){.backend = backend()});
    small_step(model, 8, 0);
    assert_true(scaling_of(model).scale == 512);
    small_step(model, 8, 1);
    assert_true(scaling_of(model).scale == 1024 && scaling_of(model).good == 0);
    hpct_model_free(model);
}

/* Built or not, on both sides. */
TEST(the_scale_is_anothers)
{
    for (int k = 0; k < 4; k++) {
        hpct_model *from = k % 2 == 0 ? ready(HPCT_FP16, &sgd) : compiled(HPCT_FP16, &sgd),
                   *to = k < 2 ? ready(HPCT_FP16, &sgd) : compiled(HPCT_FP16, &sgd);
        hpct_graph_loss_scaling small = {.scale = 512, .good = 3, .left_out = 6, .undo_1 = 2};
        from->scaling = small;
        if (from->run != NULL)
            assert_int_equal(hpct_model_write_scaling(from, &small), HPCT_OK);
        assert_int_equal(hpct_model_copy_scaling(from, to), HPCT_OK);
        hpct_graph_loss_scaling got = scaling_of(to);
        assert_true(got.scale == 512 && got.good == 3 && got.left_out == 6 && got.undo_1 == 2);
        hpct_model_free(from);
        hpct_model_free(to);
    }
}

/* As workers of parameter servers do: gradients as they are, or the step once more. */
TEST(gradients_are_unscaled)
{
    hpct_model *model = ready_at(512, &sgd), *wide = ready(HPCT_FP32, &sgd);
    float gradients[] = {512, -256, 0};
    bool again;
    assert_int_equal(hpct_model_unscale(model, gradients, 3, &again), HPCT_OK);
    assert_true(!again && gradients[0] == 1 && gradients[1] == -0.5f && gradients[2] == 0);
    assert_int_equal(scaling_of(model).good, 1);
    gradients[1] = INFINITY;
    assert_int_equal(hpct_model_unscale(model, gradients, 3, &again), HPCT_OK);
    assert_true(again && scaling_of(model).scale == 256);
    hpct_graph_loss_scaling least = {.scale = HPCT_GRAPH_SCALING_LEAST};
    assert_int_equal(hpct_model_write_scaling(model, &least), HPCT_OK);
    assert_int_equal(hpct_model_unscale(model, gradients, 3, &again), HPCT_OK);
    assert_false(again); /* it would be for ever */
    assert_int_equal(hpct_model_unscale(wide, gradients, 3, &again), HPCT_OK);
    assert_true(!again && gradients[0] == 1);
    hpct_model_free(model);
    hpct_model_free(wide);
}

/* The length that clipping sees is that of the gradient itself. */
TEST(clipping_is_of_what_is_not_scaled)
{
    hpct_optimizer clipped = {.learning_rate = 1, .global_clipnorm = 1e-3};
    hpct_model *model = ready(HPCT_FP16, &clipped);
    size_t count;
    float *before = weights_of(model, &count);
    small_step(model, 8, 0);
    float *after = weights_of(model, &count);
    double moved = 0;
    for (size_t i = 0; i < count; i++)
        moved += pow((double) after[i] - (double) before[i], 2);
    assert_true(fabs(sqrt(moved) - 1e-3) < 1e-5);
    free(before);
    free(after);
    hpct_model_free(model);
}

/* With the model, wherever that is built; in snapshots; anew when it is compiled. */
TEST(the_scale_is_kept)
{
    hpct_model *model = ready_at(64, &sgd);
    hpct_run_snapshot *snapshot;
    small_step(model, 8, 0);
    small_build(model, (hpct_run_build_options){.backend = backend()});
    assert_true(scaling_of(model).scale == 64 && scaling_of(model).good == 1);
    assert_int_equal(hpct_run_snapshot_take(&snapshot, model), HPCT_OK);
    small_build(model, (hpct_run_build_options){.backend = backend()});
    small_step(model, 8, 1);
    assert_int_equal(scaling_of(model).good, 2);
    assert_int_equal(hpct_run_snapshot_restore(snapshot, model), HPCT_OK);
    hpct_run_snapshot_free(snapshot);
    assert_true(model->scaling.scale == 64 && model->scaling.good == 1);
    hpct_compile_options options = {
        .loss = HPCT_SPARSE_CATEGORICAL_CROSSENTROPY, .precision = HPCT_FP16, .optimizer = sgd};
    assert_int_equal(hpct_model_compile_with(model, &options), HPCT_OK);
    assert_true(model->scaling.scale == HPCT_GRAPH_SCALING_FIRST && model->scaling.good == 0);
    hpct_model_free(model);
}

/* Gradients of several batches are summed at one scale. */
TEST(accumulated_gradients_train_as_in_fp32)
{
    hpct_optimizer twice = {.learning_rate = 0.02, .gradient_accumulation_steps = 2};
    hpct_model *low = ready(HPCT_FP16, &twice), *wide = ready(HPCT_FP32, &twice);
    for (uint32_t t = 0; t < 6; t++) {
        double exact = small_step(wide, 8, t), loss = small_step(low, 8, t);
        assert_true(fabs(loss - exact) < 0.02 * exact);
    }
    assert_int_equal(scaling_of(low).good, 3);
    hpct_model_free(low);
    hpct_model_free(wide);
}

TEST(processors_refuse_it)
{
    hpct_model *model = compiled(HPCT_FP16, &sgd);
    int batch = 8;
    hpct_run_build_options options = {
        .backend = "cpu", .batch_sizes = &batch, .num_batch_sizes = 1};
    assert_int_equal(hpct_model_build(model, &options), HPCT_ERR_CONFIG);
    assert_string_equal(hpct_last_error(),
                        "precision fp16 needs a GPU: use --device cuda or --precision fp32");
    assert_int_equal(hpct_precision_check(HPCT_FP16), HPCT_ERR_CONFIG);
    hpct_model_free(model);
}
