/* Frozen layers and learning rates of layers: what a plan has for them, and what steps do. */
#include "nn/run/run.h"
#include "nn/run/state.h"
#include "nn/run/synced.h"
#include "tests/unit/nn/nn_small.h"

#include <math.h>

static void convolve(hpct_model *m, const char *name, int filters, int kernel, hpct_activation how)
{
    hpct_model_name_layer(m, name);
    hpct_model_add_conv2d(m, &(hpct_conv2d){.filters = filters,
                                            .kernel = {kernel, kernel},
                                            .padding = HPCT_SAME,
                                            .activation = how});
}

/* A ReLU that is fused to the first normalization, one that is not there after the second. */
static hpct_model *tower(const hpct_optimizer *optimizer)
{
    hpct_model *m = hpct_model_new("tower", HPCT_SHAPE(8, 8, 3));
    convolve(m, "first", 16, 3, HPCT_LINEAR);
    hpct_model_name_layer(m, "norm_1");
    hpct_model_add_batch_normalization(m, &(hpct_batch_normalization){.momentum = 0.9});
    hpct_model_add_activation(m, HPCT_RELU);
    convolve(m, "second", 32, 3, HPCT_RELU);
    convolve(m, "third", 16, 1, HPCT_LINEAR);
    hpct_model_name_layer(m, "norm_2");
    hpct_model_add_batch_normalization(m, &(hpct_batch_normalization){.momentum = 0.9});
    hpct_model_add_flatten(m);
    hpct_model_name_layer(m, "wide");
    hpct_model_add_dense(m, &(hpct_dense){.units = 13, .activation = HPCT_RELU});
    hpct_model_name_layer(m, "head");
    hpct_model_add_dense(m, &(hpct_dense){.units = 4});
    assert_int_equal(hpct_model_compile(m, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS,
                                        optimizer != NULL ? optimizer
                                                          : &(hpct_optimizer){.learning_rate = 0.05,
                                                                              .momentum = 0.9}),
                     HPCT_OK);
    assert_int_equal(hpct_model_initialize(m, 3), HPCT_OK);
    return m;
}

static void set(hpct_model *model, const char *name, float from, float to)
{
    for (int i = 0; i < model->num_params; i++) {
        size_t count = hpct_graph_shape_count(&model->params[i].shape);
        if (strcmp(model->params[i].name, name) != 0)
            continue;
        float *values = calloc(count, sizeof *values);
        for (size_t k = 0; k < count; k++)
            values[k] = from + (to - from) * (float) k / (float) count;
        assert_int_equal(hpct_run_param_set(model, i, values), HPCT_OK);
        free(values);
    }
}

/* Moving statistics that are none of a batch. */
static void set_statistics(hpct_model *model)
{
    const char *norms[] = {"norm_1", "norm_2"};
    for (int i = 0; i < 2; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s/moving_mean", norms[i]);
        set(model, name, -0.2F, 0.3F);
        snprintf(name, sizeof name, "%s/moving_variance", norms[i]);
        set(model, name, 0.3F, 2);
        snprintf(name, sizeof name, "%s/beta", norms[i]);
        set(model, name, 0.4F, -0.3F);
        snprintf(name, sizeof name, "%s/gamma", norms[i]);
        set(model, name, 0.5F, 1.5F);
    }
}

static float *copy_of(const hpct_model *model, int param)
{
    float *values = calloc(hpct_graph_shape_count(&model->params[param].shape), sizeof *values);
    assert_int_equal(hpct_run_param_get(model, param, values), HPCT_OK);
    return values;
}

