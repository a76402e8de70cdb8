/* Errors of getopt_long in one line, with the nearest option. */
#include "spank/stage/refuse.h"

#include <string.h>

#include "base/nearest.h"
#include "base/number.h"
#include "base/status.h"

hpct_status hpct_stage_refuse(int found, char *const argv[], const struct option *options,
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

hpct_status hpct_stage_number(const char *option, const char *value, long low, long high,
                              long *number)
{
    if (hpct_number_parse(value, low, high, number))
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_USAGE, "%s: '%s' is not a number between %ld and %ld", option, value,
                     low, high);
}
