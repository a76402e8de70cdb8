/* hpc-train bench */
#include "agent/cli/cli.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

typedef struct arguments {
    const char *model;
    int classes;
    hpct_precision precision;
    bool sync_batch_norm;
    hpct_dataset_options size; /* of the pictures */
    double momentum;
    hpct_bench_options bench;
} arguments;

enum {
    KEY_MODEL = 256,
    KEY_CLASSES,
    KEY_RESIZE,
    KEY_BATCH_SIZE,
    KEY_GLOBAL_BATCH_SIZE,
    KEY_STEPS,
    KEY_MOMENTUM,
    KEY_SYNC_BATCH_NORM,
    KEY_DEVICE,
    KEY_PRECISION,
    KEY_PROFILE,
    KEY_SUMMARY_JSON,
    KEY_EMULATE,
};

static const struct argp_option options[] = {
    {"model", KEY_MODEL, "NAME|FILE", 0,
     "mnist-cnn, mnist-convnet, resnet50, resnet50v2, resnet101v2, resnet152v2, or FILE.json as "
     "Keras' to_json() wrote it",
     0},
    {"classes", KEY_CLASSES, "N", 0, "of the model (default: mnist 10, resnets 1000)", 0},
    {"resize", KEY_RESIZE, "WxH", 0, "size of a resnet's pictures (default 224x224)", 0},
    {"batch-size", KEY_BATCH_SIZE, "N|auto", 0,
     "pictures per rank and step (default: mnist-cnn 64, mnist-convnet 100, resnets 32); auto: the "
     "largest power of two that fits the memory",
     0},
    {"global-batch-size", KEY_GLOBAL_BATCH_SIZE, "N", 0,
     "pictures per step over all ranks, instead of --batch-size", 0},
    {"steps", KEY_STEPS, "N", 0, "default 100", 0},
    {"momentum", KEY_MOMENTUM, "X", 0, "0 to 1, default 0", 0},
    {"sync-batch-norm", KEY_SYNC_BATCH_NORM, NULL, 0,
     "BatchNormalization takes its statistics from the pictures of all ranks", 0},
    {"device", KEY_DEVICE, "NAME", 0, "auto or cpu", 0},
    {"precision", KEY_PRECISION, "NAME", 0, HPCT_CLI_PRECISION_HELP, 0},
    {"profile", KEY_PROFILE, NULL, 0, "print where the time of a step goes, layer by layer", 0},
    {"emulate", KEY_EMULATE, "FILE", OPTION_ARG_OPTIONAL,
     "sleep for the measured time of each operation instead of computing, and send every message: "
     "for more ranks than there are processors. Times are of this run, or of FILE, which plan "
     "--compute-json wrote",
     0},
    {"summary-json", KEY_SUMMARY_JSON, "FILE", 0, "one object with times, at the end", 0},
    {0},
};

static error_t parse(int key, char *value, struct argp_state *state)
{
    arguments *a = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->bench.strategy;
        return 0;
    case KEY_MODEL:
        a->model = value;
        return 0;
    case KEY_CLASSES:
        a->classes = (int) hpct_cli_integer("classes", value, 1, 1 << 20);
        return 0;
    case KEY_RESIZE:
        hpct_cli_resize(value, &a->size);
        return 0;
    case KEY_BATCH_SIZE:
        a->bench.batch_size = hpct_cli_batch_size(value);
        return 0;
    case KEY_GLOBAL_BATCH_SIZE:
        a->bench.global_batch_size = (int) hpct_cli_integer("global-batch-size", value, 1, 1 << 28);
        return 0;
    case KEY_STEPS:
        a->bench.steps = (int) hpct_cli_integer("steps", value, 1, 1 << 20);
        return 0;
    case KEY_MOMENTUM:
        a->momentum = hpct_cli_number("momentum", value, 0, 1);
        return 0;
    case KEY_SYNC_BATCH_NORM:
        a->sync_batch_norm = true;
        return 0;
    case KEY_DEVICE:
        if (strcmp(value, "auto") != 0 && strcmp(value, "cpu") != 0)
            hpct_cli_usage("--device: '%s' is unknown; there is: auto, cpu", value);
        return 0;
    case KEY_PRECISION:
        a->precision = hpct_cli_precision(value);
        return 0;
    case KEY_PROFILE:
        a->bench.profile = true;
        return 0;
    case KEY_EMULATE:
        a->bench.emulate = value != NULL ? value : "";
        return 0;
    case KEY_SUMMARY_JSON:
        a->bench.summary_json = value;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int run(int argc, char **argv)
{
    static const struct argp_child children[] = {{&hpct_cli_strategy_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .children = children,
        .doc = "Trains a model for some steps on made-up pictures that are in memory already, and "
               "says how many a second that is.",
    };
    const double tiny = 1e-6; /* learning rate: the arithmetic of training, on ordinary numbers */
    arguments a = {0};
    const hpct_cli_model *defaults;
    hpct_model *model = NULL;
    hpct_context *context = NULL;
    hpct_bench_result result;
    hpct_cli_parse(&argp, argc, argv, &a);
    if (a.bench.batch_size != 0 && a.bench.global_batch_size > 0)
        hpct_cli_usage("--batch-size (per rank) and --global-batch-size are both given: give one");
    hpct_status status = hpct_cli_make_model(
        &model, &defaults,
        &(hpct_cli_choice){a.model, a.classes, a.size.width, a.size.height, a.precision}, tiny,
        a.momentum);
    if (status == HPCT_OK && a.sync_batch_norm)
        hpct_model_synchronize_batch_normalization(model);
    if (status == HPCT_OK && a.bench.batch_size == 0 && a.bench.global_batch_size == 0)
        a.bench.batch_size = defaults->batch_size;
    if (status == HPCT_OK)
        status = hpct_model_initialize(model, 0);
    if (status == HPCT_OK)
        status = hpct_cli_open_context(&context, model);
    if (status == HPCT_OK)
        status =
            hpct_cli_find_batch(context, model, &(hpct_batch_options){.strategy = a.bench.strategy},
                                true, &a.bench.batch_size);
    if (status == HPCT_OK)
        status = hpct_bench(context, model, &a.bench, &result);
    if (status == HPCT_OK && hpct_context_rank(context) == 0)
        printf("%s: %.1f images/s, %.3f ms/step (median), %d rank%s%s\n", hpct_model_name(model),
               result.images_per_second, 1e3 * result.step_seconds, hpct_context_size(context),
               hpct_context_size(context) == 1 ? "" : "s",
               a.bench.emulate != NULL ? " (emulated: computation is slept, losses mean nothing)"
                                       : "");
    status = hpct_context_finish(context, "hpc-train", status);
    hpct_model_free(model);
    return (int) status;
}

const hpct_command hpct_command_bench = {
    .name = "bench",
    .summary = "how fast a model trains here",
    .run = run,
};
