/* hpc-train bench */
#include "agent/cli/cli.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct arguments {
    hpct_cli_choice model;
    hpct_context_options context;
    hpct_cli_batch batch;
    double momentum;
    hpct_bench_options bench;
} arguments;

enum {
    KEY_DATA = 256,
    KEY_STEPS,
    KEY_MOMENTUM,
    KEY_PROFILE,
    KEY_EMULATE,
    KEY_DILATION,
    KEY_SUMMARY_JSON,
    KEY_TIMELINE
};

static const struct argp_option options[] = {
    {"data", KEY_DATA, "synthetic", 0, "made-up pictures: bench has no others", 2},
    {"steps", KEY_STEPS, "N", 0, "default 100", 2},
    {"momentum", KEY_MOMENTUM, "X", 0, "0 to 1, default 0", 2},
    {"profile", KEY_PROFILE, NULL, 0, "print where the time of a step goes, layer by layer", 2},
    {"emulate", KEY_EMULATE, "FILE", OPTION_ARG_OPTIONAL,
     "sleep for the measured time of each operation instead of computing, and send every message: "
     "for more ranks than there are processors. Times are of this run, or of FILE, which plan "
     "--compute-json wrote",
     2},
    {"dilation", KEY_DILATION, "X", 0,
     "with --emulate: sleep X times as long, for links that are X times as slow", 2},
    {"summary-json", KEY_SUMMARY_JSON, "FILE", 0, "one object with times, at the end", 2},
    {"timeline", KEY_TIMELINE, "FILE", 0,
     "a Chrome trace of up to 50 steps on all ranks, at the end", 2},
    {0},
};

static error_t parse(int key, char *value, struct argp_state *state)
{
    arguments *a = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->model;
        state->child_inputs[1] = &a->batch;
        state->child_inputs[2] = &a->bench.strategy;
        state->child_inputs[3] = &a->context;
        return 0;
    case KEY_DATA:
        if (strcmp(value, "synthetic") != 0)
            hpct_cli_usage("--data: bench makes its pictures up: 'synthetic'; steps with those of "
                           "'%s' are timed by hpc-train fit",
                           value);
        return 0;
    case KEY_STEPS:
        a->bench.steps = (int) hpct_cli_integer("steps", value, 1, 1 << 20);
        return 0;
    case KEY_MOMENTUM:
        a->momentum = hpct_cli_number("momentum", value, 0, 1);
        return 0;
    case KEY_PROFILE:
        a->bench.profile = true;
        return 0;
    case KEY_EMULATE:
        a->bench.emulate = value != NULL ? value : "";
        return 0;
    case KEY_DILATION:
        a->bench.dilation = hpct_cli_number("dilation", value, 1e-3, 1e6);
        return 0;
    case KEY_TIMELINE:
        a->bench.timeline = value;
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
    static const struct argp_child children[] = {{&hpct_cli_model_argp, 0, NULL, 0},
                                                 {&hpct_cli_batch_argp, 0, NULL, 0},
                                                 {&hpct_cli_strategy_argp, 0, NULL, 0},
                                                 {&hpct_cli_comm_argp, 0, NULL, 0},
                                                 {0}};
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
    hpct_status status = hpct_cli_make_model(&model, &defaults, &a.model, tiny, a.momentum);
    if (status == HPCT_OK)
        hpct_cli_apply_batch(&a.batch, model, defaults, &a.bench.batch_size,
                             &a.bench.global_batch_size);
    if (status == HPCT_OK)
        status = hpct_model_initialize(model, 0);
    if (status == HPCT_OK)
        status = hpct_cli_open_context(&context, model, a.model.device, &a.context, false);
    if (status == HPCT_OK)
        status =
            hpct_cli_find_batch(context, model, &(hpct_batch_options){.strategy = a.bench.strategy},
                                true, &a.bench.batch_size);
    if (status == HPCT_OK)
        status = hpct_bench(context, model, &a.bench, &result);
    if (status == HPCT_OK && hpct_context_rank(context) == 0) {
        bool on_gpu = !isnan(result.device_used_mb);
        printf("%s: %.1f images/s, %.3f ms/step (%s), %d rank%s", hpct_model_name(model),
               result.images_per_second, 1e3 * result.step_seconds, on_gpu ? "mean" : "median",
               hpct_context_size(context), hpct_context_size(context) == 1 ? "" : "s");
        if (a.bench.emulate != NULL)
            printf(" (emulated: computation is slept, losses mean nothing)");
        if (a.bench.dilation != 0)
            printf(" (dilated: %g times as long)", a.bench.dilation);
        printf("\n");
        if (on_gpu)
            printf("memory of the GPU: %.1f MiB planned, %.1f MiB taken\n", result.predicted_mb,
                   result.device_used_mb);
    }
    status = hpct_context_finish(context, "hpc-train", status);
    hpct_model_free(model);
    return (int) status;
}

const hpct_command hpct_command_bench = {
    .name = "bench",
    .summary = "how fast a model trains here",
    .run = run,
};
