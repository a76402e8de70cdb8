/* hpc-train checkpoint list, verify, export */
#include "agent/cli/cli.h"

#include <hpctrain/checkpoint.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
    "Usage: hpc-train checkpoint list DIR\n"
    "       hpc-train checkpoint verify DIR\n"
    "       hpc-train checkpoint export DIR FILE.safetensors\n"
    "What a folder of checkpoints holds; DIR may also be one checkpoint, DIR/step-NNNNNNNNNN.\n\n"
    "  list    step, epoch, time and size of each, newest first, and which one is the best\n"
    "  verify  read every file and compare it with its checksum; exit status 65 if one is damaged\n"
    "  export  write the weights of the newest valid one to a file that --weights reads\n\n"
    "Manual page: hpc-train help checkpoint\n";

static hpct_status list(char **paths)
{
    return hpct_checkpoint_list(paths[0], stdout);
}

static hpct_status verify(char **paths)
{
    return hpct_checkpoint_verify(paths[0], stdout);
}

static hpct_status export(char **paths)
{
    return hpct_checkpoint_export(paths[0], paths[1], stdout);
}

static const struct action {
    const char *name, *paths;
    int num_paths;
    hpct_status (*run)(char **paths);
} actions[] = {
    {"list", "DIR", 1, list}, {"verify", "DIR", 1, verify}, {"export", "DIR FILE", 2, export}};

static int run(int argc, char **argv)
{
    const char *last = argv[argc - 1];
    if (argc > 1 && (strcmp(last, "--help") == 0 || strcmp(last, "-h") == 0)) {
        fputs(usage, stdout);
        return HPCT_OK;
    }
    for (size_t i = 0; i < sizeof actions / sizeof *actions && argc > 1; i++) {
        if (strcmp(argv[1], actions[i].name) != 0)
            continue;
        if (argc != 2 + actions[i].num_paths)
            hpct_cli_usage("checkpoint %s: give %s", actions[i].name, actions[i].paths);
        return (int) hpct_context_finish(NULL, "hpc-train", actions[i].run(argv + 2));
    }
    hpct_cli_usage("checkpoint: give list DIR, verify DIR or export DIR FILE (see hpc-train "
                   "checkpoint --help)");
}

const hpct_command hpct_command_checkpoint = {
    .name = "checkpoint",
    .summary = "list and verify checkpoints, and export their weights",
    .run = run,
};
