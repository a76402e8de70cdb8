/* getopt_long by a table; its errors in one line, with the nearest option. */
#include "spank/stage/options.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/number.h"
#include "base/status.h"
#include "spank/spec/bytes.h"

#define LONG 256 /* options[i] is LONG + i to getopt_long */

/* `found` is ':' for a missing value, else '?'. */
static hpct_status refuse(int found, char *const argv[], const hpct_stage_option *options,
                          const char *help)
{
    hpct_nearest best = {0};
    char name[64];
    const char *word = argv[optind - 1];
    if (found == ':')
        return hpct_fail(HPCT_ERR_USAGE, "%s needs a value; see %s", word, help);
    if (strncmp(word, "--", 2) != 0) /* a short option, perhaps among others */
        return hpct_fail(HPCT_ERR_USAGE, "unknown option '-%c'; see %s", optopt, help);
    size_t length = strcspn(word + 2, "=");
    if (length >= sizeof name)
        length = sizeof name - 1;
    memcpy(name, word + 2, length);
    name[length] = '\0';
    for (; options->name != NULL; options++) {
        if (strcmp(options->name, name) == 0)
            return hpct_fail(HPCT_ERR_USAGE, "--%s takes no value; see %s", name, help);
        hpct_nearest_try(&best, name, options->name);
    }
    if (best.name != NULL)
        return hpct_fail(HPCT_ERR_USAGE, "unknown option '%s': did you mean --%s? (see %s)", word,
                         best.name, help);
    return hpct_fail(HPCT_ERR_USAGE, "unknown option '%s'; see %s", word, help);
}

static hpct_status set_number(const hpct_stage_option *option, const char *value)
{
    long *number = option->sets;
    if (hpct_number_parse(value, option->low, option->high, number))
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_USAGE, "--%s: '%s' is not a number between %ld and %ld", option->name,
                     value, option->low, option->high);
}

static hpct_status set_seconds(const hpct_stage_option *option, const char *value)
{
    char *end;
    double *seconds = option->sets, read = strtod(value, &end);
    bool plain = value[strspn(value, "+-.0123456789eE")] == '\0';
    if (!plain || end == value || *end != '\0' || !(read >= 0 && read <= 1e6))
        return hpct_fail(HPCT_ERR_USAGE, "--%s: '%s' is not a number of seconds from 0 to 1000000",
                         option->name, value);
    *seconds = read;
    return HPCT_OK;
}

static hpct_status set_bytes(const hpct_stage_option *option, const char *value)
{
    if (hpct_spec_bytes_parse(value, option->sets))
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_USAGE, "--%s: '%s' is not a size such as %s", option->name, value,
                     option->text);
}

static hpct_status set(const hpct_stage_option *option, char *value)
{
    switch (option->kind) {
    case HPCT_STAGE_OPTION_FLAG:
        *(bool *) option->sets = true;
        return HPCT_OK;
    case HPCT_STAGE_OPTION_TEXT:
        *(const char **) option->sets = value;
        return HPCT_OK;
    case HPCT_STAGE_OPTION_NUMBER:
        return set_number(option, value);
    case HPCT_STAGE_OPTION_SECONDS:
        return set_seconds(option, value);
    case HPCT_STAGE_OPTION_BYTES:
        return set_bytes(option, value);
    case HPCT_STAGE_OPTION_CALL:
        return option->call(option->sets, value);
    case HPCT_STAGE_OPTION_PRINT:
        break;
    }
    return hpct_fail(HPCT_ERR_INTERNAL, "--%s sets nothing", option->name);
}

int hpct_stage_options_fail(hpct_status status)
{
    fprintf(stderr, "hpc-train-stage: %s\n", hpct_last_error());
    return (int) status;
}

int hpct_stage_options_read(int argc, char **argv, const hpct_stage_option *options,
                            const char *help)
{
    struct option known[HPCT_STAGE_OPTIONS_MOST + 1] = {{0}};
    char letters[HPCT_STAGE_OPTIONS_MOST + 2] = ":";
    for (int i = 0; options[i].name != NULL; i++) {
        known[i] = (struct option){.name = options[i].name,
                                   .has_arg = options[i].kind > HPCT_STAGE_OPTION_FLAG,
                                   .val = LONG + i};
        strncat(letters, &options[i].letter, 1);
    }
    opterr = 0;
    for (int found; (found = getopt_long(argc, argv, letters, known, NULL)) != -1;) {
        const hpct_stage_option *option = options + (found >= LONG ? found - LONG : 0);
        if (found == '?' || found == ':')
            return hpct_stage_options_fail(refuse(found, argv, options, help));
        while (found < LONG && option->letter != found)
            option++;
        if (option->kind == HPCT_STAGE_OPTION_PRINT)
            return fputs(option->text, stdout) < 0;
        hpct_status status = set(option, optarg);
        if (status != HPCT_OK)
            return hpct_stage_options_fail(status);
    }
    return -1;
}
