/* Training whole models, step after step: backends against each other, optimizers, accumulation and
 * clipping as Keras has them, building and compiling anew in the middle. */
#include "nn/plan/run.h"
#include "tests/unit/nn/nn_small.h"

#include <math.h>

TEST(backends_train_alike)
{
    hpct_model *cpu = small_ready(small_backend(), 0.5), *ref = small_ready("ref", 0.5);
    const uint32_t steps = (uint32_t) unit_cases(120);
    double first = 0, last = 0;
    for (uint32_t t = 0; t < steps; t++) {
        int n = t % 4 == 2 ? 5 : 8; /* four batches again and again */
        double a = small_step(cpu, n, t % 4), b = small_step(ref, n, t % 4);
        if (t < 30 && fabs(a - b) > 1e-3 * b) /* rounding grows from step to step */
            fail_msg("step %u: loss %g, reference %g", t, a, b);
        first += t < 10 ? b : 0;
        last += t >= 110 ? b : 0;
    }
    if (steps >= 120 && last > 0.7 * first) /* it learns */
        fail_msg("loss %g at first, %g at last", first / 10, last / 10);
    hpct_model_free(cpu);
    hpct_model_free(ref);
}

TEST(mnist_cnn_trains_alike)
{
    const char *backends[] = {small_backend(), "ref"};
    hpct_model *models[2];
    int batch = 3;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(hpct_model_builtin(&models[i], "mnist-cnn"), HPCT_OK);
        small_compile(models[i], HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS, 0);
        small_build(models[i], (hpct_run_build_options){.backend = backends[i],
                                                        .batch_sizes = &batch,
                                                        .num_batch_sizes = 1,
                                                        .fuse_update = i == 0});
    }
    for (uint32_t t = 0; t < (uint32_t) unit_cases(3); t++) {
        double a = small_step(models[0], batch, t), b = small_step(models[1], batch, t);
        assert_true(fabs(a - b) < 1e-4 * b);
    }
    assert_same_weights(models[0], models[1], 1e-5f);
    hpct_model_free(models[0]);
    hpct_model_free(models[1]);
}

/* A first convolution and the pooling behind it: as one operation on the cpu backend where the
 * windows lie side by side; into channels last and into blocks. */
TEST(merged_pooling_trains_alike)
{
    const char *backends[] = {"cpu", "ref"};
    const struct {
        int filters, kernel, pool[2], strides[2];
        bool relu, padded, again, merges;
    } cases[] = {
        {16, 3, {2, 2}, {0, 0}, true, false, false, true},
        {32, 3, {2, 2}, {0, 0}, true, false, true, true},
        {16, 2, {2, 2}, {0, 0}, false, false, true, true}, /* cells are left over */
        {48, 4, {3, 1}, {0, 0}, true, false, true, true},
        {16, 3, {1, 4}, {0, 0}, false, false, false, true},
        {16, 3, {2, 2}, {1, 2}, true, false, true, false},
        {16, 2, {2, 2}, {0, 0}, true, true, true, false},
        {8, 3, {2, 2}, {0, 0}, true, false, false, false},
    };
    size_t num = getenv("HPC_TRAIN_SHORT") != NULL ? 3 : sizeof cases / sizeof *cases;
    for (size_t c = 0; c < num; c++) {
        hpct_model *models[2];
        for (int i = 0; i < 2; i++) {
            hpct_model *m = models[i] = hpct_model_new("pooled", HPCT_SHAPE(14, 12, 2));
            hpct_model_add_conv2d(
                m, &(hpct_conv2d){.filters = cases[c].filters,
                                  .kernel = {cases[c].kernel, 3},
                                  .activation = cases[c].relu ? HPCT_RELU : HPCT_LINEAR});
            hpct_model_add_max_pool2d(
                m, &(hpct_max_pool2d){.pool = {cases[c].pool[0], cases[c].pool[1]},
                                      .strides = {cases[c].strides[0], cases[c].strides[1]},
                                      .padding = cases[c].padded ? HPCT_SAME : HPCT_VALID});
            if (cases[c].again) { /* from blocks, where the processor prefers these, to blocks */
                hpct_model_add_conv2d(m, &(hpct_conv2d){.filters = 16, .kernel = {2, 2}});
                hpct_model_add_max_pool2d(m, &(hpct_max_pool2d){.pool = {2, 1}});
            }
            hpct_model_add_flatten(m);
            hpct_model_add_dense(m, &(hpct_dense){.units = 5});
            small_compile(m, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS, 0);
            small_build(m, (hpct_run_build_options){.backend = backends[i]});
            bool merged = false;
            for (int k = 0; k < m->num_nodes; k++)
                merged = merged || m->run->nodes[k].fused_away;
            assert_true(merged == (i == 0 && cases[c].merges));
        }
        for (uint32_t t = 0; t < 3; t++) {
            int n = t == 1 ? 5 : 8;
            double a = small_step(models[0], n, t), b = small_step(models[1], n, t);
            if (fabs(a - b) > 1e-5 * b)
                fail_msg("case %zu, step %u: loss %g, reference %g", c, t, a, b);
        }
        assert_same_weights(models[0], models[1], 1e-5f);
        hpct_model_free(models[0]);
        hpct_model_free(models[1]);
    }
}

