/* Penalties of regularizers: in the loss, in the gradients of an update, once each. */
#include "nn/run/penalty.h"
#include "nn/run/run.h"
#include "nn/run/state.h"
#include "tests/unit/nn/nn_small.h"

#include <math.h>

static const hpct_optimizer sgd = {.learning_rate = 0.05};

static const char *const backends[] = {"ref", NULL}; /* NULL: the one that is tested */

static const char *backend_of(int b)
{
    return backends[b] != NULL ? backends[b] : small_backend();
}

static void regularize(hpct_model *model, const char *name, double l1, double l2)
{
    for (int i = 0; i < model->num_params; i++) {
        if (strcmp(model->params[i].name, name) != 0)
            continue;
        model->params[i].l1 = l1;
        model->params[i].l2 = l2;
        return;
    }
    fail_msg("no parameter %s", name);
}

/* No 0, where |w| has no slope. */
static void set_biases(hpct_model *model)
{
    for (int i = 0; i < model->num_params; i++) {
        const char *what = strrchr(model->params[i].name, '/');
        float values[8];
        if (strcmp(what, "/bias") != 0 && strcmp(what, "/beta") != 0)
            continue;
        for (int k = 0; k < 8; k++)
            values[k] = 0.1F * (float) (k % 2 == 0 ? k + 1 : -k);
        assert_int_equal(hpct_run_param_set(model, i, values), HPCT_OK);
    }
}

/* Smooth, so that its loss has a slope everywhere. The second Dense layer has no penalty. */
static hpct_model *plain(const hpct_optimizer *optimizer)
{
    hpct_model *m = hpct_model_new("smooth", HPCT_SHAPE(6, 6, 3));
    hpct_model_name_layer(m, "conv");
    hpct_model_add_conv2d(m,
                          &(hpct_conv2d){.filters = 5, .kernel = {3, 3}, .activation = HPCT_TANH});
    hpct_model_name_layer(m, "norm");
    hpct_model_add_batch_normalization(m, &(hpct_batch_normalization){.momentum = 0.9});
    hpct_model_add_flatten(m);
    hpct_model_name_layer(m, "hidden");
    hpct_model_add_dense(m, &(hpct_dense){.units = 7, .activation = HPCT_TANH});
    hpct_model_name_layer(m, "head");
    hpct_model_add_dense(m, &(hpct_dense){.units = 4});
    assert_int_equal(hpct_model_compile(m, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS,
                                        optimizer != NULL ? optimizer : &sgd),
                     HPCT_OK);
    assert_int_equal(hpct_model_initialize(m, 3), HPCT_OK);
    set_biases(m);
    return m;
}

static hpct_model *smooth(const hpct_optimizer *optimizer)
{
    hpct_model *m = plain(optimizer);
    regularize(m, "conv/kernel", 0.02, 0);
    regularize(m, "norm/gamma", 0, 0.05);
    regularize(m, "norm/beta", 0.1, 0.1);
    regularize(m, "hidden/kernel", 0.003, 0.02);
    return m;
}

/* Of the parameters as they are, by Keras' formulas. */
static double penalty_of(const hpct_model *model)
{
    double sum = 0;
    for (int i = 0; i < model->num_params; i++) {
        const hpct_graph_param *param = &model->params[i];
        size_t count = hpct_graph_shape_count(&param->shape);
        float *w = calloc(count, sizeof *w);
        assert_int_equal(hpct_run_param_get(model, i, w), HPCT_OK);
        for (size_t k = 0; k < count && !param->state; k++)
            sum += param->l1 * fabs((double) w[k]) + param->l2 * (double) w[k] * (double) w[k];
        free(w);
    }
    return sum;
}

/* Mean loss of batch 0 as it is shown; with training its gradients follow. */
static double loss_of(hpct_model *model, int n, bool training)
{
    hpct_backend_batch_sums sums;
    small_fill(model, n, 0);
    assert_int_equal(hpct_model_forward(model, n, training), HPCT_OK);
    assert_int_equal(hpct_model_loss(model, n, training ? 1.0F / (float) n : 0, &sums), HPCT_OK);
    return sums.loss / n;
}

