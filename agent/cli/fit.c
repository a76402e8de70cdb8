/* hpc-train fit */
#include "agent/cli/cli.h"

#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct arguments {
    hpct_cli_choice model;
    hpct_context_options context;
    hpct_cli_batch batch;
    const char *weights, *data, *validation_data;
    bool allow_nan;
    hpct_dataset_options input;
    hpct_cli_training training;
    hpct_fit_options fit;
    int gpus; /* --n-gpus; -1: not given */
} arguments;

enum {
    KEY_WEIGHTS = 256,
    KEY_ALLOW_NAN,
    KEY_DATA,
    KEY_VALIDATION_DATA,
    KEY_SCALE,
    KEY_AUGMENT,
    KEY_EPOCHS,
    KEY_INITIAL_EPOCH,
    KEY_STEPS_PER_EPOCH,
    KEY_SEED,
    KEY_N_GPUS,
    KEY_LOG_DIR,
    KEY_SAVE_WEIGHTS,
    KEY_SUMMARY_JSON,
    KEY_TIMELINE,
    KEY_VERBOSE,
};

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "What to train:", 1},
    {"weights", KEY_WEIGHTS, "FILE", 0,
     "initial weights: .safetensors, or .h5 of Keras (default: drawn anew, by --seed)", 1},
    {"allow-nan", KEY_ALLOW_NAN, NULL, 0, "take --weights with NaN or infinity among them", 1},
    {"data", KEY_DATA, "PATH", 0,
     "a data set (see hpc-train data --help), or synthetic[:SAMPLES] (default: $HPC_TRAIN_DATA, "
     "which --hpc-train-stage sets)",
     1},
    {"validation-data", KEY_VALIDATION_DATA, "PATH", 0,
     "the validation pictures there (or the test ones, if it has no others) are evaluated after "
     "each epoch; may be the same path",
     1},
    {"scale", KEY_SCALE, "NAME", 0,
     "what becomes of a byte x: unit (x/255, the default), symmetric (x/127.5-1, what Keras' "
     "ResNet50V2 weights want) or none",
     1},
    {"augment", KEY_AUGMENT, "LIST", 0,
     "of the training pictures: flip (half of them are mirrored), crop:N (moved by up to N pixels "
     "each way)",
     1},
    {NULL, 0, NULL, 0, "How:", 2},
    {"epochs", KEY_EPOCHS, "N", 0, "default 1", 2},
    {"initial-epoch", KEY_INITIAL_EPOCH, "N", 0,
     "as many of --epochs are done already, by the run that --weights come from: pictures, "
     "schedule "
     "and numbers go on behind them (default 0)",
     2},
    {"steps-per-epoch", KEY_STEPS_PER_EPOCH, "N", 0,
     "default: one pass over the data, the last batch may be short", 2},
    {"seed", KEY_SEED, "N", 0, "initial weights and order of the pictures (default 0)", 2},
    {"n-gpus", KEY_N_GPUS, "N", 0,
     "GPUs of each rank: --replicas N on --device cuda, unless that says cpu, with the learning "
     "rate times the number of GPUs, unless --lr-scaling is given; 0: on the processors",
     2},
    {NULL, 0, NULL, 0, "What to say and write (rank 0 does):", 4},
    {"verbose", KEY_VERBOSE, "0|1|2", 0,
     "0 nothing, 1 a bar, 2 a line an epoch (default: 1 on a terminal, else 2)", 4},
    {"log-dir", KEY_LOG_DIR, "DIR", 0, "history.csv and metrics.jsonl go there", 4},
    {"save-weights", KEY_SAVE_WEIGHTS, "FILE", 0,
     "the trained weights go there, also when stopped by a signal: .weights.h5 for Keras, any "
     "other "
     "name for safetensors",
     4},
    {"summary-json", KEY_SUMMARY_JSON, "FILE", 0, "one object with times and results, at the end",
     4},
    {"timeline", KEY_TIMELINE, "FILE", 0,
     "a Chrome trace of up to 50 steps on all ranks, at the end", 4},
    {0},
};

