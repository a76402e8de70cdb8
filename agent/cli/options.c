/* The command line: what is no option is refused with what it may have been meant to be, before
 * argp sees it; and values that are numbers or names. */
#include "agent/cli/cli.h"
#include "base/nearest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_LENGTH 64 /* more than any option has */

/* ---- options ---- */

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "-?") == 0 ||
           strcmp(word, "--usage") == 0;
}

/* Options of the parser and of its children, one after the other: false behind the last. *value:
 * what the option's value is called, NULL where it has none; an alias has that of the option
 * before. */
typedef struct walk {
    const struct argp_option *next;
    const struct argp_child *child;
    const char *name, *value;
    bool optional;
} walk;

static walk begin(const struct argp *argp)
{
    return (walk){.next = argp->options, .child = argp->children};
}

static bool go_on(walk *w)
{
    for (;;) {
        const struct argp_option *option = w->next;
        if (option->name == NULL && option->key == 0 && option->doc == NULL) {
            if (w->child == NULL || w->child->argp == NULL)
                return false;
            w->next = w->child++->argp->options;
            continue;
        }
        w->next++;
        if (!(option->flags & OPTION_ALIAS)) {
            w->value = option->arg;
            w->optional = option->flags & OPTION_ARG_OPTIONAL;
        }
        w->name = option->name;
        if (w->name != NULL)
            return true;
    }
}

/* Whether the word's first letters are the name's, with underscores for dashes. */
static bool is_begun(const char *name, const char *word, size_t length)
{
    size_t i = 0;
    while (i < length && name[i] == (word[i] == '_' ? '-' : word[i]))
        i++;
    return i == length;
}

/* How many options a word behind "--" may mean, as getopt_long takes it: by its whole name, else by
 * a name's beginning. *out is one of them. */
static int find_option(const struct argp *argp, const char *word, walk *out)
{
    size_t length = strcspn(word, "=");
    int found = 0;
    for (walk w = begin(argp); length > 0 && go_on(&w);) {
        if (!is_begun(w.name, word, length))
            continue;
        *out = w;
        if (w.name[length] == '\0')
            return 1;
        found++;
    }
    return found;
}

/* A hyphen, or one of the dashes that editors and web pages make of it. */
static size_t dash_length(const char *word)
{
    if (*word == '-')
        return 1;
    return strncmp(word, "\xe2\x80", 2) == 0 && word[2] != '\0' ? 3 : 0;
}

static _Noreturn void refuse_word(const struct argp *argp, const char *command, const char *word)
{
    hpct_nearest best = {0};
    char name[NAME_LENGTH];
    const char *begins = word;
    while (dash_length(begins) > 0)
        begins += dash_length(begins);
    snprintf(name, sizeof name, "%.*s", (int) strcspn(begins, "="), begins);
    for (walk w = begin(argp); go_on(&w);)
        hpct_nearest_try(&best, name, w.name);
    bool dashes = strncmp(word, "--", 2) == 0;
    const char *before = dashes ? "unknown option " : "", *behind = dashes ? "" : " is no option";
    if (best.name != NULL)
        hpct_cli_usage("%s'%s'%s: did you mean --%s? (see %s --help)", before, word, behind,
                       best.name, command);
    hpct_cli_usage("%s'%s'%s; %s --help lists those that there are", before, word, behind, command);
}

/* Words that this option takes behind its own: 1 where its value stands there. */
static int check_value(const struct argp *argp, const walk *option, const char *word,
                       const char *next)
{
    walk other;
    const char *equals = strchr(word, '=');
    bool is_option = next != NULL && strncmp(next, "--", 2) == 0 && next[2] != '\0' &&
                     find_option(argp, next + 2, &other) == 1;
    bool apart = equals == NULL && option->value != NULL && !option->optional;
    if (equals != NULL && option->value == NULL)
        hpct_cli_usage("--%s takes no value, and '%s' has one", option->name, word);
    if (apart && (next == NULL || is_option))
        hpct_cli_usage("--%s needs a value: --%s=%s%s%s", option->name, option->name, option->value,
                       is_option ? "; behind it stands the option " : "", is_option ? next : "");
    if (option->value != NULL && (equals != NULL ? equals[1] == '\0' : apart && *next == '\0'))
        hpct_cli_usage("--%s: the value is empty: --%s=%s", option->name, option->name,
                       option->value);
    return apart;
}

/* --batch_size=64 becomes --batch-size=64. */
static void accept_underscores(char *word)
{
    for (char *c = word; *c != '\0' && *c != '='; c++) {
        if (*c == '_')
            *c = '-';
    }
}

static void check_words(const struct argp *argp, int argc, char **argv, bool speaks)
{
    static char help[] = "--help";
    walk option;
    for (int i = 1; i < argc; i++) {
        if (is_help(argv[i]) && !speaks)
            exit(HPCT_OK);
        if (strcmp(argv[i], "-h") == 0)
            argv[i] = help;
        if (is_help(argv[i]))
            return; /* argp shows it */
        if (strncmp(argv[i], "--", 2) != 0)
            refuse_word(argp, argv[0], argv[i]);
        int found = find_option(argp, argv[i] + 2, &option);
        if (found == 0)
            refuse_word(argp, argv[0], argv[i]);
        accept_underscores(argv[i]);
        if (found > 1)
            return; /* argp lists what it may mean */
        i += check_value(argp, &option, argv[i], argv[i + 1]);
    }
}

void hpct_cli_parse(const struct argp *argp, int argc, char **argv, void *input)
{
    bool speaks = hpct_context_rank_hint() == 0;
    check_words(argp, argc, argv, speaks);
    argp_err_exit_status = HPCT_ERR_USAGE;
    if (argp_parse(argp, argc, argv, speaks ? 0 : ARGP_SILENT, NULL, input) != 0)
        hpct_cli_end_with_usage(speaks);
}

/* ---- values ---- */

int64_t hpct_cli_integer(const char *option, const char *text, int64_t min, int64_t max)
{
    char *end = NULL;
    errno = 0;
    bool plain = text[strspn(text, "+-0123456789")] == '\0'; /* no blanks either */
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
    bool plain = text[strspn(text, "+-.0123456789eE")] == '\0'; /* neither blanks nor 0x10, inf */
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
