/* hpc-train fit */
#include "agent/cli/cli.h"

#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct arguments {
    hpct_cli_common common;
    const char *validation_data, *validation_labels;
    hpct_cli_training training;
    hpct_fit_options fit;
    int gpus; /* --n-gpus; -1: not given */
    bool quiet;
} arguments;

#define FILLS arguments

static const hpct_cli_option options[] = {
    {"validation-data", "PATH",
     "evaluate its validation split, or else its test split, after each epoch; may be the same "
     "path",
     1, 0, CALL(validation_data, hpct_cli_data)},
    {"validation-labels", "FILE.csv", "labels of the pictures of --validation-data, as --labels", 1,
     0, TEXT(validation_labels)},
    {"augment", "LIST",
     "augmentation of training images: flip (horizontally, with probability 1/2), crop:N (shift by "
     "up to N pixels in each direction), rotation:F (up to F of a turn), zoom:F, translation:F (up "
     "to F of height and width), contrast:F, rand-augment:N:M (N operations of strength M), "
     "mixup:A, cutmix:A (see the manual page)",
     1, 0, CALL(common.input, hpct_cli_augment)},
    {.doc = "Training:", .group = 2},
    {"epochs", "N", "number of epochs (default 1)", 2, 0, INTEGER(fit.epochs, 1, INT_MAX)},
    {"initial-epoch", "N",
     "number of --epochs already done by the run that saved --weights: shuffling, schedule and "
     "numbering continue (default 0)",
     2, 0, INTEGER(fit.initial_epoch, 0, INT_MAX - 1)},
    {"steps-per-epoch", "N",
     "steps of an epoch (default: one pass over the data, whose last batch may be short)", 2, 0,
     INTEGER(fit.steps_per_epoch, 1, INT_MAX)},
    {"seed", "N", "seed of initial weights and shuffling (default 0)", 2, 0,
     INTEGER(fit.seed, 0, INT64_MAX)},
    {"n-gpus", "N",
     "GPUs per rank: --replicas N with --device cuda (unless cpu is given), and the learning rate "
     "times the number of GPUs (unless --lr-scaling is given); 0: CPUs",
     2, 0, INTEGER(gpus, 0, HPCT_MAX_REPLICAS)},
    {"check", NULL,
     "measure all nodes before step 1, as hpc-train check does, and end with 69 if some are slow",
     2, 0, FLAG(fit.check)},
    {.doc = "Output (of rank 0):", .group = 4},
    {"verbose", "0|1|2",
     "0 silent, 1 progress bar, 2 one line per epoch (default: 1 on a terminal, else 2)", 4, 0,
     INTEGER(fit.verbose, 0, 2)},
    {"quiet", NULL, "the same as --verbose 0", 4, 0, FLAG(quiet)},
    {"log-dir", "DIR",
     "write history.csv, metrics.jsonl, status.json and event files for TensorBoard there", 4, 0,
     TEXT(fit.log_dir)},
    {"histogram-every", "N",
     "with --log-dir: histograms of weights and gradients for TensorBoard, of the first epoch and "
     "each N-th after it",
     4, 0, INTEGER(fit.histogram_every, 1, INT_MAX)},
    {"metrics-file", "FILE.prom",
     "write the state of the run there about once a second, for node_exporter's textfile "
     "collector; removed at the end",
     4, 0, TEXT(fit.metrics_file)},
    {"save-weights", "FILE",
     "save the weights there at the end, also when stopped by a signal: .weights.h5 for Keras, any "
     "other name for safetensors",
     4, 0, TEXT(fit.save_weights)},
    {"save-best", "FILE", "save the weights there at the end of each epoch that is the best so far",
     4, 0, TEXT(fit.save_best)},
    {"monitor", "METRIC",
     "metric that decides which epoch is the best: loss, accuracy, val_loss, val_accuracy and "
     "others (default val_loss; without validation loss)",
     4, 0, TEXT(fit.monitor)},
    {"mode", "auto|min|max",
     "whether a lower or a higher value of --monitor is better (default auto: lower for losses)", 4,
     0, TEXT(fit.monitor_mode)},
    {.doc = "After each epoch:", .group = 6},
    {"early-stopping", "METRIC:KEY=VALUE,...",
     "end training when METRIC has not improved for patience=N epochs (default 0); also "
     "min_delta=X, mode=min|max, baseline=X, start_from_epoch=N, restore_best",
     6, 0, TEXT(fit.early_stopping)},
    {"reduce-lr-on-plateau", "METRIC:KEY=VALUE,...",
     "multiply the learning rate by factor=X (default 0.1) when METRIC has not improved for "
     "patience=N epochs (default 10); also min_delta=X, mode=min|max, cooldown=N, min_lr=X",
     6, 0, TEXT(fit.reduce_lr_on_plateau)},
    {"stop-at", "METRIC=VALUE", "end training when METRIC reaches VALUE", 6, 0, TEXT(fit.stop_at)},
    {"learning-rate-file", "FILE", "learning rates by epoch: lines EPOCH RATE, epochs from 0", 6, 0,
     TEXT(fit.learning_rate_file)},
    {.doc = "Checkpoints:", .group = 7},
    {"checkpoint-dir", "DIR",
     "save the state of training there during training; a run with the same options continues it",
     7, 0, TEXT(fit.checkpoint_dir)},
    {"checkpoint-every", "epoch|N|Ns|Nm",
     "save at the end of each epoch, or every N steps, seconds or minutes (default: by time, so "
     "that training waits for 1 % of it)",
     7, 0, TEXT(fit.checkpoint_every)},
    {"checkpoint-keep", "N", "number of checkpoints to keep (default 2)", 7, 0,
     INTEGER(fit.checkpoint_keep, 1, INT_MAX)},
    {"resume", "auto|never|PATH",
     "continue from the newest checkpoint of --checkpoint-dir (default), from none, or from the "
     "one in a folder",
     7, 0, TEXT(fit.resume)},
    {"on-nan", "stop|resume",
     "when the loss is not finite: stop (default), or go back to the last checkpoint, once, with "
     "half the learning rate",
     7, 0, TEXT(fit.on_nan)},
    {0},
};

