/* hpc-train: runs the subcommand. */
#include "agent/cli/cli.h"
#include "base/nearest.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
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
           "Trains neural networks in one process or on all tasks of a Slurm step.\n\n"
           "Commands:\n");
    for (size_t i = 0; i < NUM_COMMANDS; i++)
        printf("  %-10s %s\n", commands[i]->name, commands[i]->summary);
    printf("\n`hpc-train COMMAND --help` lists the command's options,\n"
           "`hpc-train help COMMAND` opens its manual page.\n"
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

/* Runs the command, which reads its name and arguments from argv[1] on. */
static int run(const hpct_command *command, int argc, char **argv)
{
    char name[64];
    snprintf(name, sizeof name, "hpc-train %s", command->name);
    argv[1] = name;
    return all_printed(command->run(argc - 1, argv + 1));
}

/* Returns NULL for an unknown command. */
static const hpct_command *find_command(const char *name)
{
    for (size_t i = 0; i < NUM_COMMANDS; i++) {
        if (strcmp(name, commands[i]->name) == 0)
            return commands[i];
    }
    return NULL;
}

/* Opens the command's manual page; prints its --help if man or the page is missing. */
static int show_page(const hpct_command *command)
{
    static char help[] = "--help";
    char line[160], *argv[] = {NULL, NULL, help, NULL};
    snprintf(line, sizeof line, "man -w 1 hpc-train-%s >/dev/null 2>&1 && exec man 1 hpc-train-%s",
             command->name, command->name);
    if (hpct_context_rank_hint() == 0 && system(line) == 0)
        return HPCT_OK;
    return run(command, 3, argv);
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0;
}

int main(int argc, char **argv)
{
    fill_streams();
    signal(SIGXFSZ, SIG_IGN); /* ulimit -f: the failed write names the file instead */
    if (argc < 2)
        refuse("");
    if (strcmp(argv[1], "--version") == 0) {
        if (hpct_context_rank_hint() == 0)
            printf("hpc-train %s\n", hpct_version());
        return HPCT_OK;
    }
    bool help = is_help(argv[1]);
    if (help && (argc == 2 || is_help(argv[2]))) {
        if (hpct_context_rank_hint() == 0)
            print_help();
        return all_printed(HPCT_OK);
    }
    const char *name = argv[help ? 2 : 1];
    const hpct_command *command = find_command(name);
    if (command == NULL)
        refuse(name);
    return help ? show_page(command) : run(command, argc, argv);
}
