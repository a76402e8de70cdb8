/* hpc-train: runs the subcommand. */
#include "agent/cli/cli.h"
#include "base/nearest.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const hpct_command *const commands[] = {
    &hpct_command_fit,   &hpct_command_evaluate, &hpct_command_predict,    &hpct_command_export,
    &hpct_command_bench, &hpct_command_data,     &hpct_command_summary,    &hpct_command_plan,
    &hpct_command_info,  &hpct_command_check,    &hpct_command_checkpoint, &hpct_command_launch,
    &hpct_command_top,   &hpct_command_report,
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

/* An error if standard output could not be written: the result would be lost. */
static int all_printed(int status)
{
    bool good = fflush(stdout) == 0 && !ferror(stdout);
    if (good || status != HPCT_OK)
        return status;
    fputs("hpc-train: standard output cannot be written\n", stderr);
    return HPCT_ERR_IO;
}

/* Opens /dev/null for closed standard streams: otherwise a file opened later would get their
 * number, and output would be written into it. */
static void fill_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0)
            open("/dev/null", O_RDONLY); /* open uses the lowest free number, which is fd */
    }
}

/* Names of these commands in other programs. */
static const struct synonym {
    const char *theirs, *ours;
} synonyms[] = {{"train", "fit"},     {"eval", "evaluate"},  {"test", "evaluate"},
                {"infer", "predict"}, {"convert", "export"}, {"benchmark", "bench"},
                {"plot", "report"}};

static _Noreturn void refuse(const char *word)
{
    hpct_nearest best = {0};
    char list[256] = "", hint[HPCT_NEAREST_HINT];
    for (size_t i = 0; i < NUM_COMMANDS; i++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i == 0 ? "" : ", ", commands[i]->name);
        hpct_nearest_try(&best, word, commands[i]->name);
    }
    hpct_nearest_try(&best, word, "--help");
    hpct_nearest_try(&best, word, "--version");
    for (size_t i = 0; i < sizeof synonyms / sizeof synonyms[0]; i++) {
        if (strcmp(word, synonyms[i].theirs) == 0)
            best.name = synonyms[i].ours;
    }
    if (*word == '\0')
        hpct_cli_usage("a command is missing; there are: %s (see hpc-train --help)", list);
    hpct_cli_usage("unknown command '%s'%s; there are: %s (see hpc-train --help)", word,
                   hpct_nearest_hint(&best, hint), list);
}

int main(int argc, char **argv)
{
    char name[64];
    fill_streams();
    signal(SIGXFSZ, SIG_IGN); /* ulimit -f: the failed write names the file instead */
    if (argc < 2)
        refuse("");
    if (strcmp(argv[1], "--version") == 0) {
        if (hpct_context_rank_hint() == 0)
            printf("hpc-train %s\n", hpct_version());
        return HPCT_OK;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        if (hpct_context_rank_hint() == 0)
            print_help();
        return HPCT_OK;
    }
    for (size_t i = 0; i < NUM_COMMANDS; i++) {
        if (strcmp(argv[1], commands[i]->name) != 0)
            continue;
        snprintf(name, sizeof name, "hpc-train %s", argv[1]);
        argv[1] = name;
        return all_printed(commands[i]->run(argc - 1, argv + 1));
    }
    refuse(argv[1]);
}