/* Gradients that backward does not store are memory of a device all the same: one arena. */
TEST(a_plan_has_what_a_device_takes)
{
    hpct_run_memory_plan fused, plain;
    hpct_model *model = small_ready(small_backend(), 0);
    int batch = 8;
    hpct_run_build_options options = {
        .backend = small_backend(), .batch_sizes = &batch, .num_batch_sizes = 1};
    assert_int_equal(hpct_model_plan(model, &options, &plain), HPCT_OK);
    options.fuse_update = true;
    assert_int_equal(hpct_model_plan(model, &options, &fused), HPCT_OK);
    if (model->run->backend->device != NULL)
        assert_int_equal(fused.gradients, plain.gradients);
    else
        assert_true(fused.gradients < plain.gradients);
    hpct_model_free(model);
}

TEST(fused_update_changes_nothing)
{
    hpct_model *fused = small_ready("cpu", 0), *plain = small_ready("cpu", 0);
    small_build(fused, (hpct_run_build_options){.backend = "cpu", .fuse_update = true});
    assert_true(fused->run->arenas.num_updates > 1 && plain->run->arenas.num_updates == 1);
    for (uint32_t t = 0; t < 10; t++) {
        small_step(fused, 8, t);
        small_step(plain, 8, t);
    }
    assert_same_weights(fused, plain, 1e-5f);
    hpct_model_free(fused);
    hpct_model_free(plain);
}

/* The fused model's gradients are the other's, where they are shown; its weights do not change. */
TEST(gradients_of_a_fused_update_are_shown)
{
    hpct_model *fused = small_ready("cpu", 0), *shown = small_ready("cpu", 0);
    small_build(fused, (hpct_run_build_options){.backend = "cpu", .fuse_update = true});
    small_build(shown, (hpct_run_build_options){.backend = "cpu", .fuse_update = true});
    expect_shown_gradients(fused, shown, small_ready("cpu", 0));
}

/* Keras: velocity = momentum * velocity - rate * gradient; weight += velocity. */
TEST(momentum_is_keras)
{
    hpct_model *model = small_ready(small_backend(), 0.5);
    size_t count;
    float *weights = hpct_model_parameters(model, &count),
          *gradients = hpct_model_gradients(model, &count);
    float before, velocity = 0, weight, gradient;
    assert_int_equal(hpct_model_read(model, &before, weights, 1), HPCT_OK);
    for (uint32_t t = 0; t < 4; t++) {
        small_step(model, 8, t);
        assert_int_equal(hpct_model_read(model, &weight, weights, 1), HPCT_OK);
        assert_int_equal(hpct_model_read(model, &gradient, gradients, 1), HPCT_OK);
        velocity = 0.5f * velocity - 0.1f * gradient;
        before += velocity;
        assert_true(fabsf(weight - before) < 1e-6f && gradient != 0);
    }
    hpct_model_free(model);
}

TEST(optimizers_train_alike)
{
    for (size_t i = 0; i < SMALL_OPTIMIZERS; i++) {
        hpct_model *cpu = small_ready_with(small_backend(), &small_optimizers[i]),
                   *ref = small_ready_with("ref", &small_optimizers[i]);
        double first = 0, last = 0;
        uint32_t steps = (uint32_t) unit_cases(60);
        for (uint32_t t = 0; t < steps; t++) {
            double a = small_step(cpu, 8, t % 2), b = small_step(ref, 8, t % 2);
            if (t < 20 && fabs(a - b) > 1e-3 * b)
                fail_msg("%s, step %u: loss %g, reference %g",
                         hpct_optimizer_name(small_optimizers[i].kind), t, a, b);
            first += t < 4 ? b : 0;
            last += t >= 56 ? b : 0;
        }
        if (steps == 60 && last > 0.8 * first)
            fail_msg("%s: loss %g at first, %g at last",
                     hpct_optimizer_name(small_optimizers[i].kind), first / 4, last / 4);
        hpct_model_free(cpu);
        hpct_model_free(ref);
    }
}