/* A step changes the trained parameters, and no bit of the others. */
static void expect_frozen(hpct_model *model)
{
    float *before[32];
    assert_true(model->num_params <= 32);
    for (int i = 0; i < model->num_params; i++)
        before[i] = copy_of(model, i);
    for (uint32_t t = 0; t < 3; t++)
        assert_true(isfinite(small_step(model, t == 1 ? 5 : 8, t)));
    for (int i = 0; i < model->num_params; i++) {
        float *after = copy_of(model, i);
        size_t bytes = hpct_graph_shape_count(&model->params[i].shape) * sizeof *after;
        /* a bias that a normalization subtracts may stay */
        bool may_stay =
            strcmp(model->params[i].name + strlen(model->params[i].name) - 4, "bias") == 0;
        bool same = memcmp(before[i], after, bytes) == 0;
        if (same != model->params[i].frozen && !(same && may_stay))
            fail_msg("%s has %schanged", model->params[i].name,
                     model->params[i].frozen ? "" : "not ");
        free(after);
        free(before[i]);
    }
}

static hpct_run_node *node_of(const hpct_model *model, const char *layer, hpct_op_kind kind)
{
    for (int i = 0; i < model->num_nodes; i++) {
        if (strcmp(model->layers[model->nodes[i].layer].name, layer) == 0 &&
            model->nodes[i].spec.kind == kind)
            return &model->run->nodes[i];
    }
    fail_msg("no node of %s", layer);
    return NULL;
}

static size_t padded(size_t floats)
{
    return (floats + HPCT_BACKEND_ARENA_ALIGN - 1) / HPCT_BACKEND_ARENA_ALIGN *
           HPCT_BACKEND_ARENA_ALIGN;
}

TEST(a_frozen_base_has_no_backward)
{
    const char *backends[] = {small_backend(), "ref"};
    double losses[2][3];
    for (int b = 0; b < 2; b++) {
        hpct_model *model = tower(NULL);
        size_t count;
        set_statistics(model);
        assert_int_equal(hpct_model_set_trainable(model, "first,norm_*,second,third", false),
                         HPCT_OK);
        assert_int_equal(hpct_model_count_trainable(model), 16 * 64 * 13 + 13 + 13 * 4 + 4);
        small_build(model, (hpct_run_build_options){.backend = backends[b], .fuse_update = b == 0});
        const size_t floats = padded(16 * 64 * 13) + padded(13) + padded(13 * 4) + padded(4);
        assert_non_null(hpct_model_gradients(model, &count));
        assert_int_equal(count, floats);
        assert_non_null(hpct_model_slots(model, 0, &count));
        assert_int_equal(count, floats);
        hpct_model_states(model, &count);
        assert_int_equal(count, 0); /* nothing to average over ranks */
        hpct_model_frozen(model, &count);
        assert_true(count > 16 * 9 * 32);
        assert_false(hpct_model_has_own_statistics(model));
        assert_false(node_of(model, "norm_2", HPCT_OP_BATCH_NORM)->backward);
        assert_false(node_of(model, "second", HPCT_OP_CONV2D)->backward);
        assert_true(node_of(model, "wide", HPCT_OP_DENSE)->backward);
        assert_null(node_of(model, "wide", HPCT_OP_DENSE)->diff_src[0]);
        for (uint32_t t = 0; t < 3; t++)
            losses[b][t] = small_step(model, 8, t);
        expect_frozen(model);
        hpct_model_free(model);
    }
    for (int t = 0; t < 3; t++)
        assert_true(fabs(losses[0][t] - losses[1][t]) < 1e-4 * losses[1][t]);
}

/* Operations that compute their gradients all the same: nothing reads them. */
static hpct_model *others(void)
{
    hpct_model *m = hpct_model_new("others", HPCT_SHAPE(8, 8, 3));
    const hpct_optimizer sgd = {.learning_rate = 0.05, .momentum = 0.9};
    convolve(m, "first", 6, 3, HPCT_LINEAR);
    hpct_model_add_normalization(m);
    hpct_model_add_prelu(m, true);
    hpct_model_add_conv2d_transpose(
        m, &(hpct_conv2d_transpose){.filters = 4, .kernel = {3, 3}, .strides = {2, 2}});
    hpct_model_add_group_normalization(m, &(hpct_group_normalization){.groups = 2});
    hpct_model_add_prelu(m, false);
    hpct_model_add_layer_scale(m, 2);
    hpct_model_add_layer_normalization(m, &(hpct_layer_normalization){.epsilon = 1e-2});
    hpct_model_add_flatten(m);
    hpct_model_name_layer(m, "head");
    hpct_model_add_dense(m, &(hpct_dense){.units = 4});
    assert_int_equal(hpct_model_compile(m, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS, &sgd),
                     HPCT_OK);
    assert_int_equal(hpct_model_initialize(m, 3), HPCT_OK);
    assert_int_equal(hpct_model_set_trainable(m, "*", false), HPCT_OK);
    assert_int_equal(hpct_model_set_trainable(m, "first,head", true), HPCT_OK);
    return m;
}