/* --save-weights and --save-best may overwrite the file of --weights; no other input may be
 * overwritten. */
static void keep_inputs(const arguments *a)
{
    const char *data = a->common.data != NULL ? a->common.data : getenv("HPC_TRAIN_DATA");
    const hpct_cli_file outputs[] = {{"--save-weights", a->fit.save_weights},
                                     {"--save-best", a->fit.save_best},
                                     {"--summary-json", a->common.summary_json},
                                     {"--timeline", a->common.timeline},
                                     {"--confusion-matrix", a->common.confusion_matrix},
                                     {"--metrics-file", a->fit.metrics_file}},
                        inputs[] = {{"--weights", a->common.weights},
                                    {"--model", a->common.model.name},
                                    {"--learning-rate-file", a->fit.learning_rate_file},
                                    {"--class-weight", a->training.class_weight},
                                    {"--data", data},
                                    {"--validation-data", a->validation_data},
                                    {"--labels", a->common.labels},
                                    {"--validation-labels", a->validation_labels}};
    hpct_cli_keep(outputs, 2, inputs + 1, 7);
    hpct_cli_keep(outputs + 2, 4, inputs, 8);
}

static bool has_servers(const arguments *a)
{
    return a->common.strategy.name != NULL &&
           strcmp(a->common.strategy.name, "parameter-server") == 0;
}

/* For users of MirroredStrategy: --batch_size 512 --n_gpus 2 also doubles the learning rate. */
static void apply_gpus(arguments *a)
{
    const char *device = a->common.model.device;
    if (a->gpus < 0)
        return;
    if (a->gpus == 0 && device != NULL && strcmp(device, "cuda") == 0)
        hpct_cli_usage("--n-gpus 0 selects CPUs, --device cuda GPUs: give one");
    if (a->common.strategy.replicas > 0 && a->common.strategy.replicas != a->gpus)
        hpct_cli_usage("--n-gpus %d and --replicas %d set the same number: give one", a->gpus,
                       a->common.strategy.replicas);
    if (a->gpus > 0)
        hpct_cli_set_replicas(&a->common.strategy, a->gpus);
    if (device == NULL || strcmp(device, "auto") == 0)
        a->common.model.device = a->gpus > 0 ? "cuda" : "cpu";
    if (a->gpus > 0 && !a->training.has_scaling && a->common.batch.global_size == 0)
        a->training.scaling = HPCT_CLI_SCALING_LINEAR;
}

/* Number of workers whose samples make one step: with synchronous servers without the backups;
 * asynchronously 1. */
static int sharers(const hpct_context *context, const arguments *a)
{
    const hpct_strategy_options *s = &a->common.strategy;
    int workers = hpct_context_workers(context);
    if (!has_servers(a))
        return hpct_context_first_workers(context);
    /* more backups than workers are rejected by hpct_fit */
    return s->ps_synchronous && s->ps_backup_workers < workers ? workers - s->ps_backup_workers : 1;
}

