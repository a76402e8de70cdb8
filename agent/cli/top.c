/* hpc-train top [RUN | --job JOB] */
#include "agent/cli/cli.h"

#include <hpctrain/top.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILLS hpct_top_options

static void set_job(const char *option, const char *value, void *at)
{
    hpct_cli_integer(option, value, 1, UINT32_MAX);
    *(const char **) at = value;
}

static const hpct_cli_option options[] = {
    {"job", "JOB",
     "show the run of this Slurm job, found in the job's working folder or up to two levels below",
     1, 0, CALL(job, set_job)},
    {"once", NULL, "print once, also on a terminal", 1, 0, FLAG(once)},
    {0},
};

static int run(int argc, char **argv)
{
    static const char doc[] =
        "Shows how far a run is: top [RUN]. RUN is its --log-dir, or the status.json in it "
        "(default: "
        "the working folder). On a terminal it is redrawn each second until q; otherwise printed "
        "once. It only reads files: the run goes on.";
    hpct_top_options top = {.once = false};
    const hpct_cli_table tables[] = {{options, &top}, {NULL, NULL}};
    char **own = calloc((size_t) argc + 1, sizeof *own);
    int num = 0;
    if (own == NULL)
        return HPCT_ERR_INTERNAL;
    own[num++] = argv[0];
    for (int i = 1; i < argc; i++) {
        if (hpct_cli_take_option(options, argc, argv, &i, own, &num))
            continue;
        if (argv[i][0] == '-')
            own[num++] = argv[i];
        else if (top.run != NULL)
            hpct_cli_usage("top: give one run, not %s and %s", top.run, argv[i]);
        else
            top.run = argv[i];
    }
    hpct_cli_parse(0, doc, tables, num, own);
    free(own);
    return (int) hpct_context_finish(NULL, "hpc-train", hpct_top(&top, stdout));
}

const hpct_command hpct_command_top = {
    .name = "top",
    .summary = "show how far a run is",
    .run = run,
};