/* Two equal batches accumulated are one: nothing moves at the first, and the second moves by the
 * mean of both; the learning rate goes on with each batch. */
TEST(accumulation_takes_the_mean)
{
    hpct_optimizer optimizer = {.learning_rate = 0.25,
                                .momentum = 0.5,
                                .gradient_accumulation_steps = 3,
                                .schedule = {.kind = HPCT_PIECEWISE_CONSTANT,
                                             .num_boundaries = 1,
                                             .boundaries = {2},
                                             .values = {0.1, 0.05}}};
    hpct_model *three = small_ready_with(small_backend(), &optimizer),
               *one = small_ready(small_backend(), 0.5), *first = small_ready(small_backend(), 0.5);
    for (uint32_t t = 0; t < 3; t++) {
        assert_same_weights(three, first, 0);
        assert_true(hpct_model_learning_rate(three) == 0.1);
        small_step(three, 8, 4);
    }
    assert_true(hpct_model_learning_rate(three) == 0.05);
    small_step(one, 8, 4);
    assert_same_weights(three, one, 1e-6f);
    hpct_model_free(three);
    hpct_model_free(one);
    hpct_model_free(first);
}

static double norm_of(const float *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (double) values[i] * (double) values[i];
    return sqrt(sum);
}

/* What plain SGD with rate 1 moved each parameter by is the clipped gradient. */
/* The caller frees it. */
static float *copy_of(const hpct_model *model, const float *arena, size_t count)
{
    float *copy = malloc(count * sizeof *copy);
    assert_non_null(copy);
    assert_int_equal(hpct_model_read(model, copy, arena, count), HPCT_OK);
    return copy;
}

TEST(clipping_is_keras)
{
    for (int which = 0; which < 3; which++) {
        hpct_optimizer optimizer = {.learning_rate = 1};
        *(which == 0   ? &optimizer.clipvalue
          : which == 1 ? &optimizer.clipnorm
                       : &optimizer.global_clipnorm) = 0.3;
        hpct_model *model = small_ready_with(small_backend(), &optimizer);
        size_t count;
        hpct_model_parameters(model, &count);
        float *moved = copy_of(model, model->run->arenas.parameters, count);
        small_step(model, 8, 0);
        float *weights = copy_of(model, model->run->arenas.parameters, count),
              *gradients = copy_of(model, model->run->arenas.gradients, count);
        for (size_t i = 0; i < count; i++)
            moved[i] -= weights[i];
        double all = norm_of(gradients, count);
        assert_true(all > 0.3);
        int clipped = 0;
        for (int p = 0; p < model->num_params; p++) {
            const hpct_graph_param *param = &model->params[p];
            size_t at = model->run->arenas.param_offsets[p], /* with the layout's padding */
                size = model->run->nodes[param->node].op->param_floats[param->index];
            double own = norm_of(gradients + at, size);
            clipped += own > 0.3;
            for (size_t i = at; i < at + size; i++) {
                double g = (double) gradients[i];
                double wanted = which == 0   ? fmax(-0.3, fmin(0.3, g))
                                : which == 1 ? g * fmin(1, 0.3 / own)
                                             : g * 0.3 / all;
                if (fabs((double) moved[i] - wanted) > 1e-6)
                    fail_msg("%s: moved by %g, not %g", param->name, (double) moved[i], wanted);
            }
        }
        if (which == 1 && (clipped < 2 || clipped == model->num_params))
            fail_msg("%d of %d were clipped", clipped, model->num_params);
        free(weights);
        free(gradients);
        free(moved);
        hpct_model_free(model);
    }
}

/* Through another backend and a build without optimizer slots, in the middle of an accumulation
 * and of Adam's count. */
