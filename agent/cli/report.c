/* hpc-train report RUN… */
#include "agent/cli/cli.h"

#include <hpctrain/report.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FILLS hpct_report_options

static const char *const formats[] = {"html", "md", "csv", "svg", NULL};

static const hpct_cli_option options[] = {
    {"output", "FILE",
     "write FILE (also -o FILE; default report.html, report.md and so on); -: standard output", 1,
     0, TEXT(output)},
    {"format", "NAME",
     "html, md or csv (the tables), or svg (the charts); default: by the suffix of FILE, or "
     "html",
     1, 0, WORD(format, formats)},
    {"plan", "FILE", "draw the prediction of hpc-train plan --json FILE beside several runs", 1, 0,
     TEXT(plan)},
    {"beside", "FILE.csv",
     "show other figures, by workers, beside those of the runs: the lines of FILE.csv", 1, 0,
     TEXT(beside)},
    {"watch", NULL,
     "write the page every 5 seconds until all runs have finished, or Ctrl-C; the browser reloads "
     "it",
     1, 0, FLAG(watch)},
    {0},
};

/* -o FILE and -oFILE are --output FILE. */
static bool take_output(int argc, char **argv, int *i, char **own, int *num)
{
    static char name[] = "--output";
    bool apart = strcmp(argv[*i], "-o") == 0;
    if (strncmp(argv[*i], "-o", 2) != 0)
        return false;
    if (apart && *i + 1 >= argc)
        hpct_cli_usage("-o needs a value: -o FILE");
    own[(*num)++] = name;
    own[(*num)++] = apart ? argv[++*i] : argv[*i] + 2;
    return true;
}

/* Runs and options may be mixed; behind -- all are runs. */
static void parse(hpct_report_options *report, int argc, char **argv)
{
    static const char doc[] =
        "Makes one page of what runs have done: report RUN... [OPTION...]. A RUN is the folder of "
        "--log-dir, or a file of --summary-json. One run: losses, accuracies, the time of a step "
        "on each rank, memory, settings. Several: a table, and speed by workers.";
    const hpct_cli_table tables[] = {{options, report}, {NULL, NULL}};
    char **own = calloc(2 * (size_t) argc + 1, sizeof *own); /* -oFILE becomes two */
    const char **runs = calloc((size_t) argc + 1, sizeof *runs);
    int num = 0;
    bool all = false;
    if (own == NULL || runs == NULL)
        exit(HPCT_ERR_INTERNAL);
    own[num++] = argv[0];
    for (int i = 1; i < argc; i++) {
        if (!all && strcmp(argv[i], "--") == 0)
            all = true;
        else if (!all && (take_output(argc, argv, &i, own, &num) ||
                          hpct_cli_take_option(options, argc, argv, &i, own, &num)))
            continue;
        else if (!all && argv[i][0] == '-')
            own[num++] = argv[i];
        else
            runs[report->num_runs++] = argv[i];
    }
    hpct_cli_parse(0, doc, tables, num, own);
    free(own);
    report->runs = runs;
}

static int run(int argc, char **argv)
{
    hpct_report_options report = {.runs = NULL};
    parse(&report, argc, argv);
    if (report.num_runs == 0)
        hpct_cli_usage("report: give the folder of a run's --log-dir, or several (see hpc-train "
                       "report --help)");
    hpct_status status = hpct_report_write(&report);
    free((void *) (uintptr_t) report.runs);
    return (int) hpct_context_finish(NULL, "hpc-train", status);
}

const hpct_command hpct_command_report = {
    .name = "report",
    .summary = "make a page, tables or pictures of one run, or of several",
    .run = run,
};
