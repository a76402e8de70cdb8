/* hpc-train info */
#include "agent/cli/cli.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Runs hpc-train-check, which knows the plugin's requirements and is installed with it. */
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
    static const hpct_cli_option options[] = {
        {.name = "admin",
         .doc = "Check the Slurm plugin on this node instead; exit status 78 if something is wrong",
         .kind = HPCT_CLI_FLAG},
        {0},
    };
    static const char doc[] = "Prints library versions, processor, CPU affinity, GPUs, and the "
                              "step's layout as this task reads it. Under srun each task prints.";
    bool admin = false;
    const hpct_cli_table tables[] = {{options, &admin}, {NULL, NULL}};
    hpct_cli_parse(0, doc, tables, argc, argv);
    if (admin)
        return check_node();
    hpct_status status = hpct_info_print(stdout);
    return (int) hpct_context_finish(NULL, "hpc-train", status);
}

const hpct_command hpct_command_info = {
    .name = "info",
    .summary = "show versions, hardware, and the step's layout",
    .run = run,
};
