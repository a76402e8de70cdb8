/* mirrored and central-storage: whatever the number of replicas, losses, weights, moving statistics
 * and evaluations are one replica's; where weights lie; what memory they take; that a step
 * allocates nothing. */
#include "agent/rank/context.h"
#include "agent/rank/threads.h"
#include "agent/strategies/strategies.h"
#include "agent/strategy/replicas/replica_set.h"
#include "nn/run/run.h"
#include "nn/run/step.h"
#include "tests/unit/allocations.h"
#include "tests/unit/unit.h"

#include <math.h>

#define SAMPLE (5 * 5 * 3) /* floats: parts do not begin at multiples of 64 bytes */
#define MOST 8
#define STEPS 6

/* ---- a small model with all that could depend on who computes a sample ---- */

static hpct_context *context;

static int setup(void **state)
{
    setenv("OMP_NUM_THREADS", "2", 0);
    if (hpct_context_open_alone(&context) != HPCT_OK)
        return -1;
    return hpct_rank_threads_set(context) == HPCT_OK ? 0 : -1;
}

static int teardown(void **state)
{
    hpct_context_close(context);
    return 0;
}

static hpct_model *make_model(const hpct_optimizer *optimizer, bool synchronized)
{
    hpct_model *model = hpct_model_new("m", HPCT_SHAPE(5, 5, 3));
    hpct_model_add_random_flip(model, HPCT_FLIP_HORIZONTAL);
    /* The mean takes a bias away again: its gradient would be rounding errors, of which Adam makes
     * steps as large as of any. */
    hpct_model_add_conv2d(
        model,
        &(hpct_conv2d){.filters = 16, .kernel = {3, 3}, .padding = HPCT_SAME, .no_bias = true});
    hpct_model_add_batch_normalization(
        model, &(hpct_batch_normalization){.momentum = 0.8, .synchronized = synchronized});
    hpct_model_add_activation(model, HPCT_TANH);
    hpct_model_add_flatten(model);
    hpct_model_add_dropout(model, 0.3);
    hpct_model_add_dense(model, &(hpct_dense){.units = 11, .activation = HPCT_TANH});
    hpct_model_add_dense(model, &(hpct_dense){.units = 4});
    assert_int_equal(
        hpct_model_compile(model, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS, optimizer),
        HPCT_OK);
    assert_int_equal(hpct_model_initialize(model, 3), HPCT_OK);
    return model;
}

/* ---- a run ---- */

static const int counts[STEPS] = {8, 8, 2, 8, 2, 8}; /* short batches leave replicas without */
static const int sizes[] = {8, 2}, evaluation_sizes[] = {5};

typedef struct outcome {
    double loss[STEPS], evaluated;
    float *values[16]; /* of the parameters */
    size_t count[16];
    int num;
} outcome;

static void open_strategy(hpct_strategy **out, hpct_model *model, const char *name, int replicas)
{
    static hpct_strategy_options options;
    const hpct_strategy_ops *ops;
    options = (hpct_strategy_options){.name = name, .replicas = replicas};
    hpct_strategy_plan plan = {
        .context = context,
        .model = model,
        .batch_sizes = sizes,
        .num_batch_sizes = 2,
        .evaluation_sizes = evaluation_sizes,
        .num_evaluation_sizes = 1,
        .options = &options,
        .keep_gradients = true,
    };
    assert_int_equal(hpct_strategy_find(&ops, &options), HPCT_OK);
    assert_int_equal(ops->open(out, &plan), HPCT_OK);
}

static void fill(hpct_model *model, int step)
{
    float *input = hpct_model_input(model);
    int32_t *labels = hpct_model_labels(model);
    for (int i = 0; i < MOST * SAMPLE; i++)
        input[i] = (float) ((i * 7919 + step * 104729) % 1009) / 1009;
    for (int i = 0; i < MOST; i++)
        labels[i] = (i + step) % 4;
}

static double step(hpct_strategy *strategy, int t)
{
    hpct_strategy_step_sums sums = {0};
    hpct_model_set_position(strategy->model, 9, t, 100);
    fill(strategy->model, t);
    assert_int_equal(hpct_strategy_step(strategy, counts[t], counts[t], &sums), HPCT_OK);
    return sums.loss / counts[t];
}

static double evaluate(hpct_strategy *strategy, hpct_model *model)
{
    hpct_backend_batch_sums sums;
    fill(model, 77);
    assert_int_equal(strategy->ops->gather(strategy), HPCT_OK);
    if (strategy->ops->evaluate != NULL) {
        assert_int_equal(strategy->ops->evaluate(strategy, 5, &sums), HPCT_OK);
    } else {
        assert_int_equal(hpct_model_forward(model, 5, false), HPCT_OK);
        assert_int_equal(hpct_model_loss(model, 5, 0, &sums), HPCT_OK);
    }
    return sums.loss / 5;
}

