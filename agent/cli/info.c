/* hpc-train info */
#include "agent/cli/cli.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ADMIN = 256 };

static error_t parse(int key, char *value, struct argp_state *state)
{
    (void) value;
    if (key != ADMIN)
        return ARGP_ERR_UNKNOWN;
    *(bool *) state->input = true;
    return 0;
}

/* The plugin's side of the project knows what it needs, and is installed with it. */
static int check_node(void)
{
    static char name[] = HPCT_CHECK;
    char *const arguments[] = {name, NULL};
    execv(name, arguments);
    fprintf(stderr, "hpc-train: %s cannot be started: %s; it is installed with the Slurm plugin\n",
            name, strerror(errno));
    return HPCT_ERR_CONFIG;
}

static int run(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"admin", ADMIN, NULL, 0,
         "Say instead what is wrong with the Slurm plugin on this node; exit status 78 when "
         "something is",
         0},
        {0},
    };
    bool admin = false;
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .doc =
            "Prints what was built in, and what is here: libraries, processor, CPUs by affinity, "
            "and the layout of the step as this task reads it. Under srun each task prints.",
    };
    hpct_cli_parse(&argp, argc, argv, &admin);
    if (admin)
        return check_node();
    hpct_status status = hpct_info_print(stdout);
    return (int) hpct_context_finish(NULL, "hpc-train", status);
}

const hpct_command hpct_command_info = {
    .name = "info",
    .summary = "what was built in, and what is here",
    .run = run,
};
