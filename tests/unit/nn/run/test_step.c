/* One step of a whole model: arenas and buffers, gradients, what the loss is fused with, misuse,
 * allocations. */
#include "base/progress.h"
#include "nn/backend/cpu/backend.h"
#include "nn/run/run.h"
#include "tests/unit/allocations.h"
#include "tests/unit/nn/nn_small.h"

#include <math.h>

TEST(arenas_are_as_promised)
{
    hpct_model *model = small_ready("cpu", 0.9), *other = small_ready("ref", 0.9);
    size_t count, same;
    float *weights = hpct_model_parameters(model, &count);
    float *gradients = hpct_model_gradients(model, &same);
    assert_true(count == same && count >= hpct_model_count_parameters(model));
    assert_true((uintptr_t) weights % 64 == 0 && (uintptr_t) gradients % 64 == 0);
    for (int i = 1; i < model->num_params; i++) /* last layer first */
        assert_true(model->params[i].node == model->params[i - 1].node ||
                    model->run->arenas.param_offsets[i] < model->run->arenas.param_offsets[i - 1]);
    for (size_t i = 0; i < HPCT_RUN_ARENA_PIGGYBACK; i++)
        gradients[count + i] = (float) i + 1;
    for (uint32_t t = 0; t < 5; t++)
        small_step(model, 8, t);
    size_t numbers = 0;
    for (size_t i = 0; i < count; i++)
        numbers += weights[i] != 0;
    assert_true(numbers <= hpct_model_count_parameters(model)); /* padding stays zero */
    for (size_t i = 0; i < HPCT_RUN_ARENA_PIGGYBACK; i++)
        assert_true(gradients[count + i] == (float) i + 1);
    assert_true(hpct_model_layout_fingerprint(model) != hpct_model_layout_fingerprint(other));
    uint64_t before = hpct_model_layout_fingerprint(model);
    small_build(model, (hpct_run_build_options){.backend = "cpu"});
    assert_true(hpct_model_layout_fingerprint(model) == before);
    hpct_model_free(model);
    hpct_model_free(other);
}

/* What an earlier step left in any buffer must not matter. */
TEST(nothing_stale_is_read)
{
    hpct_model *dirty = small_ready("cpu", 0.9), *clean = small_ready("cpu", 0.9);
    for (uint32_t t = 0; t < 4; t++) {
        memset(dirty->run->plan.block, 0xff, dirty->run->plan.block_bytes); /* NaN */
        size_t count;
        float *gradients = hpct_model_gradients(dirty, &count);
        for (int i = 0; i < dirty->num_params; i++)
            memset(gradients + dirty->run->arenas.param_offsets[i], 0xff,
                   hpct_graph_shape_count(&dirty->params[i].shape) * sizeof *gradients);
        small_step(dirty, 8, t);
        small_step(clean, 8, t);
    }
    assert_same_weights(dirty, clean, 0);
    hpct_model_free(dirty);
    hpct_model_free(clean);
}