/* The second half of the steps is made by a strategy that is opened anew. */
static outcome train(const char *name, int replicas, const hpct_optimizer *optimizer,
                     bool synchronized)
{
    outcome out = {0};
    hpct_model *model = make_model(optimizer, synchronized);
    hpct_strategy *strategy;
    for (int half = 0; half < 2; half++) {
        open_strategy(&strategy, model, name, replicas);
        for (int t = half * STEPS / 2; t < (half + 1) * STEPS / 2; t++)
            out.loss[t] = step(strategy, t);
        out.evaluated = evaluate(strategy, model);
        strategy->ops->close(strategy);
    }
    for (out.num = 0; out.num < model->num_params; out.num++) {
        size_t count = hpct_graph_shape_count(&model->params[out.num].shape);
        out.values[out.num] = malloc(count * sizeof(float));
        out.count[out.num] = count;
        assert_int_equal(hpct_run_param_get(model, out.num, out.values[out.num]), HPCT_OK);
    }
    hpct_model_free(model);
    return out;
}

static void free_outcome(outcome *o)
{
    for (int i = 0; i < o->num; i++)
        free(o->values[i]);
}

/* Steps of Adam and LAMB have the size of the rate where a gradient is nearly 0: they get more. */
static void compare(const outcome *one, const outcome *many, double tolerance)
{
    for (int t = 0; t < STEPS; t++)
        assert_true(fabs(one->loss[t] - many->loss[t]) < tolerance * fabs(one->loss[t]));
    assert_true(fabs(one->evaluated - many->evaluated) < tolerance * fabs(one->evaluated));
    assert_int_equal(one->num, many->num);
    for (int i = 0; i < one->num; i++) {
        for (size_t k = 0; k < one->count[i]; k++) {
            double a = (double) one->values[i][k], b = (double) many->values[i][k];
            if (!(fabs(a - b) < tolerance * (1 + fabs(a))))
                fail_msg("parameter %d[%zu]: %g of one replica, %g of several", i, k, a, b);
        }
    }
}

static const hpct_optimizer optimizers[] = {
    {.kind = HPCT_SGD, .learning_rate = 0.05, .momentum = 0.9, .nesterov = true},
    {.kind = HPCT_SGD, .learning_rate = 0.05, .momentum = 0.5, .gradient_accumulation_steps = 2},
    {.kind = HPCT_ADAM, .learning_rate = 0.001, .global_clipnorm = 0.5},
    {.kind = HPCT_LAMB, .learning_rate = 0.001},
    {.kind = HPCT_RMSPROP, .learning_rate = 0.001, .momentum = 0.5, .centered = true},
};

TEST(results_equal_one_replica)
{
    static const struct {
        const char *name;
        int replicas;
    } cases[] = {{"mirrored", 1}, {"mirrored", 2},        {"mirrored", 3},
                 {"mirrored", 8}, {"central-storage", 1}, {"central-storage", 3}};
    for (int o = 0; o < (int) (sizeof optimizers / sizeof *optimizers); o++) {
        outcome one = train("multi-worker-mirrored", 1, &optimizers[o], true);
        assert_true(one.loss[5] != one.loss[0] && isfinite(one.loss[5]));
        for (int c = 0; c < unit_cases(6); c++) {
            outcome many = train(cases[c].name, cases[c].replicas, &optimizers[o], true);
            compare(&one, &many, optimizers[o].kind == HPCT_SGD ? 2e-5 : 1e-3);
            free_outcome(&many);
        }
        free_outcome(&one);
    }
}

/* ---- where weights lie ---- */

TEST(replicas_have_the_same_bits)
{
    for (int o = 0; o < (int) (sizeof optimizers / sizeof *optimizers); o++) {
        hpct_model *model = make_model(&optimizers[o], false);
        hpct_strategy *strategy;
        size_t count;
        open_strategy(&strategy, model, "mirrored", 3);
        for (int t = 0; t < STEPS; t++)
            step(strategy, t);
        const hpct_replicas *set = (hpct_replicas *) strategy;
        const float *first = hpct_model_parameters(set->models[0], &count);
        for (int k = 1; k < 3; k++) {
            const float *other = hpct_model_parameters(set->models[k], &count);
            assert_ptr_not_equal(first, other);
            assert_memory_equal(first, other, count * sizeof *first);
        }
        strategy->ops->close(strategy);
        hpct_model_free(model);
    }
}

TEST(central_storage_has_one_set_of_weights)
{
    hpct_model *model = make_model(&optimizers[0], false);
    hpct_strategy *strategy;
    size_t count;
    open_strategy(&strategy, model, "central-storage", 3);
    const hpct_replicas *set = (hpct_replicas *) strategy;
    for (int k = 1; k < 3; k++)
        assert_ptr_equal(hpct_model_parameters(set->models[0], &count),
                         hpct_model_parameters(set->models[k], &count));
    assert_int_not_equal(hpct_model_update(set->models[1]), HPCT_OK); /* borrowed */
    strategy->ops->close(strategy);
    hpct_model_free(model);
}