TEST(every_layer_with_weights_can_be_frozen)
{
    const char *backends[] = {small_backend(), "ref"};
    double losses[2][3];
    for (int b = 0; b < 2; b++) {
        hpct_model *model = others();
        small_build(model, (hpct_run_build_options){.backend = backends[b]});
        assert_int_equal(hpct_model_count_trainable(model), 27 * 6 + 6 + 17 * 17 * 4 * 4 + 4);
        for (uint32_t t = 0; t < 3; t++)
            losses[b][t] = small_step(model, 8, t);
        expect_frozen(model);
        hpct_model_free(model);
    }
    for (int t = 0; t < 3; t++)
        assert_true(fabs(losses[0][t] - losses[1][t]) < 1e-4 * losses[1][t]);
}

/* Layers that pass a gradient on, without one of their own. */
TEST(frozen_layers_above_trained_ones)
{
    const char *backends[] = {small_backend(), "ref"};
    hpct_model *models[2];
    for (int b = 0; b < 2; b++) {
        hpct_model *model = models[b] = tower(NULL);
        set_statistics(model);
        assert_int_equal(hpct_model_set_trainable(model, "norm_1,second,norm_2,wide", false),
                         HPCT_OK);
        small_build(model, (hpct_run_build_options){.backend = backends[b]});
        const hpct_run_node *conv = node_of(model, "second", HPCT_OP_CONV2D),
                            *dense = node_of(model, "wide", HPCT_OP_DENSE);
        assert_true(conv->backward && conv->op->build.frozen && conv->op->omits_grads);
        assert_true(dense->backward && dense->op->build.frozen && dense->op->omits_grads);
        assert_null(conv->grad[HPCT_OP_KERNEL]);
        assert_null(dense->grad[HPCT_OP_BIAS]);
        assert_non_null(conv->diff_src[0]);
        expect_frozen(model);
    }
    assert_same_weights(models[0], models[1], 1e-4f);
    hpct_model_free(models[0]);
    hpct_model_free(models[1]);
}

/* The sum of the losses after a step of `length` along the gradient of `param`. */
static double loss_along(hpct_model *model, int param, const float *from, const float *gradient,
                         double length)
{
    size_t count = hpct_graph_shape_count(&model->params[param].shape);
    float *moved = calloc(count, sizeof *moved);
    hpct_backend_batch_sums sums;
    for (size_t i = 0; i < count; i++)
        moved[i] = from[i] + (float) length * gradient[i];
    assert_int_equal(hpct_run_param_set(model, param, moved), HPCT_OK);
    assert_int_equal(hpct_model_forward(model, 8, true), HPCT_OK);
    assert_int_equal(hpct_model_loss(model, 8, 0, &sums), HPCT_OK);
    free(moved);
    return sums.loss;
}

/* Through a frozen normalization with a fused ReLU: a difference quotient along the gradient is its
 * square. */
