/* hpc-train: picks the subcommand. */
#include "agent/cli/cli.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const hpct_command *const commands[] = {
    &hpct_command_fit,  &hpct_command_evaluate, &hpct_command_bench,
    &hpct_command_data, &hpct_command_summary,  &hpct_command_info,
};
#define NUM_COMMANDS (sizeof commands / sizeof commands[0])

static void print_help(void)
{
    printf("Usage: hpc-train COMMAND [OPTION…]\n"
           "Train neural networks, alone or over all tasks of a Slurm step.\n\n"
           "Commands:\n");
    for (size_t i = 0; i < NUM_COMMANDS; i++)
        printf("  %-10s %s\n", commands[i]->name, commands[i]->summary);
    printf("\n`hpc-train COMMAND --help` lists the command's options.\n"
           "For example, on two nodes:\n"
           "  srun -N2 --hpc-train hpc-train fit --model mnist-cnn --data DIR --epochs 3\n");
}

/* Threads of libgomp wait for each other by spinning, 300,000 turns by default: tens of
 * milliseconds on processors with a slow pause instruction. Where another process has one of the
 * cores, all of that is lost at every barrier. A tenth of a millisecond bridges the gaps within a
 * step and then gives the core away. libgomp reads the variable before main, so the program begins
 * again; where that does not work it goes on as it is. */
static void spin_briefly(char **argv)
{
    if (getenv("OMP_WAIT_POLICY") != NULL || getenv("GOMP_SPINCOUNT") != NULL)
        return;
    char program[PATH_MAX]; /* by its own name, which ps shows */
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length < 0 || setenv("GOMP_SPINCOUNT", "3000", 1) != 0)
        return;
    program[length] = '\0';
    execv(program, argv);
}

int main(int argc, char **argv)
{
    char name[64];
    spin_briefly(argv);
    if (argc < 2)
        hpct_cli_usage("a command is missing: fit, evaluate, bench, data, summary or info (see "
                       "hpc-train --help)");
    if (strcmp(argv[1], "--version") == 0) {
        if (hpct_context_rank_hint() == 0)
            printf("hpc-train %s\n", hpct_version());
        return HPCT_OK;
    }
    if (strcmp(argv[1], "--help") == 0) {
        if (hpct_context_rank_hint() == 0)
            print_help();
        return HPCT_OK;
    }
    for (size_t i = 0; i < NUM_COMMANDS; i++) {
        if (strcmp(argv[1], commands[i]->name) != 0)
            continue;
        snprintf(name, sizeof name, "hpc-train %s", argv[1]);
        argv[1] = name;
        return commands[i]->run(argc - 1, argv + 1);
    }
    hpct_cli_usage("unknown command '%s'; there are: fit, evaluate, bench, data, summary, info "
                   "(see hpc-train --help)",
                   argv[1]);
}
