/* hpc-train launch [OPTION…] [OPTION OF SRUN…] -- PROGRAM… */
#include "agent/cli/cli.h"

#include <hpctrain/launch.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define FILLS hpct_launch_options

static void set_restarts(const char *option, const char *value, void *at)
{
    int *restarts = &((hpct_launch_options *) at)->restarts;
    *restarts = (int) hpct_cli_integer(option, value, 0, 1000);
    if (*restarts == 0)
        *restarts = -1; /* 0 is the default, 10 */
}

static const hpct_cli_option options[] = {
    {"restarts", "N", "start the program again at most N times (default 10)", 1, 0, HPCT_CLI_CALL,
     .set = set_restarts},
    {"min-nodes", "N", "do not start it again on fewer than N nodes (default 1)", 1, 0,
     INTEGER(min_nodes, 1, 1 << 20)},
    {"regrow", NULL,
     "use a node that answers again: send the program SIGUSR1, and start it again with more nodes "
     "when it has ended with exit status 75",
     1, 0, FLAG(regrow)},
    {0},
};

static int run(int argc, char **argv)
{
    static const char doc[] =
        "Runs a program by srun, and again when a task or a node fails, on the nodes that are "
        "left, in the same job: launch [OPTION...] [OPTION OF SRUN...] -- PROGRAM [ARGUMENT...], "
        "in a script of sbatch or in the shell of salloc. Submitted with --no-kill, the job "
        "outlives a node. A run that ends with 0, 75 (another job is to go on) or another status "
        "from 64 to 78 (wrong options, data or files) is not repeated; 69, a lost rank, is. A "
        "node where tasks have failed twice is left out. The program finds the number of the "
        "restart in HPC_TRAIN_RESTART.";
    hpct_launch_options launch = {.restarts = 0};
    const hpct_cli_table tables[] = {{options, &launch}, {NULL, NULL}};
    char **own = calloc((size_t) argc + 1, sizeof *own);
    char **of_srun = calloc((size_t) argc + 1, sizeof *of_srun);
    int num = 0, num_of_srun = 0, i = 0, exit_status = 0;
    if (own == NULL || of_srun == NULL)
        return HPCT_ERR_INTERNAL;
    own[num++] = argv[i++];
    for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (!hpct_cli_take_option(options, argc, argv, &i, own, &num))
            of_srun[num_of_srun++] = argv[i];
    }
    hpct_cli_parse(0, doc, tables, num, own);
    if (i >= argc - 1)
        hpct_cli_usage(
            "launch: give -- and a program after the options (see hpc-train launch --help)");
    launch.options = of_srun;
    launch.program = argv + i + 1;
    signal(SIGPIPE, SIG_IGN); /* the reader of its messages may end: the run goes on */
    hpct_status status = hpct_launch(&launch, &exit_status);
    free(of_srun);
    free(own);
    status = hpct_context_finish(NULL, "hpc-train", status);
    return status != HPCT_OK ? (int) status : exit_status;
}

const hpct_command hpct_command_launch = {
    .name = "launch",
    .summary = "run a program by srun, and again on the nodes that are left when one fails",
    .run = run,
};