TEST(the_loss_has_the_penalty)
{
    for (int b = 0; b < 2; b++) {
        hpct_model *with = smooth(NULL), *without = plain(NULL);
        double penalty;
        small_build(with, (hpct_run_build_options){.backend = backend_of(b)});
        small_build(without, (hpct_run_build_options){.backend = backend_of(b)});
        assert_true(penalty_of(with) > 0.3);
        for (int n = 5; n <= 8; n += 3) {
            for (int training = 0; training < 2; training++) {
                double more = loss_of(with, n, training == 1) - loss_of(without, n, training == 1);
                assert_true(fabs(more - penalty_of(with)) < 1e-5);
            }
        }
        assert_int_equal(hpct_model_penalty(with, &penalty), HPCT_OK);
        assert_true(fabs(penalty - penalty_of(with)) < 1e-6);
        assert_int_equal(hpct_model_penalty(without, &penalty), HPCT_OK);
        assert_true(penalty == 0);
        hpct_model_free(with);
        hpct_model_free(without);
    }
}

TEST(a_model_for_inference_has_it_too)
{
    hpct_model *with = smooth(NULL), *without = plain(NULL);
    small_build(with, (hpct_run_build_options){.inference_only = true});
    small_build(without, (hpct_run_build_options){.inference_only = true});
    double more = loss_of(with, 8, false) - loss_of(without, 8, false);
    assert_true(fabs(more - penalty_of(with)) < 1e-5);
    hpct_model_free(with);
    hpct_model_free(without);
}

/* Along random directions: by differences of the loss that is shown, in Keras' layout. */
TEST(its_gradient_is_that_of_the_loss)
{
    for (int d = 0; d < 4; d++) {
        hpct_model *model = smooth(NULL);
        small_build(model, (hpct_run_build_options){.backend = "ref"});
        loss_of(model, 8, true);
        assert_int_equal(hpct_model_backward(model, 8), HPCT_OK);
        size_t count;
        float *w = hpct_model_parameters(model, &count);
        const float *g = hpct_model_gradients(model, &count), step = 1e-3F;
        float *first = calloc(count, sizeof *first);
        double without = 0, with = 0, losses[2];
        memcpy(first, w, count * sizeof *first);
        for (int round = 0; round < 2; round++) {
            double *slope = round == 0 ? &without : &with;
            for (size_t i = 0; i < count; i++)
                *slope += (double) g[i] * (double) (hpct_graph_uniform(9, (uint32_t) d, i) - 0.3F);
            if (round == 0)
                assert_int_equal(hpct_model_penalize(model), HPCT_OK);
        }
        for (int side = 0; side < 2; side++) {
            for (size_t i = 0; i < count; i++) /* padding is no weight */
                w[i] = first[i] == 0
                           ? 0
                           : first[i] + (side == 0 ? -step : step) *
                                            (hpct_graph_uniform(9, (uint32_t) d, i) - 0.3F);
            hpct_model_parameters(model, &count);
            losses[side] = loss_of(model, 8, true);
        }
        double slope = (losses[1] - losses[0]) / (2 * (double) step);
        if (!(fabs(with - without) > 0.05 && fabs(slope - with) < 0.005))
            fail_msg("direction %d: %g, %g without penalty, but the loss has %g", d, with, without,
                     slope);
        free(first);
        hpct_model_free(model);
    }
}

TEST(frozen_layers_have_none)
{
    hpct_model *model = smooth(NULL), *other = plain(NULL);
    assert_int_equal(hpct_model_set_trainable(model, "conv,norm", false), HPCT_OK);
    assert_int_equal(hpct_model_set_trainable(other, "conv,norm", false), HPCT_OK);
    regularize(other, "hidden/kernel", 0.003, 0.02);
    small_build(model, (hpct_run_build_options){.backend = small_backend()});
    small_build(other, (hpct_run_build_options){.backend = small_backend()});
    for (uint32_t t = 0; t < 3; t++)
        assert_true(small_step(model, 8, t) == small_step(other, 8, t));
    assert_same_weights(model, other, 0);
    hpct_model_free(model);
    hpct_model_free(other);
}

