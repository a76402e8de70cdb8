/* hpc-train summary */
#include "agent/cli/cli.h"

#include <stdio.h>

typedef struct arguments {
    hpct_cli_choice model;
    int batch_size;
} arguments;

enum { KEY_BATCH_SIZE = 256 };

static const struct argp_option options[] = {
    {"batch-size", KEY_BATCH_SIZE, "N|auto", 0,
     "pictures per rank and step, for the memory (default: fit's); auto: what fits here", 1},
    {0},
};

static error_t parse(int key, char *value, struct argp_state *state)
{
    arguments *a = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->model;
        return 0;
    case KEY_BATCH_SIZE:
        a->batch_size = hpct_cli_batch_size(value);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int run(int argc, char **argv)
{
    static const struct argp_child children[] = {{&hpct_cli_model_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .children = children,
        .doc = "Prints a model's layers and parameters as Keras does, then what each layer costs, "
               "and the memory that training it takes.",
    };
    arguments a = {0};
    const hpct_cli_model *defaults;
    hpct_model *model = NULL;
    hpct_cli_parse(&argp, argc, argv, &a);
    hpct_status status = hpct_cli_make_model(&model, &defaults, &a.model, -1, 0);
    if (hpct_context_rank_hint() == 0 && status == HPCT_OK)
        status = hpct_cli_set_device(model, a.model.device);
    if (hpct_context_rank_hint() == 0 && status == HPCT_OK)
        status = hpct_model_summary(model, stdout);
    if (status == HPCT_OK && a.batch_size == 0)
        a.batch_size = defaults->batch_size;
    if (hpct_context_rank_hint() == 0 && status == HPCT_OK)
        status = hpct_cli_find_batch(NULL, model, &(hpct_batch_options){0}, true, &a.batch_size);
    if (hpct_context_rank_hint() == 0 && status == HPCT_OK)
        status = hpct_model_print_costs(model, a.batch_size, stdout);
    if (status != HPCT_OK)
        fprintf(stderr, "hpc-train: %s\n", hpct_last_error());
    hpct_model_free(model);
    return (int) status;
}

const hpct_command hpct_command_summary = {
    .name = "summary",
    .summary = "a model's layers, parameters, costs and memory",
    .run = run,
};
