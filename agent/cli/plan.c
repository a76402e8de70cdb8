/* hpc-train plan */
#include "agent/cli/cli.h"

#include <stdio.h>
#include <string.h>

#define MOST_NUMBERS 512

typedef struct arguments {
    hpct_cli_common common;
    bool has_network;
    int nodes[MOST_NUMBERS];
    hpct_plan_options plan;
} arguments;

#define FILLS arguments

static void set_network(const char *option, const char *value, void *at)
{
    arguments *a = at;
    a->has_network = true;
    a->plan.latency_seconds = a->plan.bytes_per_second = 0;
    if (strcmp(value, "measured") == 0)
        return;
    if (hpct_plan_parse_network(value, &a->plan.latency_seconds, &a->plan.bytes_per_second) !=
        HPCT_OK)
        hpct_cli_usage("--%s: %s", option, hpct_last_error());
}

static void set_nodes(const char *option, const char *value, void *at)
{
    arguments *a = at;
    if (hpct_plan_parse_nodes(value, a->nodes, MOST_NUMBERS, &a->plan.num_nodes) != HPCT_OK)
        hpct_cli_usage("--%s: %s", option, hpct_last_error());
}

static void set_compute(const char *option, const char *value, void *at)
{
    (void) option;
    *(const char **) at = strcmp(value, "measured") == 0 ? NULL : value;
}

static const hpct_cli_option options[] = {
    {"nodes", "LIST",
     "numbers of nodes, one rank each: 1,2,4 or 1-8 or 1,2,...,64 (default 1,2,...,1024)", 2, 0,
     HPCT_CLI_CALL, .set = set_nodes},
    {"network", "L,B|measured",
     "latency L and bandwidth B of the links, such as 50us,1gbit; measured: between the ranks of "
     "this run (default; for one rank: 50us,1gbit and 25us,10gbit)",
     2, 0, HPCT_CLI_CALL, .set = set_network},
    {"compute", "FILE|measured", "operation times: measured (default), or FILE from --compute-json",
     2, 0, CALL(plan.compute, set_compute)},
    {"compute-json", "FILE", "write the measured times, for --compute and bench --emulate", 2, 0,
     TEXT(plan.compute_json)},
    {"allow-lossy", NULL, "let the best strategy be a lossy one", 2, 0, FLAG(plan.allow_lossy)},
    {"local-steps", "N", "local-sgd: steps between averages (default 8)", 2, 0,
     INTEGER(plan.local_steps, 1, 1 << 20)},
    {"powersgd-rank", "N", "rank of PowerSGD (default 4)", 2, 0,
     INTEGER(plan.powersgd_rank, 1, 1 << 10)},
    {"json", "FILE", "write one JSON object with all numbers", 2, 0, TEXT(plan.json)},
    {0},
};

static void check(const arguments *a)
{
    if (a->common.batch.size == HPCT_CLI_AUTO)
        hpct_cli_usage("--batch-size: plan needs a number, not auto");
    if (a->plan.compute != NULL && a->plan.compute_json != NULL)
        hpct_cli_usage("--compute-json writes measured times: leave out --compute FILE");
}

static hpct_status print_plan(hpct_context *context, const hpct_plan *plan, const char *json)
{
    if (hpct_context_rank(context) != 0)
        return HPCT_OK;
    hpct_plan_print(plan, stdout);
    fflush(stdout);
    return json != NULL ? hpct_plan_write(plan, json) : HPCT_OK;
}

static int run(int argc, char **argv)
{
    static const char doc[] = "Predicts step time, speed-up and the best strategy on numbers of "
                              "nodes, from measured operation times and a network.";
    const double tiny = 1e-6; /* learning rate, see bench.c */
    arguments a = {0};
    const hpct_cli_model *defaults;
    hpct_model *model = NULL;
    hpct_context *context = NULL;
    hpct_plan *plan = NULL;
    hpct_cli_common *common = &a.common;
    const hpct_cli_table tables[] = {
        {options, &a}, {hpct_cli_common_options, common}, {NULL, NULL}};
    hpct_cli_parse(HPCT_CLI_PLAN, doc, tables, argc, argv);
    hpct_cli_check_batch(&common->batch);
    check(&a);
    const hpct_cli_file outputs[] = {{"--json", a.plan.json},
                                     {"--compute-json", a.plan.compute_json}},
                        inputs[] = {{"--model", common->model.name}, {"--compute", a.plan.compute}};
    hpct_cli_keep(outputs, 2, inputs, 2);
    if (common->model.device != NULL && strcmp(common->model.device, "cuda") == 0)
        hpct_cli_usage("--device: plan supports CPUs only: cpu");
    if (a.plan.num_nodes == 0)
        set_nodes("nodes", "1,2,...,1024", &a);
    a.plan.nodes = a.nodes;
    a.plan.assume = !a.has_network;
    hpct_status status = hpct_cli_make_model(&model, &defaults, &common->model, tiny, 0);
    if (status == HPCT_OK)
        hpct_cli_apply_batch(&common->batch, model, defaults, &a.plan.batch_size,
                             &a.plan.global_batch_size);
    if (status == HPCT_OK)
        status = hpct_model_initialize(model, 0);
    status = hpct_cli_open_context(&context, status, model, "cpu", &common->context, false);
    if (status == HPCT_OK)
        status = hpct_plan_make(&plan, context, model, &a.plan);
    if (status == HPCT_OK)
        status = hpct_context_agree(context, print_plan(context, plan, a.plan.json));
    status = hpct_context_finish(context, "hpc-train", status);
    hpct_plan_free(plan);
    hpct_model_free(model);
    return (int) status;
}

const hpct_command hpct_command_plan = {
    .name = "plan",
    .summary = "predict speed and the best strategy on numbers of nodes",
    .run = run,
};