TEST(the_gradient_is_that_of_moving_statistics)
{
    const char *backends[] = {small_backend(), "ref"};
    for (int b = 0; b < 2; b++) {
        hpct_model *model = tower(NULL);
        size_t floats = 3 * 3 * 3 * 16;
        double square = 0, length = 0;
        float gradient[3 * 3 * 3 * 16];
        set_statistics(model);
        assert_int_equal(hpct_model_set_trainable(model, "norm_*", false), HPCT_OK);
        small_build(model, (hpct_run_build_options){.backend = backends[b]});
        small_fill(model, 8, 1);
        float *before = copy_of(model, 0);
        assert_int_equal(hpct_model_forward(model, 8, true), HPCT_OK);
        assert_int_equal(hpct_model_loss(model, 8, 1, NULL), HPCT_OK);
        assert_int_equal(hpct_model_backward(model, 8), HPCT_OK);
        const hpct_run_node *conv = node_of(model, "first", HPCT_OP_CONV2D);
        assert_int_equal(
            hpct_op_export(conv->op, HPCT_OP_KERNEL, conv->grad[HPCT_OP_KERNEL], gradient),
            HPCT_OK);
        for (size_t i = 0; i < floats; i++)
            square += (double) gradient[i] * (double) gradient[i];
        length = 2e-3 / sqrt(square);
        double rise = loss_along(model, 0, before, gradient, length) -
                      loss_along(model, 0, before, gradient, -length);
        if (!(square > 1e-3) || fabs(rise / (2 * length) - square) > 0.02 * square)
            fail_msg("%s: the gradient's square is %g, the quotient %g", backends[b], square,
                     rise / (2 * length));
        free(before);
        hpct_model_free(model);
    }
}

TEST(thawed_layers_train_again)
{
    hpct_model *model = tower(NULL);
    small_build(model, (hpct_run_build_options){.backend = small_backend()});
    small_step(model, 8, 0); /* there are slots now */
    assert_int_equal(hpct_model_set_trainable(model, "*", false), HPCT_OK);
    assert_int_equal(hpct_model_count_trainable(model), 0);
    assert_null(model->run); /* in effect from the next build on */
    for (int i = 0; i < model->num_params; i++)
        assert_null(model->params[i].slot[0]);
    char *names = hpct_model_frozen_layers(model);
    assert_string_equal(names, "first,norm_1,second,third,norm_2,wide,head");
    free(names);
    assert_int_equal(hpct_model_set_trainable(model, "*", true), HPCT_OK);
    names = hpct_model_frozen_layers(model);
    assert_string_equal(names, "");
    free(names);
    small_build(model, (hpct_run_build_options){.backend = small_backend()});
    size_t states;
    hpct_model_states(model, &states);
    assert_int_equal(states, 4 * 16); /* moving statistics again */
    expect_frozen(model);
    hpct_model_free(model);
}

static void refused(hpct_status status, const char *says)
{
    assert_int_equal(status, HPCT_ERR_USAGE);
    if (strstr(hpct_last_error(), says) == NULL)
        fail_msg("%s", hpct_last_error());
}

TEST(a_pattern_that_matches_nothing_is_an_error)
{
    hpct_model *model = tower(NULL);
    refused(hpct_model_set_trainable(model, "first,nothing*", false),
            "matches 'nothing*'; there are: first, norm_1, activation, second");
    assert_int_equal(hpct_model_count_trainable(model) < hpct_model_count_parameters(model), true);
    assert_false(model->layers[0].frozen); /* nothing is done by halves */
    refused(hpct_model_set_trainable(model, "", false), "matches ''");
    refused(hpct_model_set_rate_factor(model, "nothing", 0.1), "matches 'nothing'");
    refused(hpct_model_set_rate_factor(model, "first", 0), "must be positive");
    refused(hpct_model_set_rate_factor(model, "first", NAN), "must be positive");
    hpct_model_free(model);
}

/* Half the rate for all layers is half the learning rate. */
TEST(a_factor_is_one_of_the_rate)
{
    const char *backends[] = {small_backend(), "ref"};
    for (int k = 0; k < unit_cases(SMALL_OPTIMIZERS); k++) {
        for (int b = 0; b < 2; b++) {
            hpct_optimizer half = small_optimizers[k];
            half.learning_rate /= 2;
            hpct_model *factors = tower(&small_optimizers[k]), *rates = tower(&half);
            assert_int_equal(hpct_model_set_rate_factor(factors, "*", 0.5), HPCT_OK);
            small_build(factors, (hpct_run_build_options){.backend = backends[b]});
            small_build(rates, (hpct_run_build_options){.backend = backends[b]});
            for (uint32_t t = 0; t < 4; t++) {
                small_step(factors, 8, t);
                small_step(rates, 8, t);
            }
            assert_same_weights(factors, rates, 1e-6f);
            hpct_model_free(factors);
            hpct_model_free(rates);
        }
    }
}

