/* fit and evaluate on one rank, with real arithmetic on small pictures. */
#include "agent/data/dataset.h"
#include "agent/data/sampler.h"
#include "agent/rank/context.h"
#include "nn/run/step.h"
#include "tests/unit/agent/data/pictures.h"
#include "tests/unit/unit.h"

#include <hpctrain/hpctrain.h>
#include <math.h>
#include <signal.h>
#include <unistd.h>

static hpct_context *context;
static const char *folder;
static hpct_dataset *train, *test;

static int open_all(void **state)
{
    folder = pictures_folder();
    pictures_mnist_like(folder, 203, 57, 10, false);
    return hpct_context_open_alone(&context) != HPCT_OK ||
           hpct_dataset_open(&train, folder, HPCT_TRAIN) != HPCT_OK ||
           hpct_dataset_open(&test, folder, HPCT_TEST) != HPCT_OK;
}

static int close_all(void **state)
{
    hpct_dataset_free(train);
    hpct_dataset_free(test);
    hpct_context_close(context);
    return 0;
}

static hpct_model *small_model(int classes)
{
    hpct_model *model = hpct_model_new("small", HPCT_SHAPE(28, 28));
    hpct_model_add_flatten(model);
    hpct_model_add_dense(model, &(hpct_dense){.units = 16, .activation = HPCT_RELU});
    hpct_model_add_dense(model, &(hpct_dense){.units = classes});
    assert_int_equal(hpct_model_compile(model, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS,
                                        &(hpct_optimizer){.learning_rate = 0.1}),
                     HPCT_OK);
    assert_int_equal(hpct_model_initialize(model, 1), HPCT_OK);
    return model;
}

static int count_lines(const char *name)
{
    char path[4096];
    int lines = 0;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    for (int c; file != NULL && (c = fgetc(file)) != EOF;)
        lines += c == '\n';
    if (file != NULL)
        fclose(file);
    return lines;
}

TEST(a_model_learns)
{
    hpct_model *model = small_model(10);
    hpct_fit_result result;
    hpct_metrics metrics;
    hpct_fit_options options = {
        .epochs = 6, .batch_size = 32, .validation = test, .log_dir = folder};
    assert_int_equal(hpct_fit(context, model, train, &options, &result), HPCT_OK);
    assert_int_equal(result.steps, 6 * 7); /* 203 samples: the last batch has 11 */
    assert_int_equal(result.signal, 0);
    assert_true(result.train.accuracy > 0.95);
    assert_true(result.validation.accuracy > 0.95);
    assert_int_equal(count_lines("history.csv"), 1 + 6);
    assert_int_equal(count_lines("metrics.jsonl"), 6 * 7);
    assert_int_equal(hpct_evaluate(context, model, test, 10, &metrics), HPCT_OK);
    assert_true(fabs(metrics.loss - result.validation.loss) < 1e-5 * result.validation.loss);
    assert_true(metrics.accuracy == result.validation.accuracy);
    hpct_model_free(model);
}

/* The same seed gives the same run, another another; so does going on after evaluate. */
TEST(a_run_is_a_function_of_its_seed)
{
    double losses[3];
    for (int i = 0; i < 3; i++) {
        hpct_model *model = small_model(10);
        hpct_fit_result result;
        hpct_fit_options options = {.epochs = 2, .batch_size = 32, .seed = i == 2 ? 4 : 3};
        assert_int_equal(hpct_fit(context, model, train, &options, &result), HPCT_OK);
        losses[i] = result.train.loss;
        hpct_model_free(model);
    }
    assert_true(losses[0] == losses[1]);
    assert_true(losses[0] != losses[2]);
}

TEST(steps_per_epoch_are_kept)
{
    hpct_model *model = small_model(10);
    hpct_fit_result result;
    hpct_fit_options options = {.epochs = 3, .global_batch_size = 50, .steps_per_epoch = 9};
    assert_int_equal(hpct_fit(context, model, train, &options, &result), HPCT_OK);
    assert_int_equal(result.steps, 27); /* more than a pass in an epoch: it goes on */
    assert_true(isnan(result.validation.loss));
    hpct_model_free(model);
}

