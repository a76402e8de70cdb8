/* Options, values and models: what the subcommands share. */
#include "agent/cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void hpct_cli_usage(const char *format, ...)
{
    if (hpct_context_rank_hint() == 0) {
        va_list args;
        va_start(args, format);
        fputs("hpc-train: ", stderr);
        vfprintf(stderr, format, args);
        fputc('\n', stderr);
        va_end(args);
    }
    exit(HPCT_ERR_USAGE);
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
        exit(HPCT_ERR_USAGE);
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

hpct_precision hpct_cli_precision(const char *value)
{
    hpct_precision precision = HPCT_FP32;
    if (hpct_precision_find(&precision, value) != HPCT_OK)
        hpct_cli_usage("--precision: '%s' is unknown; there is: fp32, bf16", value);
    return precision;
}

hpct_status hpct_cli_open_context(hpct_context **out, const hpct_model *model)
{
    hpct_status status = hpct_context_open(out);
    return status != HPCT_OK
               ? status
               : hpct_context_agree(*out, hpct_precision_check(hpct_model_precision(model)));
}

/* ---- models ---- */

static const hpct_cli_model models[] = {
    {"mnist-cnn", 64, 0.2, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS, false},
    {"mnist-convnet", 100, 0.01, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY, false},
    {"resnet50", 32, 0.01, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY, true},
    {"resnet50v2", 32, 0.01, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY, true},
    {"resnet101v2", 32, 0.01, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY, true},
    {"resnet152v2", 32, 0.01, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY, true},
};
#define NUM_MODELS (sizeof models / sizeof models[0])

/* A model of the user's own has Keras' defaults, and the loss that its last layer asks for. */
static hpct_status load_model(hpct_model **out, const hpct_cli_model **defaults,
                              const hpct_cli_choice *choice)
{
    static hpct_cli_model own = {.name = "",
                                 .batch_size = 32,
                                 .learning_rate = 0.01,
                                 .loss = HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS};
    if (choice->classes > 0)
        hpct_cli_usage("--classes is for built-in models; %s has its own", choice->name);
    hpct_status status = hpct_model_load_json(out, choice->name);
    if (status == HPCT_OK && hpct_model_ends_in_softmax(*out))
        own.loss = HPCT_SPARSE_CATEGORICAL_CROSSENTROPY;
    *defaults = &own;
    return status;
}

static const hpct_cli_model *find_model(const char *name)
{
    char names[256] = "";
    for (size_t i = 0; i < NUM_MODELS; i++) {
        if (name != NULL && strcmp(models[i].name, name) == 0)
            return &models[i];
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i == 0 ? "" : ", ", models[i].name);
    }
    if (name == NULL)
        hpct_cli_usage("--model is missing; there are: %s, and FILE.json of Keras", names);
    hpct_cli_usage("--model: there is no model \"%s\"; there are: %s, and FILE.json of Keras", name,
                   names);
}

static hpct_status make_builtin(hpct_model **out, const hpct_cli_model **defaults,
                                const hpct_cli_choice *choice)
{
    const hpct_cli_model *found = find_model(choice->name);
    hpct_builtin_options options = {.name = choice->name, .classes = choice->classes};
    if (found->any_size && choice->width > 0)
        options.input = HPCT_SHAPE(choice->height, choice->width, 3);
    *defaults = found;
    return hpct_model_builtin_with(out, &options);
}

hpct_status hpct_cli_make_model(hpct_model **out, const hpct_cli_model **defaults,
                                const hpct_cli_choice *choice, double learning_rate,
                                double momentum)
{
    const char *dot = choice->name != NULL ? strrchr(choice->name, '.') : NULL;
    hpct_status status = dot != NULL && strcmp(dot, ".json") == 0
                             ? load_model(out, defaults, choice)
                             : make_builtin(out, defaults, choice);
    if (status != HPCT_OK)
        return status;
    hpct_compile_options compile = {
        .loss = (*defaults)->loss,
        .precision = choice->precision,
        .optimizer = {.kind = HPCT_SGD,
                      .learning_rate =
                          learning_rate < 0 ? (*defaults)->learning_rate : learning_rate,
                      .momentum = momentum},
    };
    status = hpct_model_compile_with(*out, &compile);
    if (status != HPCT_OK) {
        hpct_model_free(*out);
        *out = NULL;
    }
    return status;
}
