/* hpc-train report RUN… */
#include "agent/cli/cli.h"

#include <ctype.h>
#include <hpctrain/report.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct arguments {
    hpct_report_options report;
    char **runs;
    bool watch;
    int port;
} arguments;

#define FILLS arguments

static const char *const formats[] = {"html", "md", "csv", "svg", "png", NULL};

static void set_watch(const char *option, const char *value, void *at)
{
    arguments *a = at;
    a->watch = true;
    if (value != NULL)
        a->port = (int) hpct_cli_integer(option, value, 1, 65535);
}

static const hpct_cli_option options[] = {
    {"output", "FILE",
     "write FILE (also -o FILE; default report.html, report.md and so on); -: standard output", 1,
     0, TEXT(report.output)},
    {"format", "NAME",
     "html, md or csv (the tables), svg or png (the charts); default: by the suffix of FILE, or "
     "html",
     1, 0, WORD(report.format, formats)},
    {"plan", "FILE", "draw the prediction of hpc-train plan --json FILE beside several runs", 1, 0,
     TEXT(report.plan)},
    {"watch", "PORT",
     "serve the page at http://127.0.0.1:PORT/ instead, always new, until Ctrl-C (default: a free "
     "port)",
     1, 0, HPCT_CLI_CALL, .set = set_watch, .optional = true},
    {0},
};

static bool is_option_with_value(const char *word)
{
    static const char *const names[] = {"--output", "--format", "--plan"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(word, names[i]) == 0)
            return true;
    }
    return false;
}

/* "--watch 8080": a number behind it that is no file's name is its port. */
static bool is_port(const char *option, const char *next)
{
    struct stat info;
    return strcmp(option, "--watch") == 0 && next != NULL && *next != '\0' &&
           next[strspn(next, "0123456789")] == '\0' && stat(next, &info) != 0;
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
    bool has_next = *i + 1 < argc;
    if (has_next && (is_option_with_value(word) || is_port(word, argv[*i + 1])))
        return join(word, argv[++*i]);
    return word;
}

/* Runs and options may be mixed; behind -- all are runs. */
static void parse(arguments *a, int argc, char **argv)
{
    static const char doc[] =
        "Makes one page of what runs have done: report RUN... [OPTION...]. A RUN is the folder of "
        "--log-dir, or a file of --summary-json. One run: losses, accuracies, the time of a step "
        "on each rank, memory, settings. Several: a table, and speed by workers.";
    const hpct_cli_table tables[] = {{options, a}, {NULL, NULL}};
    char **own = calloc((size_t) argc + 1, sizeof *own);
    a->runs = calloc((size_t) argc + 1, sizeof *a->runs);
    int num = 0;
    bool all = false;
    if (own == NULL || a->runs == NULL)
        exit(HPCT_ERR_INTERNAL);
    own[num++] = argv[0];
    for (int i = 1; i < argc; i++) {
        if (!all && strcmp(argv[i], "--") == 0)
            all = true;
        else if (!all && argv[i][0] == '-')
            own[num++] = take_option(argc, argv, &i);
        else
            a->runs[a->report.num_runs++] = argv[i];
    }
    hpct_cli_parse(0, doc, tables, num, own);
    a->report.runs = (const char *const *) a->runs;
}

static int run(int argc, char **argv)
{
    arguments a = {.port = 0};
    parse(&a, argc, argv);
    if (a.report.num_runs == 0)
        hpct_cli_usage("report: give the folder of a run's --log-dir, or several (see hpc-train "
                       "report --help)");
    if (a.watch && (a.report.output != NULL || a.report.format != NULL))
        hpct_cli_usage("--watch serves the page: leave out --output and --format");
    hpct_status status =
        a.watch ? hpct_report_serve(&a.report, a.port) : hpct_report_write(&a.report);
    free(a.runs);
    return (int) hpct_context_finish(NULL, "hpc-train", status);
}

const hpct_command hpct_command_report = {
    .name = "report",
    .summary = "a page, tables or pictures of one run, or of several",
    .run = run,
};
