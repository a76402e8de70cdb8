/* A value's source is the environment if the job's variable has it, the command line if the option
 * is there with this value, else the script. */
#include "spank/given.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "spank/arguments.h"

hpct_status hpct_spank_given_add(hpct_spank_given *given, hpct_spank_option option,
                                 const char *text)
{
    text = hpct_spank_option_implied(option, text);
    for (int i = 0; i < HPCT_SPANK_MOST_GIVEN; i++) {
        char **place = &given->values[option][i];
        if (*place != NULL && strcmp(*place, text) == 0)
            return HPCT_OK;
        if (*place == NULL) {
            *place = strdup(text);
            return *place == NULL ? hpct_fail_memory(strlen(text)) : HPCT_OK;
        }
    }
    return hpct_fail(HPCT_ERR_USAGE, "--%s is given more than %d times",
                     hpct_spank_option_table[option].name, HPCT_SPANK_MOST_GIVEN);
}

/* Compares with the variable by which Slurm forwards the option to a job's environment. */
static bool in_environment(const hpct_cluster_environment *environment, hpct_spank_option option,
                           const char *value)
{
    const char *text = hpct_spank_option_forwarded(environment, option);
    return text != NULL && strcmp(hpct_spank_option_implied(option, text), value) == 0;
}

static bool on_command_line(char *const *arguments, hpct_spank_option option, const char *value)
{
    const hpct_spank_option_info *info = &hpct_spank_option_table[option];
    for (int i = 1; arguments[i] != NULL; i++) {
        const hpct_spank_word word = hpct_spank_word_scan(arguments[i], "");
        const char *text = word.value;
        if (!hpct_spank_word_is(&word, '\0', info->name))
            continue;
        if (text == NULL && info->has_argument == HPCT_SPANK_ARGUMENT_NEEDED)
            text = arguments[i + 1];
        if (strcmp(hpct_spank_option_implied(option, text), value) == 0)
            return true;
    }
    return false;
}

static hpct_status refuse(hpct_spank_option option, const char *one, const char *other)
{
    const char *argument = hpct_spank_option_table[option].argument;
    bool list = argument != NULL &&
                (strchr(argument, ',') != NULL || strcmp(argument, "LIST") == 0) &&
                option != HPCT_SPANK_OPTION_BIND;
    return hpct_fail(HPCT_ERR_USAGE,
                     "--%s is given twice, as '%.300s' and as '%.300s': of these the first would "
                     "be lost; give it once%s%.200s%s%.200s%s",
                     hpct_spank_option_table[option].name, one, other,
                     list ? ", with the list '" : "", list ? one : "", list ? "," : "",
                     list ? other : "", list ? "'" : "");
}

hpct_status hpct_spank_given_check(const hpct_spank_given *given, char *const *arguments,
                                   const hpct_cluster_environment *environment, bool script)
{
    for (int i = 0; i < HPCT_SPANK_NUM_OPTIONS; i++) {
        hpct_spank_option option = (hpct_spank_option) i;
        const char *in_script = NULL, *in_line = NULL;
        for (int k = 0; k < HPCT_SPANK_MOST_GIVEN && given->values[option][k] != NULL; k++) {
            const char *value = given->values[option][k];
            if (in_environment(environment, option, value))
                continue;
            bool line = !script || on_command_line(arguments, option, value);
            const char **before = line ? &in_line : &in_script;
            if (*before != NULL)
                return refuse(option, *before, value);
            *before = value;
        }
    }
    return HPCT_OK;
}

void hpct_spank_given_free(hpct_spank_given *given)
{
    for (int i = 0; i < HPCT_SPANK_NUM_OPTIONS; i++) {
        for (int k = 0; k < HPCT_SPANK_MOST_GIVEN; k++)
            free(given->values[i][k]);
    }
    memset(given, 0, sizeof *given);
}
