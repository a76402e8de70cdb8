/* A small model and its steps. */
#include "tests/unit/nn/nn_small.h"

#include "nn/graph/rng.h"
#include "nn/run/run.h"

#include <math.h>
#include <stdlib.h>

hpct_model *small_model(bool softmax)
{
    hpct_model *m = hpct_model_new("small", HPCT_SHAPE(120));
    hpct_model_add_reshape(m, HPCT_SHAPE(10, 12, 1));
    hpct_model_add_conv2d(m,
                          &(hpct_conv2d){.filters = 16, .kernel = {3, 3}, .activation = HPCT_RELU});
    hpct_model_add_max_pool2d(m, &(hpct_max_pool2d){.pool = {2, 2}});
    hpct_model_add_conv2d(
        m, &(hpct_conv2d){.filters = 5, .kernel = {3, 3}, .strides = {2, 1}, .padding = HPCT_SAME});
    hpct_model_add_activation(m, HPCT_RELU);
    hpct_model_add_flatten(m);
    hpct_model_add_dense(m, &(hpct_dense){.units = 13, .activation = HPCT_RELU});
    hpct_model_add_dense(
        m, &(hpct_dense){.units = 4, .activation = softmax ? HPCT_SOFTMAX : HPCT_LINEAR});
    return m;
}

void small_compile(hpct_model *model, hpct_loss loss, double momentum)
{
    hpct_optimizer sgd = {.kind = HPCT_SGD, .learning_rate = 0.1, .momentum = momentum};
    assert_int_equal(hpct_model_compile(model, loss, &sgd), HPCT_OK);
    assert_int_equal(hpct_model_initialize(model, 3), HPCT_OK);
}

void small_logits(hpct_model *model, uint64_t seed)
{
    hpct_optimizer sgd = {.kind = HPCT_SGD, .learning_rate = 0.1};
    assert_int_equal(
        hpct_model_compile(model, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS, &sgd), HPCT_OK);
    if (seed > 0)
        assert_int_equal(hpct_model_initialize(model, seed), HPCT_OK);
}

void small_build(hpct_model *model, hpct_run_build_options options)
{
    static const int batches[] = {8, 5};
    if (options.batch_sizes == NULL) {
        options.batch_sizes = batches;
        options.num_batch_sizes = 2;
    }
    if (hpct_model_build(model, &options) != HPCT_OK)
        fail_msg("%s", hpct_last_error());
}

hpct_model *small_ready(const char *backend, double momentum)
{
    hpct_model *model = small_model(true);
    small_compile(model, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY, momentum);
    small_build(model, (hpct_run_build_options){.backend = backend});
    return model;
}

void small_fill(hpct_model *model, int n, uint32_t t)
{
    hpct_shape shape = hpct_model_input_shape(model);
    size_t size = hpct_graph_shape_count(&shape);
    int classes = hpct_model_output_shape(model).size[0];
    for (int s = 0; s < n; s++) {
        int label = (int) (hpct_graph_uniform(1, t, (uint64_t) s) * (float) classes);
        hpct_model_labels(model)[s] = label;
        for (size_t i = 0; i < size; i++)
            hpct_model_input(model)[(size_t) s * size + i] =
                hpct_graph_uniform(2, t, (uint64_t) s * size + i) *
                (i % (size_t) classes == (size_t) label ? 2 : 1);
    }
}

const hpct_optimizer small_optimizers[SMALL_OPTIMIZERS] = {
    {.learning_rate = 0.1,
     .momentum = 0.9,
     .nesterov = true,
     .weight_decay = 0.01,
     .clipnorm = 0.5,
     .schedule = {.kind = HPCT_COSINE_DECAY, .decay_steps = 40, .warmup_steps = 3}},
    {.kind = HPCT_ADAM, .learning_rate = 0.01, .gradient_accumulation_steps = 2},
    {.kind = HPCT_ADAMW, .learning_rate = 0.01, .clipvalue = 0.05},
    {.kind = HPCT_LARS, .learning_rate = 1, .weight_decay = 0.01, .trust_coefficient = 0.02},
    {.kind = HPCT_LAMB, .learning_rate = 0.02, .global_clipnorm = 1},
    {.kind = HPCT_RMSPROP,
     .learning_rate = 0.01,
     .momentum = 0.5,
     .centered = true,
     .epsilon = 0.01},
    {.kind = HPCT_RMSPROP, .learning_rate = 0.01, .centered = true, .epsilon = 0.01},
};

hpct_model *small_ready_with(const char *backend, const hpct_optimizer *optimizer)
{
    hpct_model *model = small_model(true);
    assert_int_equal(hpct_model_compile(model, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY, optimizer),
                     HPCT_OK);
    assert_int_equal(hpct_model_initialize(model, 3), HPCT_OK);
    small_build(model, (hpct_run_build_options){.backend = backend});
    return model;
}

double small_step(hpct_model *model, int n, uint32_t t)
{
    bool due;
    hpct_backend_batch_sums sums;
    small_fill(model, n, t);
    assert_int_equal(hpct_model_forward(model, n, true), HPCT_OK);
    assert_int_equal(hpct_model_loss(model, n, 1.0f / (float) n, &sums), HPCT_OK);
    assert_int_equal(hpct_model_backward(model, n), HPCT_OK);
    assert_int_equal(hpct_model_accumulate(model, &due), HPCT_OK);
    if (due)
        assert_int_equal(hpct_model_update(model), HPCT_OK);
    return sums.loss / n;
}

void assert_same_weights(const hpct_model *a, const hpct_model *b, float tolerance)
{
    assert_int_equal(a->num_params, b->num_params);
    for (int i = 0; i < a->num_params; i++) {
        size_t count = hpct_graph_shape_count(&a->params[i].shape);
        float *x = malloc(count * sizeof *x), *y = malloc(count * sizeof *y);
        assert_int_equal(hpct_run_param_get(a, i, x), HPCT_OK);
        assert_int_equal(hpct_run_param_get(b, i, y), HPCT_OK);
        for (size_t k = 0; k < count; k++) {
            if (!(fabsf(x[k] - y[k]) <= tolerance))
                fail_msg("%s[%zu]: %g and %g", a->params[i].name, k, (double) x[k], (double) y[k]);
        }
        free(x);
        free(y);
    }
}

void expect_shown_gradients(hpct_model *fused, hpct_model *shown, hpct_model *plain)
{
    hpct_model *const models[] = {fused, shown, plain};
    size_t count, same;
    hpct_model_show_gradients(shown, true);
    for (int i = 0; i < 3; i++)
        small_step(models[i], 8, 0);
    const float *expected = hpct_model_gradients(plain, &count),
                *found = hpct_model_gradients(shown, &same);
    assert_int_equal(count, same);
    for (size_t i = 0; i < count; i++)
        assert_true(fabsf(found[i] - expected[i]) <= 1e-6f + 1e-5f * fabsf(expected[i]));
    assert_memory_equal(hpct_model_parameters(fused, &same), hpct_model_parameters(shown, &count),
                        count * sizeof(float));
    for (int i = 0; i < 3; i++)
        hpct_model_free(models[i]);
}

const char *small_backend(void)
{
    const char *name = getenv("HPC_TRAIN_TEST_BACKEND");
    return name != NULL ? name : "cpu";
}
