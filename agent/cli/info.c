/* hpc-train info */
#include "agent/cli/cli.h"

#include <stdio.h>

static error_t parse(int key, char *value, struct argp_state *state)
{
    (void) key;
    (void) value;
    (void) state;
    return ARGP_ERR_UNKNOWN;
}

static int run(int argc, char **argv)
{
    static const struct argp_option options[] = {{0}};
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .doc =
            "Prints what was built in, and what is here: libraries, processor, CPUs by affinity, "
            "and the layout of the step as this task reads it. Under srun each task prints.",
    };
    hpct_cli_parse(&argp, argc, argv, NULL);
    hpct_status status = hpct_info_print(stdout);
    return (int) hpct_context_finish(NULL, "hpc-train", status);
}

const hpct_command hpct_command_info = {
    .name = "info",
    .summary = "what was built in, and what is here",
    .run = run,
};
