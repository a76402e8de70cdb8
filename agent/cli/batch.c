/* The batch of a step and what is done with it: options of the subcommands that train; --batch-size
 * auto.
 */
#include "agent/cli/cli.h"

#include <stdio.h>
#include <string.h>

enum {
    KEY_BATCH_SIZE = 1280,
    KEY_GLOBAL_BATCH_SIZE,
    KEY_SYNC_BATCH_NORM,
};

static const struct argp_option entries[] = {
    {"batch-size", KEY_BATCH_SIZE, "N|auto", 0,
     "pictures per rank and step (default: mnist-cnn 64, mnist-convnet 100, resnets 32); auto: the "
     "largest power of two that fits the memory",
     2},
    {"global-batch-size", KEY_GLOBAL_BATCH_SIZE, "N", 0,
     "pictures per step over all ranks, instead of --batch-size", 2},
    {"sync-batch-norm", KEY_SYNC_BATCH_NORM, NULL, 0,
     "BatchNormalization takes its statistics from the pictures of all ranks", 2},
    {0},
};

static error_t parse(int key, char *value, struct argp_state *state)
{
    hpct_cli_batch *b = state->input;
    switch (key) {
    case KEY_BATCH_SIZE:
        b->size = hpct_cli_batch_size(value);
        return 0;
    case KEY_GLOBAL_BATCH_SIZE:
        b->global_size = (int) hpct_cli_integer("global-batch-size", value, 1, 1 << 28);
        return 0;
    case KEY_SYNC_BATCH_NORM:
        b->sync_batch_norm = true;
        return 0;
    case ARGP_KEY_END:
        if (b->size != 0 && b->global_size > 0)
            hpct_cli_usage(
                "--batch-size (per rank) and --global-batch-size are both given: give one");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp hpct_cli_batch_argp = {.options = entries, .parser = parse};

void hpct_cli_apply_batch(const hpct_cli_batch *batch, hpct_model *model,
                          const hpct_cli_model *defaults, int *batch_size, int *global_batch_size)
{
    *batch_size = batch->size;
    *global_batch_size = batch->global_size;
    if (batch->size == 0 && batch->global_size == 0)
        *batch_size = defaults->batch_size;
    if (batch->sync_batch_norm)
        hpct_model_synchronize_batch_normalization(model);
}

int hpct_cli_batch_size(const char *value)
{
    if (strcmp(value, "auto") == 0)
        return HPCT_CLI_AUTO;
    return (int) hpct_cli_integer("batch-size", value, 1, 1 << 20);
}

hpct_status hpct_cli_find_batch(hpct_context *context, hpct_model *model,
                                const hpct_batch_options *options, bool speaks, int *batch_size)
{
    hpct_batch_choice choice;
    if (*batch_size != HPCT_CLI_AUTO)
        return HPCT_OK;
    hpct_status status = hpct_batch_choose(context, model, options, &choice);
    if (status != HPCT_OK)
        return status;
    *batch_size = choice.batch_size;
    if (speaks && (context == NULL || hpct_context_rank(context) == 0)) {
        puts(choice.line);
        fflush(stdout);
    }
    return HPCT_OK;
}