static error_t parse(int key, char *value, struct argp_state *state)
{
    arguments *a = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->model;
        state->child_inputs[1] = &a->batch;
        state->child_inputs[2] = &a->training;
        state->child_inputs[3] = &a->fit.strategy;
        state->child_inputs[4] = &a->context;
        return 0;
    case KEY_WEIGHTS:
        a->weights = value;
        return 0;
    case KEY_ALLOW_NAN:
        a->allow_nan = true;
        return 0;
    case KEY_DATA:
        a->data = hpct_cli_data("data", value);
        return 0;
    case KEY_VALIDATION_DATA:
        a->validation_data = hpct_cli_data("validation-data", value);
        return 0;
    case KEY_SCALE:
        hpct_cli_scale(value, &a->input);
        return 0;
    case KEY_AUGMENT:
        hpct_cli_augment(value, &a->input);
        return 0;
    case KEY_EPOCHS:
        a->fit.epochs = (int) hpct_cli_integer("epochs", value, 1, INT_MAX);
        return 0;
    case KEY_INITIAL_EPOCH:
        a->fit.initial_epoch = (int) hpct_cli_integer("initial-epoch", value, 0, INT_MAX - 1);
        return 0;
    case KEY_STEPS_PER_EPOCH:
        a->fit.steps_per_epoch = hpct_cli_integer("steps-per-epoch", value, 1, INT_MAX);
        return 0;
    case KEY_SEED:
        a->fit.seed = (uint64_t) hpct_cli_integer("seed", value, 0, INT64_MAX);
        return 0;
    case KEY_N_GPUS:
        a->gpus = (int) hpct_cli_integer("n-gpus", value, 0, HPCT_MAX_REPLICAS);
        return 0;
    case KEY_LOG_DIR:
        a->fit.log_dir = value;
        return 0;
    case KEY_SAVE_WEIGHTS:
        a->fit.save_weights = value;
        return 0;
    case KEY_TIMELINE:
        a->fit.timeline = value;
        return 0;
    case KEY_SUMMARY_JSON:
        a->fit.summary_json = value;
        return 0;
    case KEY_VERBOSE:
        a->fit.verbose = (int) hpct_cli_integer("verbose", value, 0, 2);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static bool is_same_file(const char *a, const char *b)
{
    struct stat of_a, of_b;
    return a != NULL && b != NULL && stat(a, &of_a) == 0 && stat(b, &of_b) == 0 &&
           S_ISREG(of_a.st_mode) && of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

/* Weights may be trained further in their own file; nothing else that is read is written. */
static void keep_inputs(const arguments *a)
{
    const struct {
        const char *option, *path;
    } outputs[] = {{"--save-weights", a->fit.save_weights},
                   {"--summary-json", a->fit.summary_json},
                   {"--timeline", a->fit.timeline}},
      inputs[] = {{"--model", a->model.name},
                  {"--data", a->data},
                  {"--validation-data", a->validation_data},
                  {"--weights", a->weights}};
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < (i == 0 ? 3 : 4); k++) {
            if (is_same_file(outputs[i].path, inputs[k].path))
                hpct_cli_usage("%s %s would replace what %s reads: give it another name",
                               outputs[i].option, outputs[i].path, inputs[k].option);
        }
    }
}

static bool has_servers(const arguments *a)
{
    return a->fit.strategy.name != NULL && strcmp(a->fit.strategy.name, "parameter-server") == 0;
}

/* As users of MirroredStrategy write it: --batch_size 512 --n_gpus 2, and twice the rate of one. */
static void apply_gpus(arguments *a)
{
    const char *device = a->model.device;
    if (a->gpus < 0)
        return;
    if (a->gpus == 0 && device != NULL && strcmp(device, "cuda") == 0)
        hpct_cli_usage("--n-gpus 0 is of the processors, --device cuda is not: leave out one");
    if (a->fit.strategy.replicas > 0 && a->fit.strategy.replicas != a->gpus)
        hpct_cli_usage("--n-gpus %d and --replicas %d are of the same replicas: give one", a->gpus,
                       a->fit.strategy.replicas);
    if (a->gpus > 0)
        hpct_cli_set_replicas(&a->fit.strategy, a->gpus);
    if (device == NULL || strcmp(device, "auto") == 0)
        a->model.device = a->gpus > 0 ? "cuda" : "cpu";
    if (a->gpus > 0 && !a->training.has_scaling && a->batch.global_size == 0)
        a->training.scaling = HPCT_CLI_SCALING_LINEAR;
}

/* Workers whose samples make one step: all, but for those of servers that wait for fewer. */
static int sharers(const hpct_context *context, const arguments *a)
{
    const hpct_strategy_options *s = &a->fit.strategy;
    int workers = hpct_context_workers(context);
    if (!has_servers(a))
        return workers;
    /* more backups than workers: hpct_fit refuses that */
    return s->ps_synchronous && s->ps_backup_workers < workers ? workers - s->ps_backup_workers : 1;
}

