/* The command line: checks words against the tables before argp parses them, to suggest the nearest
 * option; then checks and stores values as the rows say. */
#include "agent/cli/cli.h"
#include "base/nearest.h"

#include <argp.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NAME_LENGTH 64 /* longer than any option */
#define MOST_ROWS 96
#define FIRST_KEY 256 /* argp keys above all characters */

/* ---- wrong usage ---- */

/* Only rank 0 prints. mpirun kills all ranks when the first one fails, so the others give it time
 * to print. */
static _Noreturn void end_with_usage(bool spoke)
{
    if (!spoke)
        nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL);
    exit(HPCT_ERR_USAGE);
}

void hpct_cli_usage(const char *format, ...)
{
    bool speaks = hpct_context_rank_hint() == 0;
    if (speaks) {
        va_list args;
        va_start(args, format);
        fputs("hpc-train: ", stderr);
        vfprintf(stderr, format, args);
        fputc('\n', stderr);
        va_end(args);
    }
    end_with_usage(speaks);
}

/* ---- rows of a subcommand ---- */

typedef struct rows {
    const hpct_cli_option *rows[MOST_ROWS];
    void *fills[MOST_ROWS];       /* by row */
    const char *given[MOST_ROWS]; /* values, "" of flags; NULL: not given */
    int num;
    struct argp argp;
    struct argp_option options[MOST_ROWS + 1]; /* the same rows for argp */
} rows;

static void add_row(rows *all, const hpct_cli_option *row, void *fills)
{
    bool alias = row->kind == HPCT_CLI_ALIAS;
    all->options[all->num] = (struct argp_option){
        .name = row->name,
        .key = row->kind == HPCT_CLI_HEADING || alias ? 0 : FIRST_KEY + all->num,
        .arg = row->value,
        .flags = alias           ? OPTION_ALIAS
                 : row->optional ? OPTION_ARG_OPTIONAL
                                 : 0,
        .doc = row->doc,
        .group = row->group,
    };
    all->fills[all->num] = fills;
    all->rows[all->num++] = row;
}

static void collect(rows *all, int command, const hpct_cli_table *tables)
{
    for (; tables->rows != NULL; tables++) {
        for (const hpct_cli_option *row = tables->rows; row->name != NULL || row->doc != NULL;
             row++) {
            if (row->commands == 0 || (row->commands & command) != 0)
                add_row(all, row, tables->fills);
        }
    }
}

/* The row that describes the value: its own, or, of an alias, the aliased one. */
static const hpct_cli_option *real_row(const rows *all, int i)
{
    while (all->rows[i]->kind == HPCT_CLI_ALIAS)
        i--;
    return all->rows[i];
}

/* ---- arguments ---- */

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "-?") == 0 ||
           strcmp(word, "--usage") == 0;
}

/* Whether the name begins with the word's first letters, with underscores as dashes. */
static bool is_begun(const char *name, const char *word, size_t length)
{
    size_t i = 0;
    while (i < length && name[i] == (word[i] == '_' ? '-' : word[i]))
        i++;
    return i == length;
}

/* Number of options that a word after "--" may denote, like getopt_long: the one with this name,
 * else those that begin with it. *out is one of them. */
static int find_option(const rows *all, const char *word, int *out)
{
    size_t length = strcspn(word, "=");
    int found = 0;
    for (int i = 0; length > 0 && i < all->num; i++) {
        const char *name = all->rows[i]->name;
        if (name == NULL || !is_begun(name, word, length))
            continue;
        *out = i;
        if (name[length] == '\0')
            return 1;
        found++;
    }
    return found;
}

/* Length of a hyphen, or of a dash that editors and web pages substitute. */
static size_t dash_length(const char *word)
{
    if (*word == '-')
        return 1;
    return strncmp(word, "\xe2\x80", 2) == 0 && word[2] != '\0' ? 3 : 0;
}

static _Noreturn void refuse_word(const rows *all, const char *command, const char *word)
{
    hpct_nearest best = {0};
    char name[NAME_LENGTH];
    const char *begins = word;
    while (dash_length(begins) > 0)
        begins += dash_length(begins);
    snprintf(name, sizeof name, "%.*s", (int) strcspn(begins, "="), begins);
    for (int i = 0; i < all->num; i++) {
        if (all->rows[i]->name != NULL)
            hpct_nearest_try(&best, name, all->rows[i]->name);
    }
    bool dashes = strncmp(word, "--", 2) == 0;
    const char *before = dashes ? "unknown option " : "",
               *behind = dashes ? "" : " is not an option";
    if (best.name != NULL)
        hpct_cli_usage("%s'%s'%s: did you mean --%s? (see %s --help)", before, word, behind,
                       best.name, command);
    hpct_cli_usage("%s'%s'%s; %s --help lists the options", before, word, behind, command);
}