/* Number of samples per step. */
static double step_samples(const hpct_context *context, const arguments *a)
{
    bool shared = has_servers(a) && !a->common.strategy.ps_synchronous;
    if (a->fit.global_batch_size == 0)
        return (double) a->fit.batch_size * sharers(context, a);
    return shared ? ceil((double) a->fit.global_batch_size / hpct_context_workers(context))
                  : a->fit.global_batch_size;
}

/* Factor of the learning rate. */
static int scaled_by(const hpct_context *context, const arguments *a)
{
    return sharers(context, a) * (a->gpus > 0 ? a->gpus : 1);
}

/* A batch larger than the data set is handled as in Keras. */
static void say_of_batch(const hpct_dataset *train, const arguments *a, double samples)
{
    double pictures = (double) hpct_dataset_size(train);
    if (samples <= pictures)
        return;
    if (a->fit.steps_per_epoch > 0)
        printf("a batch of %.0f is larger than the data set: each sample is %.1f times in a step\n",
               samples, samples / pictures);
    else
        printf("a batch of %.0f is larger than the data set: an epoch is one step of all %.0f\n",
               samples, pictures);
}

static void say_what_begins(hpct_context *context, const hpct_model *model,
                            const hpct_dataset *train, const arguments *a)
{
    int ranks = hpct_context_workers(context), replicas = a->common.strategy.replicas;
    char of_each[32] = "", trained[48] = "";
    if (!hpct_context_leads(context))
        return;
    hpct_dataset_announce(model, train, a->fit.validation, a->fit.verbose != 0 ? stdout : NULL,
                          stderr);
    if (a->fit.verbose == 0)
        return;
    if (replicas > 1)
        snprintf(of_each, sizeof of_each, " of %d replicas", replicas);
    char *frozen = hpct_model_frozen_layers(model);
    if (frozen != NULL && frozen[0] != '\0')
        snprintf(trained, sizeof trained, ", of which %zu are trained",
                 hpct_model_count_trainable(model));
    free(frozen);
    printf("%s: %zu parameters%s, %zu pictures, %d %s%s%s, global batch %.0f\n",
           hpct_model_name(model), hpct_model_count_parameters(model), trained,
           hpct_dataset_size(train), ranks, has_servers(a) ? "worker" : "rank",
           ranks == 1 ? "" : "s", of_each, step_samples(context, a));
    hpct_cli_say_connected(context);
    if (a->gpus > 0 && a->training.scaling == HPCT_CLI_SCALING_LINEAR && scaled_by(context, a) > 1)
        printf("learning rate times %d, the number of GPUs (--lr-scaling none leaves it)\n",
               scaled_by(context, a));
    say_of_batch(train, a, step_samples(context, a));
    fflush(stdout);
}

/* Schedules are given in epochs; now the number of steps per epoch is known. */
static hpct_status compile(hpct_context *context, hpct_model *model, const hpct_cli_model *defaults,
                           const hpct_dataset *train, const arguments *a)
{
    int ranks = scaled_by(context, a);
    double batch = step_samples(context, a);
    double steps = a->fit.steps_per_epoch > 0 ? (double) a->fit.steps_per_epoch
                                              : ceil((double) hpct_dataset_size(train) / batch);
    return hpct_cli_compile(model, defaults, &a->training, ranks, steps, a->fit.epochs);
}

/* Once the data are known; *weights is the caller's. */
static hpct_status find_class_weights(hpct_context *context, const hpct_model *model,
                                      const hpct_dataset *train, hpct_cli_training *t,
                                      double **weights)
{
    int labels = hpct_model_count_labels(model);
    if (labels == INT_MAX)
        hpct_cli_usage("--class-weight is for classes: the output of %s is a number",
                       hpct_model_name(model));
    *weights = malloc((size_t) labels * sizeof **weights);
    t->class_weights = *weights;
    t->num_class_weights = labels;
    hpct_status status =
        hpct_context_agree(context, *weights != NULL ? HPCT_OK : HPCT_ERR_INTERNAL);
    return status == HPCT_OK ? hpct_class_weights(context, t->class_weight, train, *weights, labels)
                             : status;
}

/* Compiles with one step: the optimizer's memory does not depend on the number of steps, which is
 * not known yet. */
static hpct_status find_batch(hpct_context *context, hpct_model *model,
                              const hpct_cli_model *defaults, const hpct_dataset *train,
                              const hpct_dataset *validation, arguments *a)
{
    hpct_status status = hpct_cli_compile(model, defaults, &a->training, 1, 1, a->fit.epochs);
    if (status == HPCT_OK)
        status = hpct_cli_find_batch(context, model,
                                     &(hpct_batch_options){.data = train,
                                                           .validation = validation,
                                                           .strategy = a->common.strategy},
                                     a->fit.verbose != 0, &a->fit.batch_size);
    return status;
}