/* A Dense layer whose backward applies SGD by itself would leave out its kernel's penalty. */
TEST(its_layers_update_is_not_fused)
{
    hpct_model *fused = smooth(NULL), *stored = smooth(NULL), *none = plain(NULL);
    small_build(fused, (hpct_run_build_options){.backend = "cpu", .fuse_update = true});
    small_build(stored, (hpct_run_build_options){.backend = "cpu"});
    small_build(none, (hpct_run_build_options){.backend = "cpu", .fuse_update = true});
    int with = 0, without = 0;
    for (int i = 0; i < fused->num_nodes; i++) {
        with += fused->run->nodes[i].op->kernel_fused;
        without += none->run->nodes[i].op->kernel_fused;
    }
    assert_true(with == 1 && without == 2);
    for (uint32_t t = 0; t < 5; t++)
        assert_true(fabs(small_step(fused, 8, t) - small_step(stored, 8, t)) < 1e-5);
    assert_same_weights(fused, stored, 1e-6F);
    hpct_model_free(fused);
    hpct_model_free(stored);
    hpct_model_free(none);
}

/* As parameter servers update, at any position. */
TEST(updates_of_parts_have_it_once)
{
    for (int k = 1; k < 8; k++) {
        const hpct_optimizer adam = {.kind = HPCT_ADAM, .learning_rate = 0.01, .clipvalue = 0.05};
        hpct_model *whole = smooth(&adam), *parts = smooth(&adam);
        size_t count;
        small_build(whole, (hpct_run_build_options){.backend = "cpu"});
        small_build(parts, (hpct_run_build_options){.backend = "cpu"});
        small_step(whole, 8, 0);
        loss_of(parts, 8, true);
        assert_int_equal(hpct_model_backward(parts, 8), HPCT_OK);
        hpct_model_gradients(parts, &count);
        size_t cut = hpct_model_cut(parts, count * (size_t) k / 8);
        assert_int_equal(hpct_model_update_part(parts, 0, cut), HPCT_OK);
        parts->steps = 0;
        assert_int_equal(hpct_model_update_part(parts, cut, count), HPCT_OK);
        assert_same_weights(whole, parts, 1e-6F);
        hpct_model_free(whole);
        hpct_model_free(parts);
    }
}

/* The mean of two gradients of one batch is one of them, also with its penalty. */
TEST(accumulated_gradients_have_it_once)
{
    for (int b = 0; b < 2; b++) {
        hpct_optimizer twice = sgd;
        twice.gradient_accumulation_steps = 2;
        hpct_model *one = smooth(NULL), *two = smooth(&twice);
        small_build(one, (hpct_run_build_options){.backend = backend_of(b)});
        small_build(two, (hpct_run_build_options){.backend = backend_of(b)});
        small_step(one, 8, 0);
        small_step(two, 8, 0);
        small_step(two, 8, 0);
        /* the moving statistics have seen two batches */
        for (int i = 0; i < one->num_params; i++) {
            size_t count = hpct_graph_shape_count(&one->params[i].shape);
            float *values = calloc(count, sizeof *values);
            assert_int_equal(hpct_run_param_get(one, i, values), HPCT_OK);
            if (one->params[i].state)
                assert_int_equal(hpct_run_param_set(two, i, values), HPCT_OK);
            free(values);
        }
        assert_same_weights(one, two, 1e-6F);
        hpct_model_free(one);
        hpct_model_free(two);
    }
}

