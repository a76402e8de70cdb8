/* hpc-train plan */
#include "agent/cli/cli.h"

#include <stdio.h>
#include <string.h>

#define MOST_NUMBERS 512

typedef struct arguments {
    hpct_cli_choice model;
    hpct_context_options context;
    hpct_cli_batch batch;
    const char *json;
    bool has_network;
    int nodes[MOST_NUMBERS];
    hpct_plan_options plan;
} arguments;

enum {
    KEY_NODES = 256,
    KEY_NETWORK,
    KEY_COMPUTE,
    KEY_COMPUTE_JSON,
    KEY_ALLOW_LOSSY,
    KEY_LOCAL_STEPS,
    KEY_POWERSGD_RANK,
    KEY_JSON,
};

static const struct argp_option options[] = {
    {"nodes", KEY_NODES, "LIST", 0,
     "numbers of nodes, one rank each: 1,2,4 or 1-8 or 1,2,...,64 (default 1,2,...,1024)", 2},
    {"network", KEY_NETWORK, "LATENCY,BANDWIDTH|measured", 0,
     "of the links, such as 50us,1gbit; measured: between the ranks that run this (default; for "
     "one rank alone: 50us,1gbit and 25us,10gbit)",
     2},
    {"compute", KEY_COMPUTE, "FILE|measured", 0,
     "times of the operations: measured (default), or FILE from --compute-json", 2},
    {"compute-json", KEY_COMPUTE_JSON, "FILE", 0,
     "the measured times go there, for --compute and bench --emulate", 2},
    {"allow-lossy", KEY_ALLOW_LOSSY, NULL, 0, "the best may be a strategy that changes the result",
     2},
    {"local-steps", KEY_LOCAL_STEPS, "N", 0, "steps between two averages of local-sgd (default 8)",
     2},
    {"powersgd-rank", KEY_POWERSGD_RANK, "N", 0, "of powersgd's matrices (default 4)", 2},
    {"json", KEY_JSON, "FILE", 0, "one object with all numbers", 2},
    {0},
};

static void parse_network(arguments *a, const char *value)
{
    a->has_network = true;
    a->plan.latency_seconds = a->plan.bytes_per_second = 0;
    if (strcmp(value, "measured") == 0)
        return;
    if (hpct_plan_parse_network(value, &a->plan.latency_seconds, &a->plan.bytes_per_second) !=
        HPCT_OK)
        hpct_cli_usage("--network: %s", hpct_last_error());
}

static void parse_nodes(arguments *a, const char *value)
{
    if (hpct_plan_parse_nodes(value, a->nodes, MOST_NUMBERS, &a->plan.num_nodes) != HPCT_OK)
        hpct_cli_usage("--nodes: %s", hpct_last_error());
}

static void check(const arguments *a)
{
    if (a->batch.size == HPCT_CLI_AUTO)
        hpct_cli_usage("--batch-size: auto is not for a plan: give a number");
    if (a->plan.compute != NULL && a->plan.compute_json != NULL)
        hpct_cli_usage("--compute-json is for times that are measured, not for those of a file");
}

static error_t parse(int key, char *value, struct argp_state *state)
{
    arguments *a = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->model;
        state->child_inputs[1] = &a->batch;
        state->child_inputs[2] = &a->context;
        return 0;
    case KEY_NODES:
        parse_nodes(a, value);
        return 0;
    case KEY_NETWORK:
        parse_network(a, value);
        return 0;
    case KEY_COMPUTE:
        a->plan.compute = strcmp(value, "measured") == 0 ? NULL : value;
        return 0;
    case KEY_COMPUTE_JSON:
        a->plan.compute_json = value;
        return 0;
    case KEY_ALLOW_LOSSY:
        a->plan.allow_lossy = true;
        return 0;
    case KEY_LOCAL_STEPS:
        a->plan.local_steps = (int) hpct_cli_integer("local-steps", value, 1, 1 << 20);
        return 0;
    case KEY_POWERSGD_RANK:
        a->plan.powersgd_rank = (int) hpct_cli_integer("powersgd-rank", value, 1, 1 << 10);
        return 0;
    case KEY_JSON:
        a->json = value;
        return 0;
    case ARGP_KEY_END:
        check(a);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static hpct_status tell(hpct_context *context, const hpct_plan *plan, const char *json)
{
    if (hpct_context_rank(context) != 0)
        return HPCT_OK;
    hpct_plan_print(plan, stdout);
    fflush(stdout);
    return json != NULL ? hpct_plan_write(plan, json) : HPCT_OK;
}

static int run(int argc, char **argv)
{
    static const struct argp_child children[] = {{&hpct_cli_model_argp, 0, NULL, 0},
                                                 {&hpct_cli_batch_argp, 0, NULL, 0},
                                                 {&hpct_cli_comm_argp, 0, NULL, 0},
                                                 {0}};
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .children = children,
        .doc =
            "Predicts how fast a model would train on so many nodes, and by which strategy, from "
            "the measured times of its operations and a network.",
    };
    const double tiny = 1e-6; /* learning rate, as in bench */
    arguments a = {0};
    const hpct_cli_model *defaults;
    hpct_model *model = NULL;
    hpct_context *context = NULL;
    hpct_plan *plan = NULL;
    hpct_cli_parse(&argp, argc, argv, &a);
    if (a.model.device != NULL && strcmp(a.model.device, "cuda") == 0)
        hpct_cli_usage("--device: plan measures and predicts the steps of processors alone: cpu");
    if (a.plan.num_nodes == 0)
        parse_nodes(&a, "1,2,...,1024");
    a.plan.nodes = a.nodes;
    a.plan.assume = !a.has_network;
    hpct_status status = hpct_cli_make_model(&model, &defaults, &a.model, tiny, 0);
    if (status == HPCT_OK)
        hpct_cli_apply_batch(&a.batch, model, defaults, &a.plan.batch_size,
                             &a.plan.global_batch_size);
    if (status == HPCT_OK)
        status = hpct_model_initialize(model, 0);
    if (status == HPCT_OK)
        status = hpct_cli_open_context(&context, model, "cpu", &a.context, false);
    if (status == HPCT_OK)
        status = hpct_plan_make(&plan, context, model, &a.plan);
    if (status == HPCT_OK)
        status = hpct_context_agree(context, tell(context, plan, a.json));
    status = hpct_context_finish(context, "hpc-train", status);
    hpct_plan_free(plan);
    hpct_model_free(model);
    return (int) status;
}

const hpct_command hpct_command_plan = {
    .name = "plan",
    .summary = "how fast a model would train on more nodes",
    .run = run,
};
