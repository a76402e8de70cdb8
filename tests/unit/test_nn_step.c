/* The step on whole models: backends against each other, arenas, rebuilding, misuse, allocations.
 */
#include "nn/rng.h"
#include "nn/run.h"
#include "tests/unit/unit.h"

#include <math.h>

static long allocations; /* made by nn's own code */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

void *__wrap_malloc(size_t size)
{
    allocations++;
    return __real_malloc(size);
}
void *__wrap_calloc(size_t count, size_t size)
{
    allocations++;
    return __real_calloc(count, size);
}
void *__wrap_realloc(void *memory, size_t size)
{
    allocations++;
    return __real_realloc(memory, size);
}
void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    allocations++;
    return __real_aligned_alloc(alignment, size);
}

/* Something of every layer: oneDNN's convolution and the direct one, odd channels, padding. */
static hpct_model *small_model(bool softmax)
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

static void compile(hpct_model *model, hpct_loss loss, double momentum)
{
    hpct_optimizer sgd = {.kind = HPCT_SGD, .learning_rate = 0.1, .momentum = momentum};
    assert_int_equal(hpct_model_compile(model, loss, &sgd), HPCT_OK);
    assert_int_equal(hpct_model_initialize(model, 3), HPCT_OK);
}

static void build(hpct_model *model, hpct_build_options options)
{
    static const int batches[] = {8, 5};
    if (options.batch_sizes == NULL) {
        options.batch_sizes = batches;
        options.num_batch_sizes = 2;
    }
    if (hpct_model_build(model, &options) != HPCT_OK)
        fail_msg("%s", hpct_last_error());
}

static hpct_model *ready(const char *backend, double momentum)
{
    hpct_model *model = small_model(true);
    compile(model, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY, momentum);
    build(model, (hpct_build_options){.backend = backend});
    return model;
}

/* Labels follow from the picture, so that there is something to learn. */
static void fill(hpct_model *model, int n, uint32_t t)
{
    hpct_shape shape = hpct_model_input_shape(model);
    size_t size = hpct_shape_count(&shape);
    int classes = hpct_model_output_shape(model).size[0];
    for (int s = 0; s < n; s++) {
        int label = (int) (hpct_uniform(1, t, (uint64_t) s) * (float) classes);
        hpct_model_labels(model)[s] = label;
        for (size_t i = 0; i < size; i++)
            hpct_model_input(model)[(size_t) s * size + i] =
                hpct_uniform(2, t, (uint64_t) s * size + i) *
                (i % (size_t) classes == (size_t) label ? 2 : 1);
    }
}

/* One of every kind, with different clippings, schedules and accumulations. */
static const hpct_optimizer optimizers[] = {
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
};
#define NUM_OPTIMIZERS (sizeof optimizers / sizeof *optimizers)

static hpct_model *ready_with(const char *backend, const hpct_optimizer *optimizer)
{
    hpct_model *model = small_model(true);
    assert_int_equal(hpct_model_compile(model, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY, optimizer),
                     HPCT_OK);
    assert_int_equal(hpct_model_initialize(model, 3), HPCT_OK);
    build(model, (hpct_build_options){.backend = backend});
    return model;
}

static double step(hpct_model *model, int n, uint32_t t)
{
    bool due;
    hpct_batch_sums sums;
    fill(model, n, t);
    assert_int_equal(hpct_model_forward(model, n, true), HPCT_OK);
    assert_int_equal(hpct_model_loss(model, n, 1.0f / (float) n, &sums), HPCT_OK);
    assert_int_equal(hpct_model_backward(model, n), HPCT_OK);
    assert_int_equal(hpct_model_accumulate(model, &due), HPCT_OK);
    if (due)
        assert_int_equal(hpct_model_update(model), HPCT_OK);
    return sums.loss / n;
}

static void assert_same_weights(const hpct_model *a, const hpct_model *b, float tolerance)
{
    assert_int_equal(a->num_params, b->num_params);
    for (int i = 0; i < a->num_params; i++) {
        size_t count = hpct_shape_count(&a->params[i].shape);
        float *x = malloc(count * sizeof *x), *y = malloc(count * sizeof *y);
        assert_int_equal(hpct_param_get(a, i, x), HPCT_OK);
        assert_int_equal(hpct_param_get(b, i, y), HPCT_OK);
        for (size_t k = 0; k < count; k++) {
            if (!(fabsf(x[k] - y[k]) <= tolerance))
                fail_msg("%s[%zu]: %g and %g", a->params[i].name, k, (double) x[k], (double) y[k]);
        }
        free(x);
        free(y);
    }
}