/* Two epochs and then two more, with a short last batch, momentum and logs: as four at once. */
TEST(a_run_continues_its_checkpoint)
{
    char dir[4096], logs[4096];
    double loss[2] = {0};
    snprintf(dir, sizeof dir, "%s/checkpoints", folder);
    snprintf(logs, sizeof logs, "%s/logs", folder);
    for (int cut = 0; cut < 2; cut++) {
        for (int epochs = cut ? 2 : 4; epochs <= 4; epochs += 2) {
            hpct_fit_result result;
            hpct_model *model = small_model(10);
            hpct_fit_options options = {.epochs = epochs,
                                        .batch_size = 32,
                                        .validation = test,
                                        .checkpoint_dir = cut ? dir : NULL,
                                        .checkpoint_every = cut ? "3" : NULL,
                                        .log_dir = cut ? logs : NULL};
            assert_int_equal(hpct_fit(context, model, train, &options, &result), HPCT_OK);
            assert_int_equal(result.steps, cut ? 14 : 28);
            loss[cut] = result.validation.loss;
            hpct_model_free(model);
        }
    }
    assert_true(loss[0] == loss[1]);
    assert_int_equal(count_lines("logs/history.csv"), 1 + 4);
    assert_int_equal(count_lines("logs/metrics.jsonl"), 4 * 7);
    hpct_model *model = small_model(10);
    hpct_fit_options other = {.epochs = 5, .batch_size = 16, .checkpoint_dir = dir};
    assert_int_equal(hpct_fit(context, model, train, &other, NULL), HPCT_ERR_CONFIG);
    assert_non_null(strstr(hpct_last_error(), "global batch 32, this one has 16"));
    hpct_model_free(model);
}