/* Number of further arguments that belong to this option: 1 if its value is the next one. */
static int check_value(const rows *all, int option, const char *word, const char *next)
{
    int other;
    const char *equals = strchr(word, '='), *name = all->rows[option]->name,
               *kind = real_row(all, option)->value;
    bool is_option = next != NULL && strncmp(next, "--", 2) == 0 && next[2] != '\0' &&
                     find_option(all, next + 2, &other) == 1;
    bool apart = equals == NULL && kind != NULL && !real_row(all, option)->optional;
    if (equals != NULL && kind == NULL)
        hpct_cli_usage("--%s takes no value, and '%s' has one", name, word);
    if (apart && (next == NULL || is_option))
        hpct_cli_usage("--%s needs a value: --%s=%s%s%s", name, name, kind,
                       is_option ? "; it is followed by the option " : "", is_option ? next : "");
    if (kind != NULL && (equals != NULL ? equals[1] == '\0' : apart && *next == '\0'))
        hpct_cli_usage("--%s: the value is empty: --%s=%s", name, name, kind);
    return apart;
}

/* Converts --batch_size=64 to --batch-size=64. */
static void accept_underscores(char *word)
{
    for (char *c = word; *c != '\0' && *c != '='; c++) {
        if (*c == '_')
            *c = '-';
    }
}

bool hpct_cli_take_option(const hpct_cli_option *row, int argc, char **argv, int *i, char **own,
                          int *num)
{
    const char *word = argv[*i], *name = strncmp(word, "--", 2) == 0 ? word + 2 : "";
    size_t length = strcspn(name, "=");
    while (row->name != NULL && (strlen(row->name) != length || !is_begun(row->name, name, length)))
        row++;
    if (row->name == NULL && !is_help(word))
        return false;
    own[(*num)++] = argv[*i];
    if (row->value != NULL && name[length] == '\0' && *i + 1 < argc)
        own[(*num)++] = argv[++*i];
    return true;
}

static void check_words(const rows *all, int argc, char **argv, bool speaks)
{
    static char help[] = "--help";
    int option;
    for (int i = 1; i < argc; i++) {
        if (is_help(argv[i]) && !speaks)
            exit(HPCT_OK);
        if (strcmp(argv[i], "-h") == 0)
            argv[i] = help;
        if (is_help(argv[i]))
            return; /* argp prints it */
        if (strncmp(argv[i], "--", 2) != 0)
            refuse_word(all, argv[0], argv[i]);
        int found = find_option(all, argv[i] + 2, &option);
        if (found == 0)
            refuse_word(all, argv[0], argv[i]);
        accept_underscores(argv[i]);
        if (found > 1)
            return; /* argp lists the candidates */
        i += check_value(all, option, argv[i], argv[i + 1]);
    }
}

/* ---- values ---- */

int64_t hpct_cli_integer(const char *option, const char *text, int64_t min, int64_t max)
{
    char *end = NULL;
    errno = 0;
    bool plain = text[strspn(text, "+-0123456789")] == '\0'; /* excludes blanks */
    long long value = strtoll(text, &end, 10);
    if (!plain || errno != 0 || end == text || *end != '\0' || value < min || value > max)
        hpct_cli_usage("--%s: '%s' is not a whole number from %lld to %lld", option, text,
                       (long long) min, (long long) max);
    return value;
}

double hpct_cli_number(const char *option, const char *text, double min, double max)
{
    char *end = NULL;
    errno = 0;
    bool plain = text[strspn(text, "+-.0123456789eE")] == '\0'; /* excludes blanks, 0x10 and inf */
    double value = strtod(text, &end);
    if (!plain || errno != 0 || end == text || *end != '\0' || !(value >= min && value <= max))
        hpct_cli_usage("--%s: '%s' is not a number from %g to %g", option, text, min, max);
    return value;
}

int hpct_cli_name(const char *option, const char *value, const char *const names[])
{
    hpct_nearest best = {0};
    char list[256] = "", hint[HPCT_NEAREST_HINT];
    for (int i = 0; names[i] != NULL; i++) {
        if (strcmp(value, names[i]) == 0)
            return i;
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i == 0 ? "" : ", ", names[i]);
        hpct_nearest_try(&best, value, names[i]);
    }
    hpct_cli_usage("--%s: '%s' is unknown%s; there are: %s", option, value,
                   hpct_nearest_hint(&best, hint), list);
}

