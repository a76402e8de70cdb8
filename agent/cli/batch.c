/* The batch size of a step, and --batch-size auto. */
#include "agent/cli/cli.h"

#include <stdio.h>

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