static void backends_train_alike(void **state)
{
    (void) state;
    hpct_model *cpu = ready("cpu", 0.5), *ref = ready("ref", 0.5);
    double first = 0, last = 0;
    for (uint32_t t = 0; t < 120; t++) {
        int n = t % 4 == 2 ? 5 : 8; /* four batches again and again */
        double a = step(cpu, n, t % 4), b = step(ref, n, t % 4);
        if (t < 30 && fabs(a - b) > 1e-3 * b) /* rounding grows from step to step */
            fail_msg("step %u: loss %g, reference %g", t, a, b);
        first += t < 10 ? b : 0;
        last += t >= 110 ? b : 0;
    }
    if (last > 0.7 * first) /* it learns */
        fail_msg("loss %g at first, %g at last", first / 10, last / 10);
    hpct_model_free(cpu);
    hpct_model_free(ref);
}

static void mnist_cnn_trains_alike(void **state)
{
    (void) state;
    const char *backends[] = {"cpu", "ref"};
    hpct_model *models[2];
    int batch = 3;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(hpct_model_builtin(&models[i], "mnist-cnn"), HPCT_OK);
        compile(models[i], HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS, 0);
        build(models[i], (hpct_build_options){.backend = backends[i],
                                              .batch_sizes = &batch,
                                              .num_batch_sizes = 1,
                                              .fuse_update = i == 0});
    }
    for (uint32_t t = 0; t < 3; t++) {
        double a = step(models[0], batch, t), b = step(models[1], batch, t);
        assert_true(fabs(a - b) < 1e-4 * b);
    }
    assert_same_weights(models[0], models[1], 1e-5f);
    hpct_model_free(models[0]);
    hpct_model_free(models[1]);
}

static void fused_update_changes_nothing(void **state)
{
    (void) state;
    hpct_model *fused = ready("cpu", 0), *plain = ready("cpu", 0);
    build(fused, (hpct_build_options){.backend = "cpu", .fuse_update = true});
    assert_true(fused->run->num_updates > 1 && plain->run->num_updates == 1);
    for (uint32_t t = 0; t < 10; t++) {
        step(fused, 8, t);
        step(plain, 8, t);
    }
    assert_same_weights(fused, plain, 1e-5f);
    hpct_model_free(fused);
    hpct_model_free(plain);
}

/* Keras: velocity = momentum * velocity - rate * gradient; weight += velocity. */
static void momentum_is_keras(void **state)
{
    (void) state;
    hpct_model *model = ready("cpu", 0.5);
    size_t count;
    float *weights = hpct_model_parameters(model, &count),
          *gradients = hpct_model_gradients(model, &count);
    float before = weights[0], velocity = 0;
    for (uint32_t t = 0; t < 4; t++) {
        step(model, 8, t);
        velocity = 0.5f * velocity - 0.1f * gradients[0];
        before += velocity;
        assert_true(fabsf(weights[0] - before) < 1e-6f && gradients[0] != 0);
    }
    hpct_model_free(model);
}

static void optimizers_train_alike(void **state)
{
    (void) state;
    for (size_t i = 0; i < NUM_OPTIMIZERS; i++) {
        hpct_model *cpu = ready_with("cpu", &optimizers[i]),
                   *ref = ready_with("ref", &optimizers[i]);
        double first = 0, last = 0;
        uint32_t steps = (uint32_t) unit_cases(60);
        for (uint32_t t = 0; t < steps; t++) {
            double a = step(cpu, 8, t % 2), b = step(ref, 8, t % 2);
            if (t < 20 && fabs(a - b) > 1e-3 * b)
                fail_msg("%s, step %u: loss %g, reference %g",
                         hpct_optimizer_name(optimizers[i].kind), t, a, b);
            first += t < 4 ? b : 0;
            last += t >= 56 ? b : 0;
        }
        if (steps == 60 && last > 0.8 * first)
            fail_msg("%s: loss %g at first, %g at last", hpct_optimizer_name(optimizers[i].kind),
                     first / 4, last / 4);
        hpct_model_free(cpu);
        hpct_model_free(ref);
    }
}