/* The loss over perturbed weights, against the gradient arena: finds buffers that overlap. */
TEST(whole_gradient_is_numerical)
{
    hpct_model *model = small_ready("ref", 0);
    hpct_backend_batch_sums sums;
    size_t count;
    float *weights = hpct_model_parameters(model, &count);
    small_step(model, 8, 1);
    small_fill(model, 8, 2);
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

TEST(softmax_and_its_loss_are_fused)
{
    hpct_model *models[2] = {small_model(true), small_model(false)};
    small_compile(models[0], HPCT_SPARSE_CATEGORICAL_CROSSENTROPY, 0);
    small_compile(models[1], HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS, 0);
    for (int i = 0; i < 2; i++)
        small_build(models[i], (hpct_run_build_options){.backend = "cpu"});
    for (uint32_t t = 0; t < 3; t++)
        assert_true(small_step(models[0], 8, t) == small_step(models[1], 8, t));
    assert_same_weights(models[0], models[1], 0);
    float sum = 0; /* outputs are probabilities all the same */
    for (int i = 0; i < 4; i++)
        sum += hpct_model_output(models[0])[i];
    assert_true(fabsf(sum - 1) < 1e-6f);
    /* a hopeless sample costs what its logits say, not the 16.1 at which clipping ends */
    for (int i = 0; i < models[0]->num_params; i++) {
        size_t count = hpct_graph_shape_count(&models[0]->params[i].shape);
        float *values = malloc(count * sizeof *values);
        assert_int_equal(hpct_run_param_get(models[0], i, values), HPCT_OK);
        for (size_t k = 0; k < count; k++)
            values[k] *= 6;
        assert_int_equal(hpct_run_param_set(models[0], i, values), HPCT_OK);
        free(values);
    }
    hpct_backend_batch_sums sums;
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

TEST(probabilities_need_no_softmax_layer)
{
    hpct_model *model = hpct_model_new("m", HPCT_SHAPE(6));
    hpct_model_add_dense(model, &(hpct_dense){.units = 3, .activation = HPCT_RELU});
    small_compile(model, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY, 0);
    small_build(model, (hpct_run_build_options){.backend = "cpu"});
    for (uint32_t t = 0; t < 3; t++)
        assert_true(isfinite(small_step(model, 8, t)));
    hpct_model_free(model);
}

/* The trainer may look at it after the update. */
TEST(output_stays_until_the_next_forward)
{
    hpct_model *model = small_ready("cpu", 0.9);
    float kept[8 * 4];
    hpct_backend_batch_sums sums;
    small_fill(model, 8, 1);
    assert_int_equal(hpct_model_forward(model, 8, true), HPCT_OK);
    memcpy(kept, hpct_model_output(model), sizeof kept);
    assert_int_equal(hpct_model_loss(model, 8, 1, &sums), HPCT_OK);
    assert_int_equal(hpct_model_backward(model, 8), HPCT_OK);
    assert_int_equal(hpct_model_update(model), HPCT_OK);
    assert_memory_equal(kept, hpct_model_output(model), sizeof kept);
    hpct_model_free(model);
}

TEST(correct_samples_are_counted)
{
    hpct_model *model = small_ready("cpu", 0);
    hpct_backend_batch_sums sums;
    small_fill(model, 8, 1);
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

TEST(misuse_is_refused)
{
    int zero = 0, two = 2;
    hpct_backend_batch_sums sums;
    hpct_model *model = small_model(true);
    hpct_run_build_options options = {.backend = "cpu", .batch_sizes = &two, .num_batch_sizes = 1};
    assert_int_equal(hpct_model_build(model, &options), HPCT_ERR_USAGE); /* not compiled */
    assert_int_equal(hpct_model_forward(model, 2, true), HPCT_ERR_USAGE);
    assert_int_equal(hpct_model_update(model), HPCT_ERR_USAGE);
    assert_null(hpct_model_input(model));
    small_compile(model, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY, 0);
    options.backend = "abacus";
    assert_int_equal(hpct_model_build(model, &options), HPCT_ERR_USAGE);
    assert_string_equal(hpct_last_error(),
                        "there is no backend \"abacus\"; there are: cpu, ref, cuda");
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
    options = (hpct_run_build_options){.backend = "cpu", .batch_sizes = &two, .num_batch_sizes = 1};
    assert_int_equal(hpct_model_build(model, &options), HPCT_OK);
    small_fill(model, 2, 0);
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
    small_fill(model, 2, 0);
    assert_int_equal(hpct_model_forward(model, 2, true), HPCT_ERR_USAGE);
    assert_int_equal(hpct_model_forward(model, 2, false), HPCT_OK);
    assert_int_equal(hpct_model_loss(model, 2, 1, &sums), HPCT_ERR_USAGE);
    assert_int_equal(hpct_model_loss(model, 2, 0, &sums), HPCT_OK);
    assert_int_equal(hpct_model_update(model), HPCT_ERR_USAGE);
    hpct_model_free(model);
}

TEST(inference_needs_less_memory)
{
    hpct_model *model = small_ready("cpu", 0);
    size_t training = model->run->plan.block_bytes;
    small_build(model, (hpct_run_build_options){.backend = "cpu", .inference_only = true});
    assert_true(model->run->plan.block_bytes < training);
    size_t count;
    assert_null(hpct_model_gradients(model, &count));
    hpct_model_free(model);
}

static void expect_no_allocation(hpct_model *model)
{
    small_step(model, 8, 0);
    long before = allocations;
    for (uint32_t t = 0; t < 3; t++) {
        small_step(model, 8, t);
        small_step(model, 5, t);
    }
    assert_int_equal(allocations, before);
}

TEST(the_step_allocates_nothing)
{
    for (size_t i = 0; i < SMALL_OPTIMIZERS; i++) {
        hpct_model *model = small_ready_with("cpu", &small_optimizers[i]);
        expect_no_allocation(model);
        long before = allocations;
        small_build(model, (hpct_run_build_options){.backend = "cpu"});
        assert_true(allocations > before); /* the count counts */
        hpct_model_free(model);
    }
}

/* The watch over the ranks looks at it. */
TEST(each_operation_counts_as_progress)
{
    hpct_waits waits;
    hpct_backend_batch_sums sums;
    hpct_model *model = small_ready("cpu", 0);
    uint32_t nodes = (uint32_t) model->run->num_nodes, before = hpct_read_progress(&waits);
    assert_true(nodes > 3);
    small_fill(model, 8, 0);
    assert_int_equal(hpct_model_forward(model, 8, true), HPCT_OK);
    uint32_t forward = hpct_read_progress(&waits);
    assert_true(forward - before >= nodes);
    assert_int_equal(hpct_model_loss(model, 8, 0.1F, &sums), HPCT_OK);
    assert_int_equal(hpct_model_backward(model, 8), HPCT_OK);
    assert_true(hpct_read_progress(&waits) - forward >=
                nodes - 1); /* the loss has the last one's */
    hpct_model_free(model);
}

TEST(a_bf16_step_allocates_nothing)
{
    if (hpct_precision_check(HPCT_BF16) != HPCT_OK)
        skip();
    hpct_model *model = small_model(true);
    hpct_compile_options options = {.loss = HPCT_SPARSE_CATEGORICAL_CROSSENTROPY,
                                    .precision = HPCT_BF16,
                                    .optimizer = {.learning_rate = 0.1}};
    assert_int_equal(hpct_model_compile_with(model, &options), HPCT_OK);
    assert_int_equal(hpct_model_initialize(model, 3), HPCT_OK);
    for (int fuse = 0; fuse < 2; fuse++) {
        small_build(model, (hpct_run_build_options){.backend = "cpu", .fuse_update = fuse == 1});
        expect_no_allocation(model);
    }
    hpct_model_free(model);
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

TEST(a_residual_step_allocates_nothing)
{
    hpct_model *models[2];
    double losses[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        models[i] = residual_model();
        small_compile(models[i], HPCT_SPARSE_CATEGORICAL_CROSSENTROPY, 0.9);
        small_build(models[i], (hpct_run_build_options){.backend = i == 0 ? "cpu" : "ref"});
        small_step(models[i], 8, 0);
        long before = allocations;
        for (uint32_t t = 0; t < 4; t++)
            losses[i] += small_step(models[i], t % 2 == 0 ? 5 : 8, t);
        assert_int_equal(allocations, before);
    }
    assert_true(fabs(losses[0] - losses[1]) < 1e-3 * losses[1]);
    hpct_model_free(models[0]);
    hpct_model_free(models[1]);
}

/* What backward calls final, as it was then. */
typedef struct watched {
    hpct_model *model;
    float *seen; /* [count] */
    size_t done, count;
    int calls, moves, fail_at;
} watched;

static hpct_status watch(void *argument, size_t done)
{
    watched *w = argument;
    const float *gradients = hpct_model_gradients(w->model, &w->count);
    assert_true(done >= w->done && done <= w->count);
    memcpy(w->seen + w->done, gradients + w->done, (done - w->done) * sizeof *gradients);
    w->moves += done > w->done;
    w->done = done;
    return ++w->calls == w->fail_at ? HPCT_ERR_PEER : HPCT_OK;
}

TEST(backward_says_what_is_final)
{
    const char *const backends[] = {"cpu", "ref"};
    for (int i = 0; i < 2; i++) {
        size_t count;
        watched w = {.model = residual_model()};
        small_compile(w.model, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY, 0.9);
        small_build(w.model, (hpct_run_build_options){.backend = backends[i]});
        const float *gradients = hpct_model_gradients(w.model, &count);
        w.seen = test_calloc(count, sizeof *w.seen);
        hpct_model_set_peers(w.model, &(hpct_graph_step_peers){.advance = watch, .argument = &w});
        small_step(w.model, 8, 0);
        assert_true(w.done == count);
        assert_memory_equal(w.seen, gradients, count * sizeof *gradients);
        assert_true(w.moves > 5 && w.calls > w.moves); /* also where there are no parameters */
        int calls = w.calls;
        hpct_model_set_peers(w.model, NULL);
        small_step(w.model, 8, 1);
        assert_int_equal(w.calls, calls);
        /* its failure is backward's */
        hpct_backend_batch_sums sums;
        w.done = 0;
        w.fail_at = calls + 2;
        hpct_model_set_peers(w.model, &(hpct_graph_step_peers){.advance = watch, .argument = &w});
        assert_int_equal(hpct_model_forward(w.model, 8, true), HPCT_OK);
        assert_int_equal(hpct_model_loss(w.model, 8, 0.125f, &sums), HPCT_OK);
        assert_int_equal(hpct_model_backward(w.model, 8), HPCT_ERR_PEER);
        assert_int_equal(w.calls, calls + 2);
        hpct_model_free(w.model);
        test_free(w.seen);
    }
}

TEST(threads_can_be_set)
{
    int threads = hpct_cpu_threads();
    hpct_model *one = small_ready("cpu", 0), *three = small_ready("cpu", 0);
    for (uint32_t t = 0; t < 3; t++) {
        hpct_cpu_set_threads(1);
        assert_int_equal(hpct_cpu_threads(), 1);
        double a = small_step(one, 8, t);
        hpct_cpu_set_threads(3);
        assert_true(fabs(small_step(three, 8, t) - a) < 1e-4 * a);
    }
    assert_same_weights(one, three, 1e-4f);
    hpct_cpu_set_threads(threads);
    hpct_model_free(one);
    hpct_model_free(three);
}