static size_t need(const char *name, int replicas, hpct_model *model)
{
    hpct_strategy_options options = {.name = name, .replicas = replicas};
    const hpct_strategy_ops *ops;
    size_t bytes = 0;
    int size = 24;
    hpct_strategy_plan plan = {.context = context,
                               .model = model,
                               .batch_sizes = &size,
                               .num_batch_sizes = 1,
                               .options = &options,
                               .keep_gradients = true};
    assert_int_equal(hpct_strategy_find(&ops, &options), HPCT_OK);
    assert_int_equal(ops->need(&plan, &bytes), HPCT_OK);
    return bytes;
}

TEST(memory_is_planned_for_all_replicas)
{
    hpct_model *model = make_model(&optimizers[0], false); /* momentum: one slot */
    size_t weights = hpct_model_count_trainable(model) * sizeof(float);
    size_t one = need("mirrored", 1, model), three = need("mirrored", 3, model);
    size_t central = need("central-storage", 3, model);
    assert_true(one >= need("multi-worker-mirrored", 1, model));
    assert_true(three > one + 2 * 3 * weights); /* weights, gradients, slot of each */
    assert_true(three - central >= 2 * 2 * weights && three - central < 2 * 2 * weights + 4096);
    hpct_model_free(model);
}

/* ---- statistics of each replica's own ---- */

TEST(moving_statistics_are_a_mean)
{
    hpct_model *model = make_model(&optimizers[0], false);
    hpct_strategy *strategy;
    size_t count;
    open_strategy(&strategy, model, "mirrored", 2);
    step(strategy, 0);
    const hpct_replicas *set = (hpct_replicas *) strategy;
    float *a = hpct_model_states(set->models[0], &count);
    float *b = hpct_model_states(set->models[1], &count), before[2] = {a[0], b[0]};
    assert_true(before[0] != before[1]);
    assert_int_equal(strategy->ops->gather(strategy), HPCT_OK);
    assert_true(fabsf(a[0] - (before[0] + before[1]) / 2) < 1e-6f);
    assert_memory_equal(a, b, count * sizeof *a);
    strategy->ops->close(strategy);
    hpct_model_free(model);
}

/* ---- the step ---- */

TEST(a_step_allocates_nothing)
{
    static const char *const names[] = {"mirrored", "central-storage"};
    for (int i = 0; i < 2; i++) {
        hpct_model *model = make_model(&optimizers[2], true);
        hpct_strategy *strategy;
        open_strategy(&strategy, model, names[i], 3);
        fill(model, 0); /* asks for the input's memory */
        long before = allocations;
        for (int t = 0; t < STEPS; t++)
            step(strategy, t);
        assert_int_equal(allocations, before);
        strategy->ops->close(strategy);
        hpct_model_free(model);
    }
}

TEST(impossible_combinations_are_refused)
{
    const hpct_strategy_ops *ops;
    hpct_strategy_options many = {.name = "mirrored", .replicas = HPCT_MAX_REPLICAS + 1};
    assert_int_equal(hpct_strategy_find(&ops, &many), HPCT_ERR_USAGE);
    many.replicas = -1;
    assert_int_equal(hpct_strategy_find(&ops, &many), HPCT_ERR_USAGE);
    hpct_strategy_options wire = {
        .name = "mirrored", .replicas = 2, .wire = HPCT_WIRE_BF16, .allow_lossy = true};
    hpct_model *model = make_model(&optimizers[0], false);
    hpct_strategy_plan plan = {.context = context,
                               .model = model,
                               .batch_sizes = sizes,
                               .num_batch_sizes = 2,
                               .options = &wire};
    hpct_strategy *strategy = NULL;
    assert_int_equal(hpct_replicas_mirrored.open(&strategy, &plan), HPCT_ERR_USAGE);
    assert_null(strategy);
    hpct_model_free(model);
}

/* ---- cores ---- */

TEST(parts_of_the_cores_are_disjoint)
{
    size_t bytes;
    cpu_set_t *mask = hpct_rank_threads_mask(&bytes);
    assert_non_null(mask);
    cpu_set_t *all = CPU_ALLOC(8 * bytes), *part = CPU_ALLOC(8 * bytes);
    int cores = hpct_rank_threads_cores(mask, bytes);
    for (int parts = 1; parts <= cores && parts <= 8; parts++) {
        int cpus = 0;
        CPU_ZERO_S(bytes, all);
        for (int k = 0; k < parts; k++) {
            assert_true(hpct_rank_threads_part(mask, bytes, k, parts, part));
            assert_true(CPU_COUNT_S(bytes, part) > 0);
            cpus += CPU_COUNT_S(bytes, part);
            CPU_OR_S(bytes, all, all, part);
        }
        assert_int_equal(cpus, CPU_COUNT_S(bytes, mask)); /* none in two */
        assert_true(CPU_EQUAL_S(bytes, all, mask));
    }
    assert_false(hpct_rank_threads_part(mask, bytes, 0, cores + 1, part));
    CPU_FREE(all);
    CPU_FREE(part);
    CPU_FREE(mask);
}

int main(void)
{
    return unit_run(setup, teardown);
}