/* How far a step has moved a parameter. */
static double moved(hpct_model *model, const char *name, bool fuse)
{
    double sum = 0;
    for (int i = 0; i < model->num_params; i++) {
        if (strcmp(model->params[i].name, name) != 0)
            continue;
        float *before = copy_of(model, i);
        small_build(model,
                    (hpct_run_build_options){.backend = small_backend(), .fuse_update = fuse});
        small_step(model, 8, 0);
        float *after = copy_of(model, i);
        for (size_t k = 0; k < hpct_graph_shape_count(&model->params[i].shape); k++)
            sum += fabs((double) after[k] - (double) before[k]);
        free(before);
        free(after);
    }
    return sum;
}

/* Also where backward applies the update itself. */
TEST(other_layers_keep_their_rate)
{
    static const char *const names[] = {"head/kernel", "head/bias", "wide/kernel", "norm_1/gamma"};
    for (int i = 0; i < 4; i++) {
        for (int fuse = 0; fuse < 2; fuse++) {
            hpct_model *plain = tower(&(hpct_optimizer){.learning_rate = 0.05}),
                       *slow = tower(&(hpct_optimizer){.learning_rate = 0.05});
            assert_int_equal(hpct_model_set_rate_factor(slow, "wide,norm_1", 0.125), HPCT_OK);
            double ratio = moved(slow, names[i], fuse != 0) / moved(plain, names[i], fuse != 0),
                   expected = i < 2 ? 1 : 0.125;
            if (!(fabs(ratio / expected - 1) < 1e-3))
                fail_msg("%s: %g of the other's step, not %g", names[i], ratio, expected);
            hpct_model_free(plain);
            hpct_model_free(slow);
        }
    }
}

/* Checkpoints write rows, of which the count of a Normalization, a single number, is one. */
static void values_have_rows(const hpct_model *model)
{
    hpct_run_state_list list = {0};
    assert_int_equal(hpct_run_state_list_make(&list, model), HPCT_OK);
    for (int i = 0; i < list.count; i++) {
        assert_true(list.values[i].shape.rank > 0);
        assert_int_equal(hpct_graph_shape_count(&list.values[i].shape), list.values[i].count);
    }
    hpct_run_state_list_free(&list);
}

/* Replicas average the moving statistics, which may round what no step changes. */
TEST(the_numbers_of_a_normalization_are_no_statistics)
{
    const int batch = 2;
    size_t states, frozen;
    hpct_model *model = hpct_model_new("scaled", HPCT_SHAPE(8, 8, 3));
    hpct_model_name_layer(model, "scale");
    hpct_model_add_normalization(model);
    hpct_model_add_flatten(model);
    hpct_model_add_dense(model, &(hpct_dense){.units = 4});
    assert_int_equal(hpct_model_compile(model, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS,
                                        &(hpct_optimizer){.learning_rate = 0.05}),
                     HPCT_OK);
    for (int turn = 0; turn < 2; turn++) { /* the second: frozen and thawed */
        assert_int_equal(hpct_model_build(model, &(hpct_run_build_options){.batch_sizes = &batch,
                                                                           .num_batch_sizes = 1}),
                         HPCT_OK);
        hpct_model_states(model, &states);
        hpct_model_frozen(model, &frozen);
        assert_int_equal(states, 0);
        assert_int_equal(frozen, 3 * HPCT_BACKEND_ARENA_ALIGN);
        values_have_rows(model);
        assert_int_equal(hpct_model_set_trainable(model, "scale", false), HPCT_OK);
        assert_int_equal(hpct_model_set_trainable(model, "scale", true), HPCT_OK);
    }
    hpct_model_free(model);
}