/* A bias that a normalization subtracts has no gradient but its penalty's, in each step anew. */
TEST(a_bias_without_gradient_is_penalized)
{
    for (int b = 0; b < 2; b++) {
        hpct_model *m = hpct_model_new("subtracted", HPCT_SHAPE(6, 6, 3));
        hpct_model_name_layer(m, "conv");
        hpct_model_add_conv2d(m, &(hpct_conv2d){.filters = 5, .kernel = {3, 3}});
        hpct_model_name_layer(m, "norm");
        hpct_model_add_batch_normalization(m, &(hpct_batch_normalization){.momentum = 0.9});
        hpct_model_add_flatten(m);
        hpct_model_add_dense(m, &(hpct_dense){.units = 4});
        assert_int_equal(
            hpct_model_compile(m, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS, &sgd), HPCT_OK);
        assert_int_equal(hpct_model_initialize(m, 3), HPCT_OK);
        set_biases(m);
        regularize(m, "conv/bias", 0, 1);
        float first[5], last[5];
        assert_int_equal(hpct_run_param_get(m, 1, first), HPCT_OK);
        small_build(m, (hpct_run_build_options){.backend = backend_of(b), .fuse_update = true});
        for (uint32_t t = 0; t < 6; t++)
            small_step(m, 8, t);
        assert_int_equal(hpct_run_param_get(m, 1, last), HPCT_OK);
        for (int k = 0; k < 5; k++) {
            float wanted = first[k] * powf(0.9F, 6);
            if (!(fabsf(last[k] - wanted) < 1e-5F))
                fail_msg("bias %d on %s: %g, not %g", k, backend_of(b), (double) last[k],
                         (double) wanted);
        }
        hpct_model_free(m);
    }
}

/* In place of another shard with the same weights. */
static hpct_status double_it(void *argument, float *data, size_t count)
{
    *(size_t *) argument += count;
    for (size_t i = 0; i < count; i++)
        data[i] *= 2;
    return HPCT_OK;
}

TEST(shards_sum_penalties_of_their_parts)
{
    hpct_model *model = smooth(NULL);
    size_t summed = 0;
    const hpct_graph_step_peers peers = {.sum = double_it, .argument = &summed};
    small_build(model, (hpct_run_build_options){.backend = "cpu"});
    double before = loss_of(model, 8, true), all = penalty_of(model);
    assert_int_equal(hpct_model_penalty_floats(model), 0);
    hpct_model_set_peers(model, &peers);
    assert_true(loss_of(model, 8, true) == before && summed == 0);
    hpct_model_set_peers(model, NULL);
    assert_int_equal(hpct_model_unbuild(model), HPCT_OK);
    for (int i = 0; i < model->num_params; i++)
        model->params[i].split = strcmp(model->params[i].name, "hidden/kernel") == 0;
    small_build(model, (hpct_run_build_options){.backend = "cpu"});
    hpct_model_set_peers(model, &peers);
    assert_int_equal(hpct_model_penalty_floats(model), 1);
    double more = loss_of(model, 8, true) - before;
    assert_int_equal(summed, 1);
    regularize(model, "hidden/kernel", 0, 0);
    assert_true(more > 0.1 && fabs(more - (all - penalty_of(model))) < 1e-5);
    hpct_model_free(model);
}

static void assert_listed_as(const hpct_model *model, const char *text, bool same)
{
    char *list = hpct_model_list_penalties(model);
    assert_non_null(list);
    assert_int_equal(strcmp(list, text) == 0, same);
    free(list);
}

/* What ranks compare, and what is kept with checkpoints. */
TEST(the_list_has_each_factor)
{
    hpct_model *with = smooth(NULL), *without = plain(NULL);
    char *list = hpct_model_list_penalties(with);
    assert_non_null(list);
    assert_listed_as(without, list, false);
    regularize(with, "conv/kernel", 0, 0.02);
    assert_listed_as(with, list, false);
    regularize(with, "conv/kernel", 0.02, 0);
    assert_listed_as(with, list, true);
    free(list);
    hpct_model_free(with);
    hpct_model_free(without);
}