TEST(impossible_options_are_refused)
{
    hpct_model *model = small_model(10);
    const hpct_fit_options wrong[] = {
        {.epochs = -1},     {.batch_size = 8, .global_batch_size = 8},
        {.batch_size = -8}, {.steps_per_epoch = -1},
        {.verbose = 3},     {.epochs = 2147483647, .steps_per_epoch = INT64_MAX / 4},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(hpct_fit(context, model, train, &wrong[i], NULL), HPCT_ERR_USAGE);
    const hpct_fit_options unwritable[] = {
        {.summary_json = "/no/such/folder/s.json"},
        {.save_weights = "/no/such/folder/w"},
        {.log_dir = "/dev/null/x"},
    };
    for (size_t i = 0; i < sizeof unwritable / sizeof unwritable[0]; i++) {
        assert_int_equal(hpct_fit(context, model, train, &unwritable[i], NULL), HPCT_ERR_IO);
        assert_true(strstr(hpct_last_error(), "/no/such/folder") != NULL ||
                    strstr(hpct_last_error(), "/dev/null/x") != NULL);
    }
    hpct_model_free(model);
}

TEST(labels_out_of_range_are_refused)
{
    hpct_model *model = small_model(9);
    hpct_metrics metrics;
    hpct_fit_options options = {0}, validating = {.validation = test};
    assert_int_equal(hpct_fit(context, model, train, &options, NULL), HPCT_ERR_DATA);
    assert_non_null(strstr(hpct_last_error(), "label 9 of sample 9 is out of range"));
    assert_int_equal(hpct_fit(context, model, train, &validating, NULL), HPCT_ERR_DATA);
    assert_int_equal(hpct_evaluate(context, model, test, 0, &metrics), HPCT_ERR_DATA);
    hpct_model_free(model);
}

TEST(evaluations_come_every_so_many_steps)
{
    hpct_model *model = small_model(10);
    hpct_fit_result result;
    hpct_metrics metrics;
    hpct_train_and_evaluate_options options = {
        .max_steps = 25, .evaluate_every = 10, .fit = {.batch_size = 32, .log_dir = folder}};
    assert_int_equal(hpct_train_and_evaluate(context, model, train, test, &options, &result),
                     HPCT_OK);
    assert_int_equal(result.steps, 25);
    assert_int_equal(count_lines("history.csv"), 1 + 3);
    assert_int_equal(count_lines("metrics.jsonl"), 25);
    assert_int_equal(hpct_evaluate(context, model, test, 0, &metrics), HPCT_OK);
    assert_true(fabs(metrics.loss - result.validation.loss) < 1e-5 * metrics.loss);
    options.evaluate_every = 0; /* once, at the end */
    assert_int_equal(hpct_train_and_evaluate(context, model, train, test, &options, &result),
                     HPCT_OK);
    assert_int_equal(count_lines("history.csv"), 1 + 1);
    const hpct_train_and_evaluate_options wrong[] = {
        {.max_steps = 0},
        {.max_steps = 5, .evaluate_every = -1},
        {.max_steps = 5, .fit = {.epochs = 2}},
        {.max_steps = 5, .fit = {.steps_per_epoch = 2}},
        {.max_steps = 5, .fit = {.validation = test}},
        {.max_steps = INT64_MAX, .evaluate_every = 1},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(hpct_train_and_evaluate(context, model, train, test, &wrong[i], NULL),
                         HPCT_ERR_USAGE);
    hpct_model_free(model);
}

/* The same numbers as fit's, from the parts of its step; the parts in another order are refused. */
TEST(a_loop_of_ones_own_is_fit)
{
    hpct_model *fitted = small_model(10), *own = small_model(10);
    hpct_fit_result result;
    hpct_fit_options options = {.epochs = 1, .batch_size = 29, .seed = 5};
    assert_int_equal(hpct_fit(context, fitted, train, &options, &result), HPCT_OK);
    hpct_trainer *trainer;
    hpct_metrics metrics, sum = {0};
    hpct_trainer_options opening = {.batch_sizes = {29}};
    hpct_model_take_targets(own, true); /* as a fit with numbers as labels leaves it */
    assert_int_equal(hpct_trainer_open(&trainer, context, own, &opening), HPCT_OK);
    assert_int_equal(hpct_trainer_reduce(trainer, NULL), HPCT_ERR_USAGE);
    assert_int_equal(hpct_trainer_apply(trainer), HPCT_ERR_USAGE);
    assert_null(hpct_trainer_targets(trainer));
    uint32_t order[203];
    hpct_data_shuffle(order, 203, 5, 0);
    for (int t = 0; t < 7; t++) {
        hpct_dataset_gather(train, order + t * 29, 29, hpct_trainer_input(trainer),
                            hpct_trainer_labels(trainer));
        assert_int_equal(hpct_trainer_forward(trainer, 28, true), HPCT_ERR_USAGE);
        assert_int_equal(hpct_trainer_forward(trainer, 29, true), HPCT_OK);
        assert_int_equal(hpct_trainer_backward(trainer, 0), HPCT_ERR_USAGE);
        assert_int_equal(hpct_trainer_backward(trainer, 29), HPCT_OK);
        assert_int_equal(hpct_trainer_reduce(trainer, &metrics), HPCT_OK);
        size_t count, numbers = 0;
        const float *gradients = hpct_trainer_gradients(trainer, &count);
        for (size_t i = 0; i < count; i++)
            numbers += gradients[i] != 0;
        assert_true(numbers > 1000); /* they are there, not inside an update */
        assert_int_equal(hpct_trainer_apply(trainer), HPCT_OK);
        sum.loss += metrics.loss / 7;
        sum.accuracy += metrics.accuracy / 7;
    }
    assert_true(fabs(sum.loss - result.train.loss) < 1e-5 * sum.loss);
    assert_true(fabs(sum.accuracy - result.train.accuracy) < 1e-9);
    assert_int_equal(hpct_trainer_forward(trainer, 29, false), HPCT_OK);
    hpct_metrics measured;
    assert_int_equal(hpct_trainer_measure(trainer, 29, &measured), HPCT_OK);
    assert_true(measured.loss > 0 && measured.loss < metrics.loss); /* of the batch just learned */
    assert_non_null(hpct_trainer_output(trainer));
    assert_int_equal(hpct_evaluate(context, own, test, 0, &metrics), HPCT_OK);
    assert_int_equal(hpct_trainer_forward(trainer, 29, true), HPCT_ERR_USAGE);
    assert_non_null(strstr(hpct_last_error(), "was rebuilt"));
    hpct_trainer_close(trainer);
    hpct_metrics expected;
    assert_int_equal(hpct_evaluate(context, fitted, test, 0, &expected), HPCT_OK);
    assert_true(fabs(expected.loss - metrics.loss) < 1e-5 * expected.loss);
    hpct_model_free(fitted);
    hpct_model_free(own);
}

/* Closed in the wrong order: the trainer has the model until it is closed itself. */
TEST(a_trainer_holds_its_model)
{
    hpct_model *model = small_model(10);
    hpct_trainer *trainer;
    assert_int_equal(
        hpct_trainer_open(&trainer, context, model, &(hpct_trainer_options){.batch_sizes = {4}}),
        HPCT_OK);
    hpct_model_free(model);
    hpct_dataset_gather(train, (uint32_t[]){0, 1, 2, 3}, 4, hpct_trainer_input(trainer),
                        hpct_trainer_labels(trainer));
    assert_int_equal(hpct_trainer_forward(trainer, 4, true), HPCT_OK);
    assert_int_equal(hpct_trainer_backward(trainer, 4), HPCT_OK);
    assert_int_equal(hpct_trainer_reduce(trainer, NULL), HPCT_OK);
    assert_int_equal(hpct_trainer_apply(trainer), HPCT_OK);
    hpct_trainer_close(trainer);
}

TEST(a_signal_stops_it)
{
    const int signals[] = {SIGINT, SIGTERM};
    char weights[4096];
    snprintf(weights, sizeof weights, "%s/w.safetensors", folder);
    for (int i = 0; i < 2; i++) {
        hpct_model *model = small_model(10), *loaded = small_model(10);
        hpct_fit_result result;
        hpct_metrics a, b;
        hpct_fit_options options = {.epochs = 1000000, .batch_size = 32, .save_weights = weights};
        signal(signals[i], SIG_DFL); /* a shell ignores SIGINT in what it runs in the background */
        pid_t child = fork();
        if (child == 0) { /* another process, so that the test itself may wait in fit */
            usleep(900000);
            kill(getppid(), signals[i]);
            _exit(0);
        }
        assert_int_equal(hpct_fit(context, model, train, &options, &result), HPCT_ERR_STOPPED);
        assert_int_equal(result.signal, signals[i]);
        assert_true(result.steps > 0);
        assert_non_null(strstr(hpct_last_error(), i == 0 ? "SIGINT" : "SIGTERM"));
        assert_int_equal(hpct_model_load_weights(loaded, weights), HPCT_OK);
        assert_int_equal(hpct_evaluate(context, model, test, 0, &a), HPCT_OK);
        assert_int_equal(hpct_evaluate(context, loaded, test, 0, &b), HPCT_OK);
        assert_true(a.loss == b.loss);
        hpct_model_free(model);
        hpct_model_free(loaded);
    }
    struct sigaction action;
    assert_int_equal(sigaction(SIGINT, NULL, &action), 0);
    assert_true(action.sa_handler == SIG_DFL); /* as it was before */
}

/* Damage that shows only when a picture's turn comes: what was learned until then is saved, and not
 * under the name of an earlier run's weights. */
TEST(what_was_learned_outlives_its_data)
{
    uint8_t png[4096];
    char weights[4096], rescued[4096];
    const char *own = pictures_folder();
    size_t size = pictures_seed("picture/png_grey", png, sizeof png);
    for (int i = 0; i < 103; i++) {
        char name[32];
        snprintf(name, sizeof name, "train/a/%d.png", i);
        pictures_write(own, name, png, i == 60 ? size - 20 : size, false);
    }
    hpct_dataset *damaged;
    hpct_dataset_options little = {.height = 28, .width = 28, .channels = 1, .memory = 10};
    assert_int_equal(hpct_dataset_open_as(&damaged, own, HPCT_TRAIN, &little), HPCT_OK);
    hpct_model *earlier = small_model(10), *model = small_model(10), *back = small_model(10);
    snprintf(weights, sizeof weights, "%s/kept.safetensors", folder);
    snprintf(rescued, sizeof rescued, "%s/rescued-kept.safetensors", folder);
    assert_int_equal(hpct_model_save_weights(earlier, weights), HPCT_OK);
    hpct_fit_result result;
    hpct_fit_options options = {.batch_size = 10, .seed = 1, .save_weights = weights};
    assert_int_equal(hpct_fit(context, model, damaged, &options, &result), HPCT_ERR_DATA);
    assert_true(result.steps > 0 && result.steps < 11);
    assert_non_null(strstr(hpct_last_error(), "60.png"));
    assert_non_null(strstr(hpct_last_error(), "; the weights are in "));
    assert_non_null(strstr(hpct_last_error(), rescued));
    hpct_metrics a, b, c;
    assert_int_equal(hpct_evaluate(context, earlier, test, 0, &a), HPCT_OK);
    assert_int_equal(hpct_model_load_weights(back, weights), HPCT_OK);
    assert_int_equal(hpct_evaluate(context, back, test, 0, &b), HPCT_OK);
    assert_true(a.loss == b.loss);
    assert_int_equal(hpct_model_load_weights(back, rescued), HPCT_OK);
    assert_int_equal(hpct_evaluate(context, model, test, 0, &a), HPCT_OK);
    assert_int_equal(hpct_evaluate(context, back, test, 0, &c), HPCT_OK);
    assert_true(a.loss == c.loss && c.loss != b.loss);
    hpct_dataset_free(damaged);
    hpct_model_free(earlier);
    hpct_model_free(model);
    hpct_model_free(back);
}

int main(void)
{
    return unit_run(open_all, close_all);
}