/* Samples of a step. */
static double step_samples(const hpct_context *context, const arguments *a)
{
    bool shared = has_servers(a) && !a->fit.strategy.ps_synchronous;
    if (a->fit.global_batch_size == 0)
        return (double) a->fit.batch_size * sharers(context, a);
    return shared ? ceil((double) a->fit.global_batch_size / hpct_context_workers(context))
                  : a->fit.global_batch_size;
}

/* What the learning rate is scaled by. */
static int scaled_by(const hpct_context *context, const arguments *a)
{
    return sharers(context, a) * (a->gpus > 0 ? a->gpus : 1);
}

/* A batch of more pictures than there are is taken as Keras takes it. */
static void say_of_batch(const hpct_dataset *train, const arguments *a, double samples)
{
    double pictures = (double) hpct_dataset_size(train);
    if (samples <= pictures)
        return;
    if (a->fit.steps_per_epoch > 0)
        printf("a batch of %.0f has more pictures than the data: each is %.1f times in a step\n",
               samples, samples / pictures);
    else
        printf(
            "a batch of %.0f has more pictures than the data: an epoch is one step of all %.0f\n",
            samples, pictures);
}

static void say_what_begins(hpct_context *context, const hpct_model *model,
                            const hpct_dataset *train, const arguments *a)
{
    int ranks = hpct_context_workers(context), replicas = a->fit.strategy.replicas;
    char of_each[32] = "";
    if (!hpct_context_leads(context))
        return;
    hpct_dataset_announce(model, train, a->fit.validation, a->fit.verbose != 0 ? stdout : NULL,
                          stderr);
    if (a->fit.verbose == 0)
        return;
    if (replicas > 1)
        snprintf(of_each, sizeof of_each, " of %d replicas", replicas);
    printf("%s: %zu parameters, %zu pictures, %d %s%s%s, global batch %.0f\n",
           hpct_model_name(model), hpct_model_count_parameters(model), hpct_dataset_size(train),
           ranks, has_servers(a) ? "worker" : "rank", ranks == 1 ? "" : "s", of_each,
           step_samples(context, a));
    hpct_cli_say_connected(context);
    if (a->gpus > 0 && a->training.scaling == HPCT_CLI_SCALING_LINEAR && scaled_by(context, a) > 1)
        printf("learning rate times %d, the number of GPUs (--lr-scaling none leaves it)\n",
               scaled_by(context, a));
    say_of_batch(train, a, step_samples(context, a));
    fflush(stdout);
}

/* Schedules are given in epochs: now it is known how many steps one has. */
static hpct_status compile(hpct_context *context, hpct_model *model, const hpct_cli_model *defaults,
                           const hpct_dataset *train, const arguments *a)
{
    int ranks = scaled_by(context, a);
    double batch = step_samples(context, a);
    double steps = a->fit.steps_per_epoch > 0 ? (double) a->fit.steps_per_epoch
                                              : ceil((double) hpct_dataset_size(train) / batch);
    return hpct_cli_compile(model, defaults, &a->training, ranks, steps, a->fit.epochs);
}

/* The optimizer's part of the memory does not depend on the number of steps, which is not known
 * yet. */
static hpct_status find_batch(hpct_context *context, hpct_model *model,
                              const hpct_cli_model *defaults, const hpct_dataset *train,
                              const hpct_dataset *validation, arguments *a)
{
    hpct_status status = hpct_cli_compile(model, defaults, &a->training, 1, 1, a->fit.epochs);
    if (status == HPCT_OK)
        status = hpct_cli_find_batch(context, model,
                                     &(hpct_batch_options){.data = train,
                                                           .validation = validation,
                                                           .strategy = a->fit.strategy},
                                     a->fit.verbose != 0, &a->fit.batch_size);
    return status;
}

/* What the data cannot change; --batch-size auto finds a batch that each replica has a part of. */
static hpct_status check_early(const hpct_context *context, const arguments *a)
{
    hpct_fit_options early = a->fit;
    if (early.batch_size == HPCT_CLI_AUTO)
        early.batch_size = early.strategy.replicas > 0 ? early.strategy.replicas : 1;
    return hpct_fit_check(context, &early);
}