/* ---- options that all ranks must have alike ---- */

/* "--NAME=VALUE" of each option given, in the tables' order; of a path only "--NAME". */
static char *settings[MOST_ROWS + 1];

const char *const *hpct_cli_settings(void)
{
    return (const char *const *) settings;
}

/* Whether each rank may have its own value of this option. */
static bool is_of_rank(const char *name)
{
    static const char *const names[] = {"data", "labels", "weights", "device", "verbose", "quiet"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i]) == 0)
            return true;
    }
    return false;
}

/* By the name of the value in --help; "NAME|FILE" may also be a word. */
static bool is_path(const hpct_cli_option *row, const char *value)
{
    const char *kind = row->value != NULL ? row->value : "";
    bool may_be =
        strstr(kind, "FILE") != NULL || strstr(kind, "DIR") != NULL || strstr(kind, "PATH") != NULL;
    return may_be && (strchr(kind, '|') == NULL || strpbrk(value, "./") != NULL);
}

/* "FIRST,SECOND", or "--NAME=VALUE"; `between` NULL: FIRST alone. */
static char *join(const char *first, const char *between, const char *second)
{
    size_t length = strlen(first) + (between != NULL ? strlen(between) + strlen(second) : 0) + 1;
    char *text = malloc(length);
    if (text == NULL)
        hpct_cli_usage("out of memory");
    snprintf(text, length, "%s%s%s", first, between != NULL ? between : "",
             between != NULL ? second : "");
    return text;
}

/* Notes a value: if an option is given twice, the last one counts, or, as of --freeze, both. */
static void note_given(const hpct_cli_option *row, const char **given, const char *value)
{
    const char *now = value != NULL ? value : "";
    bool adds = *given != NULL && strstr(row->doc, "more than once") != NULL;
    *given = adds ? join(*given, ",", now) : now;
}

static void list_settings(const rows *all)
{
    int count = 0;
    for (int i = 0; i < all->num; i++) {
        const hpct_cli_option *row = all->rows[i];
        const char *value = all->given[i];
        if (value == NULL || is_of_rank(row->name))
            continue;
        bool shown = value[0] != '\0' && !is_path(row, value);
        char name[NAME_LENGTH + 2];
        snprintf(name, sizeof name, "--%s", row->name);
        settings[count++] = join(name, shown ? "=" : NULL, value);
    }
}

/* ---- parsing ---- */

static void set_integer(const hpct_cli_option *row, const char *value, void *at)
{
    int64_t number = hpct_cli_integer(row->name, value, row->least, row->most);
    if (row->size == sizeof(int))
        *(int *) at = (int) number;
    else
        *(int64_t *) at = number;
}

static void set(const hpct_cli_option *row, const char *value, void *at)
{
    switch (row->kind) {
    case HPCT_CLI_FLAG:
        *(bool *) at = true;
        break;
    case HPCT_CLI_TEXT:
        *(const char **) at = value;
        break;
    case HPCT_CLI_INTEGER:
        set_integer(row, value, at);
        break;
    case HPCT_CLI_NUMBER:
        *(double *) at = hpct_cli_number(row->name, value, row->low, row->high);
        break;
    case HPCT_CLI_NAME:
        *(int *) at = hpct_cli_name(row->name, value, row->names);
        break;
    case HPCT_CLI_WORD:
        *(const char **) at = row->names[hpct_cli_name(row->name, value, row->names)];
        break;
    default:
        row->set(row->name, value, at);
    }
}

static error_t parse(int key, char *value, struct argp_state *state)
{
    rows *all = state->input;
    int i = key - FIRST_KEY;
    if (i < 0 || i >= all->num)
        return ARGP_ERR_UNKNOWN;
    set(all->rows[i], value, (char *) all->fills[i] + all->rows[i]->at);
    note_given(all->rows[i], &all->given[i], value);
    return 0;
}

void hpct_cli_parse(int command, const char *doc, const hpct_cli_table *tables, int argc,
                    char **argv)
{
    bool speaks = hpct_context_rank_hint() == 0;
    rows all = {.num = 0};
    char *text = join(doc, "\vManual page: hpc-train help ", argv[0] + strlen("hpc-train "));
    all.argp = (struct argp){.options = all.options, .parser = parse, .doc = text};
    collect(&all, command, tables);
    check_words(&all, argc, argv, speaks);
    argp_err_exit_status = HPCT_ERR_USAGE;
    if (argp_parse(&all.argp, argc, argv, speaks ? 0 : ARGP_SILENT, NULL, &all) != 0)
        end_with_usage(speaks);
    free(text);
    list_settings(&all);
}
