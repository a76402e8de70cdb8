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

static bool is_option_with_value(const char *word)
{
    static const char *const names[] = {"--output", "--format", "--plan", "--beside"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(word, names[i]) == 0)
            return true;
    }
    return false;
}

/* One word of its own, --OPTION=VALUE. */
static char *join(const char *option, const char *value)
{
    size_t length = strlen(option) + strlen(value) + 2;
    char *word = malloc(length);
    if (word == NULL)
        exit(HPCT_ERR_INTERNAL);
    strcpy(word, option);
    strcat(word, "=");
    return strcat(word, value);
}

/* The option at argv[*i] as a word of the table. */
static char *take_option(int argc, char **argv, int *i)
{
    char *word = argv[*i];
    if (strncmp(word, "-o", 2) == 0 && word[2] != '\0')
        return join("--output", word + 2);
    if (strcmp(word, "-o") == 0 && *i + 1 >= argc)
        hpct_cli_usage("-o needs a value: -o FILE");
    if (strcmp(word, "-o") == 0)
        return join("--output", argv[++*i]);
    if (*i + 1 < argc && is_option_with_value(word))
        return join(word, argv[++*i]);
    return word;
}

/* Runs and options may be mixed; behind -- all are runs. */
static void parse(hpct_report_options *report, int argc, char **argv)
{
    static const char doc[] =
        "Makes one page of what runs have done: report RUN... [OPTION...]. A RUN is the folder of "
        "--log-dir, or a file of --summary-json. One run: losses, accuracies, the time of a step "
        "on each rank, memory, settings. Several: a table, and speed by workers.";
    const hpct_cli_table tables[] = {{options, report}, {NULL, NULL}};
    char **own = calloc((size_t) argc + 1, sizeof *own);
    const char **runs = calloc((size_t) argc + 1, sizeof *runs);
    int num = 0;
    bool all = false;
    if (own == NULL || runs == NULL)
        exit(HPCT_ERR_INTERNAL);
    own[num++] = argv[0];
    for (int i = 1; i < argc; i++) {
        if (!all && strcmp(argv[i], "--") == 0)
            all = true;
        else if (!all && argv[i][0] == '-')
            own[num++] = take_option(argc, argv, &i);
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
