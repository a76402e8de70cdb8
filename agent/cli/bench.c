/* hpc-train bench */
#include "agent/cli/cli.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct arguments {
    hpct_cli_common common;
    double momentum;
    hpct_bench_options bench;
} arguments;

#define FILLS arguments

static void set_data(const char *option, const char *value, void *at)
{
    (void) at;
    if (strcmp(value, "synthetic") != 0)
        hpct_cli_usage("--%s: bench accepts 'synthetic' only; steps with the data of "
                       "'%s' are timed by hpc-train fit",
                       option, value);
}

static void set_emulate(const char *option, const char *value, void *at)
{
    (void) option;
    *(const char **) at = value != NULL ? value : "";
}

static const hpct_cli_option options[] = {
    {"data", "synthetic", "synthetic data: the only choice", 2, 0, HPCT_CLI_CALL, .set = set_data},
    {"steps", "N", "number of steps that are timed (default 100)", 2, 0,
     INTEGER(bench.steps, 1, 1 << 20)},
    {"momentum", "X", "momentum of sgd, 0 to 1 (default 0)", 2, 0, NUMBER(momentum, 0, 1)},
    {"profile", NULL, "print the time of each layer", 2, 0, FLAG(bench.profile)},
    {"emulate", "FILE",
     "operations sleep for their measured time, and messages are sent: for more ranks than "
     "processors. Times are measured, or from FILE (plan --compute-json)",
     2, 0, CALL(bench.emulate, set_emulate), .optional = true},
    {"dilation", "X", "with --emulate: sleep X times as long, for links X times as slow", 2, 0,
     NUMBER(bench.dilation, 1e-3, 1e6)},
    {0},
};

static int run(int argc, char **argv)
{
    static const char doc[] = "Times training steps of a model on synthetic data in memory.";
    const double tiny = 1e-6; /* learning rate: the arithmetic of training, with ordinary numbers */
    arguments a = {0};
    const hpct_cli_model *defaults;
    hpct_model *model = NULL;
    hpct_context *context = NULL;
    hpct_bench_result result;
    hpct_cli_common *common = &a.common;
    const hpct_cli_table tables[] = {
        {options, &a}, {hpct_cli_common_options, common}, {NULL, NULL}};
    hpct_cli_parse(HPCT_CLI_BENCH, doc, tables, argc, argv);
    hpct_cli_check_strategy(&common->strategy);
    hpct_cli_check_batch(&common->batch);
    a.bench.strategy = common->strategy;
    a.bench.summary_json = common->summary_json;
    a.bench.timeline = common->timeline;
    const hpct_cli_file outputs[] = {{"--summary-json", a.bench.summary_json},
                                     {"--timeline", a.bench.timeline}},
                        model_file = {"--model", common->model.name};
    hpct_cli_keep(outputs, 2, &model_file, 1);
    hpct_status status = hpct_cli_make_model(&model, &defaults, &common->model, tiny, a.momentum);
    if (status == HPCT_OK)
        hpct_cli_apply_batch(&common->batch, model, defaults, &a.bench.batch_size,
                             &a.bench.global_batch_size);
    if (status == HPCT_OK)
        status = hpct_model_initialize(model, 0);
    status = hpct_cli_open_context(&context, status, model, common->model.device, &common->context,
                                   false);
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
            printf(" (emulated computation: losses are undefined)");
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
    .summary = "time training steps on synthetic data",
    .run = run,
};