/* Two equal batches accumulated are one: nothing moves at the first, and the second moves by the
 * mean of both; the learning rate goes on with each batch. */
static void accumulation_takes_the_mean(void **state)
{
    (void) state;
    hpct_optimizer optimizer = {.learning_rate = 0.25,
                                .momentum = 0.5,
                                .gradient_accumulation_steps = 3,
                                .schedule = {.kind = HPCT_PIECEWISE_CONSTANT,
                                             .num_boundaries = 1,
                                             .boundaries = {2},
                                             .values = {0.1, 0.05}}};
    hpct_model *three = ready_with("cpu", &optimizer), *one = ready("cpu", 0.5),
               *first = ready("cpu", 0.5);
    for (uint32_t t = 0; t < 3; t++) {
        assert_same_weights(three, first, 0);
        assert_true(hpct_model_learning_rate(three) == 0.1);
        step(three, 8, 4);
    }
    assert_true(hpct_model_learning_rate(three) == 0.05);
    step(one, 8, 4);
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
static void clipping_is_keras(void **state)
{
    (void) state;
    for (int which = 0; which < 3; which++) {
        hpct_optimizer optimizer = {.learning_rate = 1};
        *(which == 0   ? &optimizer.clipvalue
          : which == 1 ? &optimizer.clipnorm
                       : &optimizer.global_clipnorm) = 0.3;
        hpct_model *model = ready_with("cpu", &optimizer);
        size_t count;
        float *weights = hpct_model_parameters(model, &count),
              *gradients = hpct_model_gradients(model, &count);
        float *moved = malloc(count * sizeof *moved);
        memcpy(moved, weights, count * sizeof *moved);
        step(model, 8, 0);
        for (size_t i = 0; i < count; i++)
            moved[i] -= weights[i];
        double all = norm_of(gradients, count);
        assert_true(all > 0.3);
        int clipped = 0;
        for (int p = 0; p < model->num_params; p++) {
            const hpct_param *param = &model->params[p];
            size_t at = model->run->param_offsets[p], /* with the layout's padding */
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
        free(moved);
        hpct_model_free(model);
    }
}

/* Through another backend and a build without optimizer slots, in the middle of an accumulation
 * and of Adam's count. */
static void rebuilding_keeps_the_optimizer(void **state)
{
    (void) state;
    for (size_t i = 0; i < NUM_OPTIMIZERS; i++) {
        hpct_model *moved = ready_with("cpu", &optimizers[i]),
                   *stayed = ready_with("cpu", &optimizers[i]);
        for (uint32_t t = 0; t < 8; t++) {
            step(moved, 8, t);
            step(stayed, 8, t);
            if (t == 2)
                build(moved, (hpct_build_options){.backend = "cpu", .inference_only = true});
            if (t % 2 == 0)
                build(moved, (hpct_build_options){.backend = t < 4 ? "ref" : "cpu"});
            assert_same_weights(moved, stayed, 1e-4f);
            assert_true(hpct_model_learning_rate(moved) == hpct_model_learning_rate(stayed));
        }
        hpct_model_free(moved);
        hpct_model_free(stayed);
    }
}

/* Compiling anew, as in Keras, begins with a new optimizer but the same weights. */
static void compiling_forgets_the_optimizer(void **state)
{
    (void) state;
    hpct_optimizer adam = {.kind = HPCT_ADAM};
    hpct_model *model = ready("cpu", 0.9), *same = ready("cpu", 0.9);
    step(model, 8, 0);
    step(same, 8, 0);
    for (int i = 0; i < 2; i++) {
        hpct_optimizer other = {.learning_rate = 0.1, .momentum = 0.9};
        assert_int_equal(hpct_model_compile(model, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY,
                                            i == 0 ? &adam : &other),
                         HPCT_OK);
        build(model, (hpct_build_options){.backend = "cpu"});
        assert_same_weights(model, same, 0);
    }
    size_t count;
    hpct_model_parameters(model, &count);
    assert_true(norm_of(model->run->slot[0], count) == 0);
    assert_true(norm_of(same->run->slot[0], count) > 0);
    hpct_model_free(model);
    hpct_model_free(same);
}

/* Through another backend, other batch sizes, and a build without optimizer slots. */
static void rebuilding_keeps_weights_and_velocity(void **state)
{
    (void) state;
    hpct_model *moved = ready("cpu", 0.9), *stayed = ready("cpu", 0.9);
    const char *backends[] = {"ref", "cpu", "cpu"};
    for (uint32_t t = 0; t < 12; t++) {
        step(moved, 8, t);
        step(stayed, 8, t);
        if (t % 4 != 3)
            continue;
        int batch = 3 + (int) t;
        build(moved, (hpct_build_options){.backend = "cpu",
                                          .inference_only = true,
                                          .batch_sizes = &batch,
                                          .num_batch_sizes = 1});
        build(moved, (hpct_build_options){.backend = backends[t / 4], .plain_layout = t > 6});
        assert_same_weights(moved, stayed, 1e-4f);
    }
    step(moved, 8, 20);
    step(stayed, 8, 20);
    assert_same_weights(moved, stayed, 1e-4f);
    assert_int_equal(hpct_model_initialize(moved, 3), HPCT_OK); /* a fresh start */
    hpct_model *fresh = ready("cpu", 0.9);
    step(moved, 8, 0);
    step(fresh, 8, 0);
    assert_same_weights(moved, fresh, 1e-5f);
    hpct_model_free(moved);
    hpct_model_free(stayed);
    hpct_model_free(fresh);
}

static void arenas_are_as_promised(void **state)
{
    (void) state;
    hpct_model *model = ready("cpu", 0.9), *other = ready("ref", 0.9);
    size_t count, same;
    float *weights = hpct_model_parameters(model, &count);
    float *gradients = hpct_model_gradients(model, &same);
    assert_true(count == same && count >= hpct_model_count_parameters(model));
    assert_true((uintptr_t) weights % 64 == 0 && (uintptr_t) gradients % 64 == 0);
    for (int i = 1; i < model->num_params; i++) /* last layer first */
        assert_true(model->params[i].node == model->params[i - 1].node ||
                    model->run->param_offsets[i] < model->run->param_offsets[i - 1]);
    for (size_t i = 0; i < HPCT_ARENA_TAIL; i++)
        gradients[count + i] = (float) i + 1;
    for (uint32_t t = 0; t < 5; t++)
        step(model, 8, t);
    size_t numbers = 0;
    for (size_t i = 0; i < count; i++)
        numbers += weights[i] != 0;
    assert_true(numbers <= hpct_model_count_parameters(model)); /* padding stays zero */
    for (size_t i = 0; i < HPCT_ARENA_TAIL; i++)
        assert_true(gradients[count + i] == (float) i + 1);
    assert_true(hpct_model_layout_fingerprint(model) != hpct_model_layout_fingerprint(other));
    uint64_t before = hpct_model_layout_fingerprint(model);
    build(model, (hpct_build_options){.backend = "cpu"});
    assert_true(hpct_model_layout_fingerprint(model) == before);
    hpct_model_free(model);
    hpct_model_free(other);
}

/* What an earlier step left in any buffer must not matter. */
static void nothing_stale_is_read(void **state)
{
    (void) state;
    hpct_model *dirty = ready("cpu", 0.9), *clean = ready("cpu", 0.9);
    for (uint32_t t = 0; t < 4; t++) {
        memset(dirty->run->block, 0xff, dirty->run->block_bytes); /* NaN */
        size_t count;
        float *gradients = hpct_model_gradients(dirty, &count);
        for (int i = 0; i < dirty->num_params; i++)
            memset(gradients + dirty->run->param_offsets[i], 0xff,
                   hpct_shape_count(&dirty->params[i].shape) * sizeof *gradients);
        step(dirty, 8, t);
        step(clean, 8, t);
    }
    assert_same_weights(dirty, clean, 0);
    hpct_model_free(dirty);
    hpct_model_free(clean);
}

/* The loss over perturbed weights, against the gradient arena: finds buffers that overlap. */
static void whole_gradient_is_numerical(void **state)
{
    (void) state;
    hpct_model *model = ready("ref", 0);
    hpct_batch_sums sums;
    size_t count;
    float *weights = hpct_model_parameters(model, &count);
    step(model, 8, 1);
    fill(model, 8, 2);
    hpct_model_forward(model, 8, true);
    hpct_model_loss(model, 8, 1, &sums);
    assert_int_equal(hpct_model_backward(model, 8), HPCT_OK);
    float *gradients = hpct_model_gradients(model, &count), largest = 0;
    for (size_t i = 0; i < count; i++)
        largest = fmaxf(largest, fabsf(gradients[i]));
    size_t off = 0, probed = 0, tries = (size_t) unit_cases((int) (count / 7));
    for (size_t i = 0; i < count; i += count / tries) {
        double loss[2];
        float kept = weights[i];
        for (int k = 0; k < 2; k++) {
            weights[i] = kept + (k == 0 ? 1e-3f : -1e-3f);
            hpct_model_forward(model, 8, false);
            hpct_model_loss(model, 8, 0, &sums);
            loss[k] = sums.loss;
        }
        weights[i] = kept;
        double numerical = (loss[0] - loss[1]) / 2e-3;
        off += fabs(numerical - (double) gradients[i]) > 0.01 * (double) largest;
        probed++;
    }
    assert_true(probed >= tries && off <= probed / 20); /* some cross a kink of ReLU or a maximum */
    hpct_model_free(model);
}

static void softmax_and_its_loss_are_fused(void **state)
{
    (void) state;
    hpct_model *models[2] = {small_model(true), small_model(false)};
    compile(models[0], HPCT_SPARSE_CATEGORICAL_CROSSENTROPY, 0);
    compile(models[1], HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS, 0);
    for (int i = 0; i < 2; i++)
        build(models[i], (hpct_build_options){.backend = "cpu"});
    for (uint32_t t = 0; t < 3; t++)
        assert_true(step(models[0], 8, t) == step(models[1], 8, t));
    assert_same_weights(models[0], models[1], 0);
    float sum = 0; /* outputs are probabilities all the same */
    for (int i = 0; i < 4; i++)
        sum += hpct_model_output(models[0])[i];
    assert_true(fabsf(sum - 1) < 1e-6f);
    /* a hopeless sample costs what its logits say, not the 16.1 at which clipping ends */
    for (int i = 0; i < models[0]->num_params; i++) {
        size_t count = hpct_shape_count(&models[0]->params[i].shape);
        float *values = malloc(count * sizeof *values);
        assert_int_equal(hpct_param_get(models[0], i, values), HPCT_OK);
        for (size_t k = 0; k < count; k++)
            values[k] *= 6;
        assert_int_equal(hpct_param_set(models[0], i, values), HPCT_OK);
        free(values);
    }
    hpct_batch_sums sums;
    double most = 0;
    for (int label = 0; label < 4; label++) {
        hpct_model_labels(models[0])[0] = label;
        assert_int_equal(hpct_model_forward(models[0], 8, false), HPCT_OK);
        for (int s = 1; s < 8; s++)
            hpct_model_labels(models[0])[s] = label;
        assert_int_equal(hpct_model_loss(models[0], 8, 0, &sums), HPCT_OK);
        most = fmax(most, sums.loss / 8);
    }
    assert_true(isfinite(most) && most > 50);
    hpct_model_free(models[0]);
    hpct_model_free(models[1]);
}

static void probabilities_need_no_softmax_layer(void **state)
{
    (void) state;
    hpct_model *model = hpct_model_new("m", HPCT_SHAPE(6));
    hpct_model_add_dense(model, &(hpct_dense){.units = 3, .activation = HPCT_RELU});
    compile(model, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY, 0);
    build(model, (hpct_build_options){.backend = "cpu"});
    for (uint32_t t = 0; t < 3; t++)
        assert_true(isfinite(step(model, 8, t)));
    hpct_model_free(model);
}

/* The trainer may look at it after the update. */
static void output_stays_until_the_next_forward(void **state)
{
    (void) state;
    hpct_model *model = ready("cpu", 0.9);
    float kept[8 * 4];
    hpct_batch_sums sums;
    fill(model, 8, 1);
    assert_int_equal(hpct_model_forward(model, 8, true), HPCT_OK);
    memcpy(kept, hpct_model_output(model), sizeof kept);
    assert_int_equal(hpct_model_loss(model, 8, 1, &sums), HPCT_OK);
    assert_int_equal(hpct_model_backward(model, 8), HPCT_OK);
    assert_int_equal(hpct_model_update(model), HPCT_OK);
    assert_memory_equal(kept, hpct_model_output(model), sizeof kept);
    hpct_model_free(model);
}

static void correct_samples_are_counted(void **state)
{
    (void) state;
    hpct_model *model = ready("cpu", 0);
    hpct_batch_sums sums;
    fill(model, 8, 1);
    assert_int_equal(hpct_model_forward(model, 8, false), HPCT_OK);
    for (int s = 0; s < 8; s++) {
        const float *p = hpct_model_output(model) + s * 4;
        int best = 0;
        for (int i = 1; i < 4; i++)
            best = p[i] > p[best] ? i : best;
        hpct_model_labels(model)[s] = s < 5 ? best : (best + 1) % 4;
    }
    assert_int_equal(hpct_model_loss(model, 8, 0, &sums), HPCT_OK);
    assert_int_equal(sums.correct, 5);
    hpct_model_free(model);
}

static void misuse_is_refused(void **state)
{
    (void) state;
    int zero = 0, two = 2;
    hpct_batch_sums sums;
    hpct_model *model = small_model(true);
    hpct_build_options options = {.backend = "cpu", .batch_sizes = &two, .num_batch_sizes = 1};
    assert_int_equal(hpct_model_build(model, &options), HPCT_ERR_USAGE); /* not compiled */
    assert_int_equal(hpct_model_forward(model, 2, true), HPCT_ERR_USAGE);
    assert_int_equal(hpct_model_update(model), HPCT_ERR_USAGE);
    assert_null(hpct_model_input(model));
    compile(model, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY, 0);
    options.backend = "abacus";
    assert_int_equal(hpct_model_build(model, &options), HPCT_ERR_USAGE);
    assert_string_equal(hpct_last_error(), "there is no backend \"abacus\"; there are: cpu, ref");
    options.backend = "cpu";
    options.batch_sizes = &zero;
    assert_int_equal(hpct_model_build(model, &options), HPCT_ERR_USAGE);
    int huge = 2000000; /* times 8 x 10 x 16 cells */
    options.batch_sizes = &huge;
    assert_int_equal(hpct_model_build(model, &options), HPCT_ERR_USAGE);
    assert_string_equal(hpct_last_error(),
                        "batch size 2000000 is too large for model small: at most 1677721");
    options.num_batch_sizes = 0;
    assert_int_equal(hpct_model_build(model, &options), HPCT_ERR_USAGE);
    options = (hpct_build_options){.backend = "cpu", .batch_sizes = &two, .num_batch_sizes = 1};
    assert_int_equal(hpct_model_build(model, &options), HPCT_OK);
    fill(model, 2, 0);
    assert_int_equal(hpct_model_loss(model, 2, 1, &sums), HPCT_ERR_USAGE); /* no forward */
    assert_int_equal(hpct_model_forward(model, 3, true), HPCT_ERR_USAGE);
    assert_string_equal(hpct_last_error(), "model small was not built for batches of 3");
    assert_int_equal(hpct_model_forward(model, 2, true), HPCT_OK);
    assert_int_equal(hpct_model_loss(model, 2, 0, &sums), HPCT_OK);
    assert_int_equal(hpct_model_backward(model, 2), HPCT_ERR_USAGE); /* no scale */
    assert_int_equal(hpct_model_loss(model, 2, 1, &sums), HPCT_OK);
    assert_int_equal(hpct_model_backward(model, 2), HPCT_OK);
    assert_int_equal(hpct_model_backward(model, 2), HPCT_ERR_USAGE); /* consumed */
    options.inference_only = true;
    assert_int_equal(hpct_model_build(model, &options), HPCT_OK);
    fill(model, 2, 0);
    assert_int_equal(hpct_model_forward(model, 2, true), HPCT_ERR_USAGE);
    assert_int_equal(hpct_model_forward(model, 2, false), HPCT_OK);
    assert_int_equal(hpct_model_loss(model, 2, 1, &sums), HPCT_ERR_USAGE);
    assert_int_equal(hpct_model_loss(model, 2, 0, &sums), HPCT_OK);
    assert_int_equal(hpct_model_update(model), HPCT_ERR_USAGE);
    hpct_model_free(model);
}

static void inference_needs_less_memory(void **state)
{
    (void) state;
    hpct_model *model = ready("cpu", 0);
    size_t training = model->run->block_bytes;
    build(model, (hpct_build_options){.backend = "cpu", .inference_only = true});
    assert_true(model->run->block_bytes < training);
    size_t count;
    assert_null(hpct_model_gradients(model, &count));
    hpct_model_free(model);
}

static void the_step_allocates_nothing(void **state)
{
    (void) state;
    for (size_t i = 0; i < NUM_OPTIMIZERS; i++) {
        hpct_model *model = ready_with("cpu", &optimizers[i]);
        step(model, 8, 0);
        long before = allocations;
        for (uint32_t t = 0; t < 3; t++) {
            step(model, 8, t);
            step(model, 5, t);
        }
        assert_int_equal(allocations, before);
        build(model, (hpct_build_options){.backend = "cpu"});
        assert_true(allocations > before); /* the count counts */
        hpct_model_free(model);
    }
}

/* Branches and normalization: gradients that are added, through memory of their own as well. */
static hpct_model *residual_model(void)
{
    hpct_model *m = hpct_model_new("residual", HPCT_SHAPE(8, 8, 3));
    hpct_conv2d conv = {.filters = 8, .kernel = {3, 3}, .padding = HPCT_SAME, .no_bias = true};
    hpct_model_add_conv2d(m, &conv);
    for (int i = 0; i < 2; i++) {
        int shortcut = hpct_model_head(m);
        hpct_model_add_batch_normalization(m, &(hpct_batch_normalization){0});
        hpct_model_add_activation(m, HPCT_RELU);
        int preact = hpct_model_head(m);
        hpct_model_add_conv2d(m, &conv);
        int left = hpct_model_head(m);
        hpct_model_set_head(m, preact);
        hpct_model_add_conv2d(m, &conv);
        hpct_model_add_add(m, (int[]){shortcut, left, hpct_model_head(m)}, 3);
    }
    hpct_model_add_global_average_pool2d(m);
    hpct_model_add_dense(m, &(hpct_dense){.units = 4, .activation = HPCT_SOFTMAX});
    return m;
}

static void a_residual_step_allocates_nothing(void **state)
{
    (void) state;
    hpct_model *models[2];
    double losses[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        models[i] = residual_model();
        compile(models[i], HPCT_SPARSE_CATEGORICAL_CROSSENTROPY, 0.9);
        build(models[i], (hpct_build_options){.backend = i == 0 ? "cpu" : "ref"});
        step(models[i], 8, 0);
        long before = allocations;
        for (uint32_t t = 0; t < 4; t++)
            losses[i] += step(models[i], t % 2 == 0 ? 5 : 8, t);
        assert_int_equal(allocations, before);
    }
    assert_true(fabs(losses[0] - losses[1]) < 1e-3 * losses[1]);
    hpct_model_free(models[0]);
    hpct_model_free(models[1]);
}

static void threads_can_be_set(void **state)
{
    (void) state;
    int threads = hpct_cpu_threads();
    hpct_model *one = ready("cpu", 0), *three = ready("cpu", 0);
    for (uint32_t t = 0; t < 3; t++) {
        hpct_cpu_set_threads(1);
        assert_int_equal(hpct_cpu_threads(), 1);
        double a = step(one, 8, t);
        hpct_cpu_set_threads(3);
        assert_true(fabs(step(three, 8, t) - a) < 1e-4 * a);
    }
    assert_same_weights(one, three, 1e-4f);
    hpct_cpu_set_threads(threads);
    hpct_model_free(one);
    hpct_model_free(three);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(backends_train_alike),
        cmocka_unit_test(mnist_cnn_trains_alike),
        cmocka_unit_test(fused_update_changes_nothing),
        cmocka_unit_test(momentum_is_keras),
        cmocka_unit_test(optimizers_train_alike),
        cmocka_unit_test(accumulation_takes_the_mean),
        cmocka_unit_test(clipping_is_keras),
        cmocka_unit_test(rebuilding_keeps_the_optimizer),
        cmocka_unit_test(compiling_forgets_the_optimizer),
        cmocka_unit_test(rebuilding_keeps_weights_and_velocity),
        cmocka_unit_test(arenas_are_as_promised),
        cmocka_unit_test(nothing_stale_is_read),
        cmocka_unit_test(whole_gradient_is_numerical),
        cmocka_unit_test(softmax_and_its_loss_are_fused),
        cmocka_unit_test(probabilities_need_no_softmax_layer),
        cmocka_unit_test(output_stays_until_the_next_forward),
        cmocka_unit_test(correct_samples_are_counted),
        cmocka_unit_test(misuse_is_refused),
        cmocka_unit_test(inference_needs_less_memory),
        cmocka_unit_test(the_step_allocates_nothing),
        cmocka_unit_test(a_residual_step_allocates_nothing),
        cmocka_unit_test(threads_can_be_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