/* Checks everything independent of the data; for --batch-size auto assumes a batch with one sample
 * per replica. */
static hpct_status check_early(const hpct_context *context, const arguments *a)
{
    hpct_fit_options early = a->fit;
    if (early.batch_size == HPCT_CLI_AUTO)
        early.batch_size = early.strategy.replicas > 0 ? early.strategy.replicas : 1;
    return hpct_fit_check(context, &early);
}

static void say_how_to_evaluate(const arguments *a, const char *data)
{
    const hpct_cli_common *common = &a->common;
    bool held = common->validation_split > 0;
    hpct_cli_say_evaluate(common, a->fit.save_weights, held ? data : a->validation_data,
                          held ? common->labels : a->validation_labels);
}

static hpct_status fit(hpct_context *context, hpct_model *model, const hpct_cli_model *defaults,
                       arguments *a, hpct_fit_result *result)
{
    hpct_dataset *train = NULL, *validation = NULL;
    const char *path = a->common.data != NULL ? a->common.data : hpct_context_data(context);
    hpct_status status = check_early(context, a);
    /* Otherwise the other ranks get them from rank 0. */
    if (status == HPCT_OK && a->common.weights != NULL &&
        (hpct_context_rank(context) == 0 || has_servers(a)))
        status = hpct_cli_load_weights_of(model, &a->common, hpct_context_rank(context) == 0);
    if (status == HPCT_OK)
        status = hpct_cli_open_labelled(&train, path, a->common.labels, HPCT_TRAIN, model,
                                        &a->common.input);
    if (status == HPCT_OK && a->validation_data != NULL)
        status = hpct_cli_open_labelled(&validation, a->validation_data, a->validation_labels,
                                        HPCT_VALIDATION, model, &a->common.input);
    if (status == HPCT_OK && a->common.validation_split > 0)
        status = hpct_dataset_hold_out(train, a->common.validation_split, &validation);
    if (status == HPCT_OK && validation != NULL)
        status = hpct_dataset_number_as(validation, train);
    status = hpct_context_agree(context, status);
    if (status == HPCT_OK && a->fit.batch_size == HPCT_CLI_AUTO)
        status = find_batch(context, model, defaults, train, validation, a);
    double *weights = NULL;
    if (status == HPCT_OK && a->training.class_weight != NULL)
        status = find_class_weights(context, model, train, &a->training, &weights);
    if (status == HPCT_OK)
        status = compile(context, model, defaults, train, a);
    if (status == HPCT_OK) {
        a->fit.validation = validation;
        say_what_begins(context, model, train, a);
        status = hpct_fit(context, model, train, &a->fit, result);
    }
    if (status == HPCT_OK && validation != NULL && a->fit.verbose != 0 &&
        hpct_context_leads(context))
        say_how_to_evaluate(a, path);
    free(weights);
    hpct_dataset_free(train);
    hpct_dataset_free(validation);
    return status;
}

/* Refuses metrics without validation data, and with servers, whose workers do not evaluate by
 * class. */
static void check_metrics(const arguments *a)
{
    bool tallied = a->common.metrics != 0 || a->common.confusion_matrix != NULL;
    const char *option = a->common.metrics != 0 ? "metrics" : "confusion-matrix";
    if (tallied && a->validation_data == NULL && a->common.validation_split == 0)
        hpct_cli_usage(
            "--%s is about validation data: it needs --validation-data or --validation-split",
            option);
    if (tallied && has_servers(a))
        hpct_cli_usage("--%s is not for --strategy parameter-server, whose workers report loss and "
                       "accuracy only: take hpc-train evaluate, with --save-weights",
                       option);
}

/* Refuses options that servers and workers, which do not step together, do not have. */
static void check_servers(const arguments *a)
{
    if (a->fit.check && has_servers(a))
        hpct_cli_usage("--check is not for --strategy parameter-server: it compares nodes whose "
                       "ranks step together");
    if (a->common.batch.size == HPCT_CLI_AUTO && has_servers(a))
        hpct_cli_usage("--batch-size auto is not for --strategy parameter-server, whose workers "
                       "do not wait for one another: give a number");
}