/* What a device was sent once is not sent again, until somebody asks where input goes. */
TEST(kept_input_lasts_until_the_next)
{
    hpct_model *model = small_ready(small_backend(), 0.5);
    size_t floats = 8 * hpct_graph_shape_count(&model->tensors[0].shape);
    float *input = hpct_model_input(model), first, other;
    for (size_t i = 0; i < floats; i++)
        input[i] = 0.01f * (float) (i % 50);
    hpct_model_keep_input(model);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(hpct_model_forward(model, 8, false), HPCT_OK);
        other = hpct_model_output(model)[0];
        first = again == 0 ? other : first;
        assert_true(first == other);
    }
    input = hpct_model_input(model);
    for (size_t i = 0; i < floats; i++)
        input[i] = 1 - input[i];
    assert_int_equal(hpct_model_forward(model, 8, false), HPCT_OK);
    assert_true(hpct_model_output(model)[0] != first);
    hpct_model_free(model);
}

TEST(rebuilding_keeps_the_optimizer)
{
    for (size_t i = 0; i < SMALL_OPTIMIZERS; i++) {
        hpct_model *moved = small_ready_with(small_backend(), &small_optimizers[i]),
                   *stayed = small_ready_with(small_backend(), &small_optimizers[i]);
        for (uint32_t t = 0; t < 8; t++) {
            small_step(moved, 8, t);
            small_step(stayed, 8, t);
            if (t == 2)
                small_build(moved, (hpct_run_build_options){.backend = small_backend(),
                                                            .inference_only = true});
            if (t % 2 == 0)
                small_build(moved,
                            (hpct_run_build_options){.backend = t < 4 ? "ref" : small_backend()});
            assert_same_weights(moved, stayed, 1e-4f);
            assert_true(hpct_model_learning_rate(moved) == hpct_model_learning_rate(stayed));
        }
        hpct_model_free(moved);
        hpct_model_free(stayed);
    }
}

/* Compiling anew, as in Keras, begins with a new optimizer but the same weights. */
TEST(compiling_forgets_the_optimizer)
{
    hpct_optimizer adam = {.kind = HPCT_ADAM};
    hpct_model *model = small_ready(small_backend(), 0.9),
               *same = small_ready(small_backend(), 0.9);
    small_step(model, 8, 0);
    small_step(same, 8, 0);
    for (int i = 0; i < 2; i++) {
        hpct_optimizer other = {.learning_rate = 0.1, .momentum = 0.9};
        assert_int_equal(hpct_model_compile(model, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY,
                                            i == 0 ? &adam : &other),
                         HPCT_OK);
        small_build(model, (hpct_run_build_options){.backend = small_backend()});
        assert_same_weights(model, same, 0);
    }
    size_t count;
    hpct_model_parameters(model, &count);
    float *slot = copy_of(model, model->run->arenas.slot[0], count),
          *same_slot = copy_of(same, same->run->arenas.slot[0], count);
    assert_true(norm_of(slot, count) == 0);
    assert_true(norm_of(same_slot, count) > 0);
    free(slot);
    free(same_slot);
    hpct_model_free(model);
    hpct_model_free(same);
}

/* Through another backend, other batch sizes, and a build without optimizer slots. */
TEST(rebuilding_keeps_weights_and_velocity)
{
    hpct_model *moved = small_ready(small_backend(), 0.9),
               *stayed = small_ready(small_backend(), 0.9);
    const char *backends[] = {"ref", small_backend(), small_backend()};
    for (uint32_t t = 0; t < 12; t++) {
        small_step(moved, 8, t);
        small_step(stayed, 8, t);
        if (t % 4 != 3)
            continue;
        int batch = 3 + (int) t;
        small_build(moved, (hpct_run_build_options){.backend = small_backend(),
                                                    .inference_only = true,
                                                    .batch_sizes = &batch,
                                                    .num_batch_sizes = 1});
        small_build(moved,
                    (hpct_run_build_options){.backend = backends[t / 4], .plain_layout = t > 6});
        assert_same_weights(moved, stayed, 1e-4f);
    }
    small_step(moved, 8, 20);
    small_step(stayed, 8, 20);
    assert_same_weights(moved, stayed, 1e-4f);
    assert_int_equal(hpct_model_initialize(moved, 3), HPCT_OK); /* a fresh start */
    hpct_model *fresh = small_ready(small_backend(), 0.9);
    small_step(moved, 8, 0);
    small_step(fresh, 8, 0);
    assert_same_weights(moved, fresh, 1e-5f);
    hpct_model_free(moved);
    hpct_model_free(stayed);
    hpct_model_free(fresh);
}
