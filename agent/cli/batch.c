/* --batch-size N or auto. */
#include "agent/cli/cli.h"

#include <stdio.h>
#include <string.h>

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