static int run(int argc, char **argv)
{
    static const char doc[] =
        "Trains a model on all ranks: the samples of a step are divided among the tasks of the "
        "Slurm step (or of mpirun), and gradients are summed. SIGINT, SIGTERM, SIGUSR1, SIGUSR2, "
        "SIGHUP and SIGXCPU stop all ranks after the same step, with the weights saved.";
    arguments a = {.fit = {.epochs = 1, .verbose = HPCT_VERBOSE_AUTO}, .gpus = -1};
    const hpct_cli_model *defaults;
    hpct_model *model = NULL;
    hpct_context *context = NULL;
    hpct_fit_result result = {0};
    signal(SIGPIPE, SIG_IGN); /* the reader of standard output may exit: training continues */
    hpct_cli_common *common = &a.common;
    const hpct_cli_table tables[] = {{options, &a},
                                     {hpct_cli_training_options, &a.training},
                                     {hpct_cli_common_options, common},
                                     {NULL, NULL}};
    hpct_cli_parse(HPCT_CLI_FIT, doc, tables, argc, argv);
    hpct_cli_check_strategy(&common->strategy);
    hpct_cli_check_training(&a.training);
    hpct_cli_check_batch(&common->batch);
    keep_inputs(&a);
    apply_gpus(&a);
    if (a.quiet && a.fit.verbose > 0)
        hpct_cli_usage("--quiet and --verbose %d: give one", a.fit.verbose);
    if (a.quiet)
        a.fit.verbose = 0;
    a.fit.strategy = common->strategy;
    a.fit.summary_json = common->summary_json;
    a.fit.timeline = common->timeline;
    if (common->skip_mismatch && common->weights == NULL)
        hpct_cli_usage("--skip-mismatch is for --weights, which is not given");
    a.fit.metrics = common->metrics;
    a.fit.confusion_matrix = common->confusion_matrix;
    if (common->batch.global_size > 0 && a.training.scaling != HPCT_CLI_SCALING_NONE)
        hpct_cli_usage("--lr-scaling is for batches that grow with the ranks; --global-batch-size "
                       "does not");
    if (a.validation_labels != NULL && a.validation_data == NULL)
        hpct_cli_usage("--validation-labels is for --validation-data, which is not given");
    if (common->validation_split > 0 && a.validation_data != NULL)
        hpct_cli_usage("--validation-split and --validation-data are both given: give one");
    check_metrics(&a);
    check_servers(&a);
    if (common->batch.size == HPCT_CLI_AUTO && getenv("HPC_TRAIN_LAUNCH") != NULL)
        hpct_cli_usage("--batch-size auto is not for hpc-train launch: on fewer nodes it would be "
                       "another batch, with which no checkpoint is continued: give a number");
    if (a.fit.initial_epoch >= a.fit.epochs)
        hpct_cli_usage("--initial-epoch %d: --epochs counts all epochs, including those done "
                       "already among them, and must be larger than that, not %d",
                       a.fit.initial_epoch, a.fit.epochs);
    a.training.initial_epoch = a.fit.initial_epoch;
    hpct_cli_set_input(common);
    hpct_status status = hpct_cli_make_model(&model, &defaults, &common->model, -1, 0);
    if (status == HPCT_OK && a.training.top_k > 0 && hpct_model_output_shape(model).size[0] == 1)
        hpct_cli_usage("--top-k: %s has a single output, of which none is the k-th best",
                       hpct_model_name(model));
    if (status == HPCT_OK && hpct_model_count_trainable(model) == 0 &&
        hpct_model_count_parameters(model) > 0)
        hpct_cli_usage("%s: all layers with weights are frozen (--freeze, or trainable false in "
                       "its JSON): nothing is left to train",
                       hpct_model_name(model));
    if (status == HPCT_OK)
        hpct_cli_apply_batch(&common->batch, model, defaults, &a.fit.batch_size,
                             &a.fit.global_batch_size);
    if (status == HPCT_OK) /* with one step, to find errors before data is read */
        status = hpct_cli_compile(model, defaults, &a.training, 1, 1, a.fit.epochs);
    if (status == HPCT_OK)
        status = hpct_model_initialize(model, a.fit.seed);
    status = hpct_cli_open_context(&context, status, model, common->model.device, &common->context,
                                   has_servers(&a));
    if (status == HPCT_OK)
        status = fit(context, model, defaults, &a, &result);
    status = hpct_context_finish(context, "hpc-train", status);
    hpct_model_free(model);
    /* Exit code 75 asks for the run to be continued, which needs a checkpoint, and, so that it is
     * not asked for ever, a step that was done. */
    bool continues = a.fit.checkpoint_dir != NULL && result.signal != SIGINT && result.steps > 0;
    int number = result.signal >= NSIG ? SIGTERM : result.signal;
    return status == HPCT_ERR_STOPPED && !continues ? 128 + number : (int) status;
}

const hpct_command hpct_command_fit = {
    .name = "fit",
    .summary = "train a model",
    .run = run,
};
