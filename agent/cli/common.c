/* Options, their values, and the context: what the subcommands share. */
#include "agent/cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Only rank 0 speaks. mpirun ends all ranks when the first one fails, so the others leave it the
 * time to do so. */
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

/* ---- options ---- */

/* --batch_size=64 becomes --batch-size=64. */
static void accept_underscores(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--", 2) != 0)
            continue;
        for (char *c = argv[i]; *c != '\0' && *c != '='; c++) {
            if (*c == '_')
                *c = '-';
        }
    }
}

static bool is_help(const char *argument)
{
    return strcmp(argument, "--help") == 0 || strcmp(argument, "-?") == 0 ||
           strcmp(argument, "--usage") == 0;
}

/* Options of the parser and of its children, one after the other; NULL behind the last. */
static const struct argp_option *option_at(const struct argp *argp, int index)
{
    const struct argp_child *child = argp->children;
    const struct argp_option *option = argp->options;
    for (;;) {
        for (; option->name != NULL || option->key != 0 || option->doc != NULL; option++) {
            if (option->name != NULL && index-- == 0)
                return option;
        }
        if (child == NULL || child->argp == NULL)
            return NULL;
        option = child++->argp->options;
    }
}

/* Whether a word after "--" is an option's name or the beginning of one, as getopt_long takes it.
 */
static bool is_known(const struct argp *argp, const char *word)
{
    const struct argp_option *option;
    size_t length = strcspn(word, "=");
    if (strncmp(word, "help", length) == 0 || strncmp(word, "usage", length) == 0)
        return true;
    for (int i = 0; (option = option_at(argp, i)) != NULL; i++) {
        if (strncmp(option->name, word, length) == 0)
            return true;
    }
    return false;
}

static _Noreturn void refuse_option(const struct argp *argp, const char *command,
                                    const char *argument)
{
    const struct argp_option *option;
    char list[2048];
    size_t length = 0;
    list[0] = '\0';
    for (int i = 0; (option = option_at(argp, i)) != NULL && length < sizeof list; i++)
        length += (size_t) snprintf(list + length, sizeof list - length, "%s--%s",
                                    length > 0 ? ", " : "", option->name);
    hpct_cli_usage("unknown option '%s'; the options of %s are: %s", argument, command, list);
}

void hpct_cli_parse(const struct argp *argp, int argc, char **argv, void *input)
{
    int first_left = argc;
    bool speaks = hpct_context_rank_hint() == 0;
    accept_underscores(argc, argv);
    for (int i = 1; i < argc; i++) {
        if (is_help(argv[i]) && !speaks)
            exit(HPCT_OK);
        if (strncmp(argv[i], "--", 2) == 0 && argv[i][2] != '\0' && !is_known(argp, argv[i] + 2))
            refuse_option(argp, argv[0], argv[i]);
    }
    argp_err_exit_status = HPCT_ERR_USAGE;
    unsigned flags = speaks ? 0 : ARGP_SILENT;
    if (argp_parse(argp, argc, argv, flags, &first_left, input) != 0)
        end_with_usage(speaks);
    if (first_left < argc)
        hpct_cli_usage("'%s' is no option: see %s --help", argv[first_left], argv[0]);
}

int64_t hpct_cli_integer(const char *option, const char *text, int64_t min, int64_t max)
{
    char *end = NULL;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < min || value > max)
        hpct_cli_usage("--%s: '%s' is not a whole number from %lld to %lld", option, text,
                       (long long) min, (long long) max);
    return value;
}

double hpct_cli_number(const char *option, const char *text, double min, double max)
{
    char *end = NULL;
    errno = 0;
    double value = strtod(text, &end);
    if (errno != 0 || end == text || *end != '\0' || !(value >= min && value <= max))
        hpct_cli_usage("--%s: '%s' is not a number from %g to %g", option, text, min, max);
    return value;
}

hpct_status hpct_cli_set_device(hpct_model *model, const char *device)
{
    hpct_status status = hpct_model_set_device(model, device != NULL ? device : "auto");
    return status == HPCT_OK ? hpct_model_check_device(model) : status;
}

#define KEY_COMM 1100

static const struct argp_option comm_options[] = {
    {"comm", KEY_COMM, "NAME", 0,
     "what connects the ranks: mpi, tcp (of its own, needs no MPI or PMIx), or auto (default): mpi "
     "where the launcher has told it of all ranks",
     3},
    {0},
};

static error_t parse_comm(int key, char *value, struct argp_state *state)
{
    hpct_context_options *o = state->input;
    if (key != KEY_COMM)
        return ARGP_ERR_UNKNOWN;
    if (strcmp(value, "auto") != 0 && strcmp(value, "mpi") != 0 && strcmp(value, "tcp") != 0)
        hpct_cli_usage("--comm: '%s' is unknown; there is: auto, mpi, tcp", value);
    o->comm = value;
    return 0;
}

const struct argp hpct_cli_comm_argp = {.options = comm_options, .parser = parse_comm};

hpct_status hpct_cli_open_context(hpct_context **out, hpct_model *model, const char *device,
                                  const hpct_context_options *options, bool apart)
{
    hpct_context_options all = *options;
    all.device = device != NULL ? device : "auto";
    hpct_status status = apart ? hpct_context_open_apart(out) : hpct_context_open_with(out, &all);
    return status == HPCT_OK ? hpct_set_device(*out, model, all.device) : status;
}

void hpct_cli_say_connected(const hpct_context *context)
{
    const char *line = hpct_context_connected(context);
    if (line != NULL && hpct_context_rank(context) == 0)
        puts(line);
}
