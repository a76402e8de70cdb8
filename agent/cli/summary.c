/* hpc-train summary */
#include "agent/cli/cli.h"

#include <stdio.h>

static int run(int argc, char **argv)
{
    static const char doc[] = "Prints a model's layers and parameters as Keras does, then FLOPs "
                              "per layer and the memory of training.";
    hpct_cli_common a = {0};
    static const hpct_cli_option options[] = {
        {.name = "plan",
         .doc = "print also what a training step runs: nodes, fusions, memory offsets",
         .group = 1,
         .kind = HPCT_CLI_FLAG},
        {0},
    };
    bool plan = false;
    const hpct_cli_table tables[] = {{hpct_cli_common_options, &a}, {options, &plan}, {NULL, NULL}};
    const hpct_cli_model *defaults;
    hpct_model *model = NULL;
    hpct_cli_parse(HPCT_CLI_SUMMARY, doc, tables, argc, argv);
    if (hpct_context_rank_hint() != 0)
        return HPCT_OK;
    hpct_status status = hpct_cli_make_model(&model, &defaults, &a.model, -1, 0);
    if (status == HPCT_OK)
        status = hpct_cli_set_device(model, a.model.device);
    if (status == HPCT_OK)
        status = hpct_model_summary(model, stdout);
    if (status == HPCT_OK && a.batch.size == 0)
        a.batch.size = defaults->batch_size;
    if (status == HPCT_OK)
        status = hpct_cli_find_batch(NULL, model, &(hpct_batch_options){0}, true, &a.batch.size);
    if (status == HPCT_OK)
        status = hpct_model_print_costs(model, a.batch.size, stdout);
    if (status == HPCT_OK && plan)
        status = hpct_model_print_plan(model, a.batch.size, stdout);
    if (status != HPCT_OK)
        fprintf(stderr, "hpc-train: %s\n", hpct_last_error());
    hpct_model_free(model);
    return (int) status;
}

const hpct_command hpct_command_summary = {
    .name = "summary",
    .summary = "show layers, parameters, FLOPs and memory of a model",
    .run = run,
};
