/* sbatch's rules: #SBATCH lines end at the first command, and an unquoted '#' begins a comment. */
#include <config.h>

#include "spank/script_lines.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "spank/arguments.h"

#define MAX_LINES 10000

/* The first word of an #SBATCH line that is an option of hpc-train, or NULL. */
static const char *find_option(const char *line)
{
    const char *options = hpct_spank_script_options(line);
    const char *at = options == NULL ? NULL : strstr(options, "--hpc-train");
    return at != NULL && isspace((unsigned char) at[-1]) ? at : NULL;
}

static bool is_cut(const char *option)
{
    char quote = '\0', before = ' ';
    for (const char *p = option; *p != '\0'; before = *p++) {
        if (*p == '\\' && p[1] != '\0')
            p++;
        else if (quote != '\0')
            quote = *p == quote ? '\0' : quote;
        else if (*p == '\'' || *p == '"')
            quote = *p;
        else if (*p == '#')
            return !isspace((unsigned char) before);
    }
    return false;
}

/* Signs that a script (shell, Python, Perl, R) reads its arguments. */
static bool takes_arguments(const char *line)
{
    static const char *const signs[] = {"$@",       "$*",     "$1",     "$#",    "${@",  "${*",
                                        "${1",      "shift",  "getopt", "argv",  "ARGV", "argparse",
                                        "optparse", "docopt", "click",  "typer", "rgs("};
    bool takes = false;
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        takes = takes || strstr(line, signs[i]) != NULL;
    return takes;
}

/* A here-document, a string that begins like a script, or a string of several lines in Python. */
static bool writes_a_script(const char *line)
{
    return strstr(line, "<<") != NULL || strstr(line, "#!") != NULL ||
           strstr(line, "\"\"\"") != NULL || strstr(line, "'''") != NULL;
}

static hpct_status check_line(const char *option, bool command, int number, const char *path)
{
    if (command)
        return hpct_fail(HPCT_ERR_USAGE,
                         "line %d of '%.200s': sbatch reads no #SBATCH lines behind the script's "
                         "first command, and '%.200s' would be lost: move it up",
                         number, path, option);
    if (is_cut(option))
        return hpct_fail(HPCT_ERR_USAGE,
                         "line %d of '%.200s': sbatch takes '#' for the begin of a remark, and "
                         "'%.200s' would be cut there: put the value in quotes",
                         number, path, option);
    return HPCT_OK;
}

/* *takes: the script may read its arguments. */
static hpct_status check(FILE *script, const char *path, bool *takes)
{
    char *line = NULL;
    size_t room = 0;
    bool command = false, other = false;
    hpct_status status = HPCT_OK;
    *takes = false;
    for (int number = 1;
         status == HPCT_OK && number <= MAX_LINES && getline(&line, &room, script) > 0; number++) {
        line[strcspn(line, "\r\n")] = '\0';
        const char *option = other ? NULL : find_option(line);
        command = command || hpct_spank_script_is_command(line);
        other = other || (command && writes_a_script(line));
        *takes = *takes || takes_arguments(line);
        if (option != NULL)
            status = check_line(option, command, number, path);
    }
    free(line);
    return status;
}

static hpct_status check_behind(char *const *words, const char *path)
{
    for (; *words != NULL; words++) {
        if (strncmp(*words, "--hpc-train", strlen("--hpc-train")) == 0)
            return hpct_fail(HPCT_ERR_USAGE,
                             "'%.200s' stands behind '%.200s', which looks at none of its "
                             "arguments: an option of sbatch is to stand before the script",
                             *words, path);
    }
    return HPCT_OK;
}

static bool has_script(char *const *words)
{
    FILE *script = NULL;
    for (; *words != NULL && script == NULL; words++)
        script = **words == '-' ? NULL : hpct_spank_script_open(*words);
    if (script != NULL)
        fclose(script);
    return script != NULL;
}

/* An argument after an option, with a script later, is the option's value, as in `sbatch -J
 * train.sh train.sh`. */
static bool is_value(char *const *arguments, int i)
{
    return i > 1 && arguments[i - 1][0] == '-' && has_script(&arguments[i + 1]);
}

hpct_status hpct_spank_script_lines_check(char *const *arguments)
{
    if (!hpct_spank_arguments_call(arguments, "sbatch"))
        return HPCT_OK;
    for (int i = 1; arguments[i] != NULL && strncmp(arguments[i], "--wrap", 6) != 0; i++) {
        FILE *script = arguments[i][0] == '-' || is_value(arguments, i)
                           ? NULL
                           : hpct_spank_script_open(arguments[i]);
        if (script == NULL)
            continue;
        bool takes = false;
        hpct_status status = check(script, arguments[i], &takes);
        fclose(script);
        return status == HPCT_OK && !takes ? check_behind(&arguments[i + 1], arguments[i]) : status;
    }
    return HPCT_OK;
}