static hpct_status fit(hpct_context *context, hpct_model *model, const hpct_cli_model *defaults,
                       arguments *a, hpct_fit_result *result)
{
    hpct_dataset *train = NULL, *validation = NULL;
    const char *path = a->data != NULL ? a->data : hpct_context_data(context);
    hpct_status status = check_early(context, a);
    /* Else the others get them from rank 0. */
    if (status == HPCT_OK && a->weights != NULL &&
        (hpct_context_rank(context) == 0 || has_servers(a)))
        status = hpct_cli_load_weights(model, a->weights, a->allow_nan);
    if (status == HPCT_OK)
        status = hpct_cli_open_data(&train, path, HPCT_TRAIN, model, &a->input);
    if (status == HPCT_OK && a->validation_data != NULL)
        status =
            hpct_cli_open_data(&validation, a->validation_data, HPCT_VALIDATION, model, &a->input);
    if (status == HPCT_OK && validation != NULL)
        status = hpct_dataset_number_as(validation, train);
    status = hpct_context_agree(context, status);
    if (status == HPCT_OK && a->fit.batch_size == HPCT_CLI_AUTO)
        status = find_batch(context, model, defaults, train, validation, a);
    if (status == HPCT_OK)
        status = compile(context, model, defaults, train, a);
    if (status == HPCT_OK) {
        a->fit.validation = validation;
        say_what_begins(context, model, train, a);
        status = hpct_fit(context, model, train, &a->fit, result);
    }
    hpct_dataset_free(train);
    hpct_dataset_free(validation);
    return status;
}

static int run(int argc, char **argv)
{
    static const struct argp_child children[] = {
        {&hpct_cli_model_argp, 0, NULL, 0},    {&hpct_cli_batch_argp, 0, NULL, 0},
        {&hpct_cli_training_argp, 0, NULL, 0}, {&hpct_cli_strategy_argp, 0, NULL, 0},
        {&hpct_cli_comm_argp, 0, NULL, 0},     {0}};
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .children = children,
        .doc = "Trains a model on all ranks: one step's pictures are shared among the tasks of the "
               "Slurm step (or of mpirun), and gradients are summed after each step. SIGINT, "
               "SIGTERM, SIGUSR1, SIGUSR2, SIGHUP and SIGXCPU stop all ranks after the same step, "
               "with the weights saved.",
    };
    arguments a = {.fit = {.epochs = 1, .verbose = HPCT_VERBOSE_AUTO}, .gpus = -1};
    const hpct_cli_model *defaults;
    hpct_model *model = NULL;
    hpct_context *context = NULL;
    hpct_fit_result result = {0};
    signal(SIGPIPE, SIG_IGN); /* what is printed may find no reader: training goes on */
    hpct_cli_parse(&argp, argc, argv, &a);
    keep_inputs(&a);
    apply_gpus(&a);
    if (a.batch.global_size > 0 && a.training.scaling != HPCT_CLI_SCALING_NONE)
        hpct_cli_usage("--lr-scaling is for batches that grow with the ranks; --global-batch-size "
                       "does not");
    if (a.batch.size == HPCT_CLI_AUTO && has_servers(&a))
        hpct_cli_usage("--batch-size auto is not for --strategy parameter-server, whose workers "
                       "do not wait for one another: give a number");
    if (a.fit.initial_epoch >= a.fit.epochs)
        hpct_cli_usage("--initial-epoch %d: --epochs counts all epochs, those that are done "
                       "already among them, and must be larger than that, not %d",
                       a.fit.initial_epoch, a.fit.epochs);
    a.training.initial_epoch = a.fit.initial_epoch;
    a.input.width = a.model.width;
    a.input.height = a.model.height;
    hpct_status status = hpct_cli_make_model(&model, &defaults, &a.model, -1, 0);
    if (status == HPCT_OK && a.training.top_k > 0 && hpct_model_output_shape(model).size[0] == 1)
        hpct_cli_usage("--top-k: %s has a single output, of which none is the k-th best",
                       hpct_model_name(model));
    if (status == HPCT_OK)
        hpct_cli_apply_batch(&a.batch, model, defaults, &a.fit.batch_size,
                             &a.fit.global_batch_size);
    if (status == HPCT_OK) /* steps are not known yet, and the rest is checked before any data */
        status = hpct_cli_compile(model, defaults, &a.training, 1, 1, a.fit.epochs);
    if (status == HPCT_OK)
        status = hpct_model_initialize(model, a.fit.seed);
    if (status == HPCT_OK)
        status =
            hpct_cli_open_context(&context, model, a.model.device, &a.context, has_servers(&a));
    if (status == HPCT_OK)
        status = fit(context, model, defaults, &a, &result);
    status = hpct_context_finish(context, "hpc-train", status);
    hpct_model_free(model);
    /* Exit code 75 would ask for a requeue, which needs a checkpoint to go on from. */
    return status == HPCT_ERR_STOPPED ? 128 + result.signal : (int) status;
}

const hpct_command hpct_command_fit = {
    .name = "fit",
    .summary = "train a model",
    .run = run,
};
