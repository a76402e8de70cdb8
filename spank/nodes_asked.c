/* Searches the words of a command line and of #SBATCH lines. */
#include <config.h>

#include "spank/nodes_asked.h"

#include <stdlib.h>
#include <string.h>

#include "spank/arguments.h"

/* Short options without value. */
static const char of_srun[] = "EHOQXZbhklsuvV", of_sbatch[] = "hHIkKOQsvVW";

/* Whether a word is the option; `next` is the following word or NULL. */
typedef bool (*word_says)(const char *word, const char *next);

static bool says_one(const char *word, const char *next)
{
    const hpct_spank_word argument = hpct_spank_word_scan(word, of_sbatch);
    const char *value = argument.value != NULL ? argument.value : next;
    return hpct_spank_word_is(&argument, 'N', "nodes") && value != NULL &&
           (strcmp(value, "1") == 0 || strcmp(value, "1-1") == 0);
}

/* "-a 1-4", "-Qa1-4", "--array=1-4", and abbreviations that getopt accepts. */
static bool says_array(const char *word, const char *next)
{
    (void) next;
    const hpct_spank_word argument = hpct_spank_word_scan(word, of_sbatch);
    if (argument.name == NULL)
        return argument.letter == 'a';
    return argument.size >= 2 && strncmp(argument.name, "array", argument.size) == 0;
}

/* 1: the option is there, 0: it is not, -1: another component begins. */
static int line_says(char *line, word_says says)
{
    char *rest = NULL, *word = strtok_r(line, " \t\n", &rest); /* #SBATCH */
    for (word = strtok_r(NULL, " \t\n", &rest); word != NULL;) {
        char *next = strtok_r(NULL, " \t\n", &rest);
        if (says(word, next))
            return 1;
        if (strcmp(word, "hetjob") == 0 || strcmp(word, "packjob") == 0)
            return -1;
        word = next;
    }
    return 0;
}

/* 1: a script with the option, 0: a script without it, -1: not a script. */
static int script_says(const char *path, word_says says)
{
    FILE *script = hpct_spank_script_open(path);
    char *line = NULL;
    size_t room = 0;
    bool found = false;
    int said = 0;
    if (script == NULL)
        return -1;
    while (said >= 0 && getline(&line, &room, script) > 0 && !hpct_spank_script_is_command(line)) {
        said = hpct_spank_script_options(line) == NULL ? 0 : line_says(line, says);
        found = found || said > 0;
    }
    free(line);
    fclose(script);
    return said >= 0 && found;
}

bool hpct_spank_nodes_asked_parts(char *const *arguments)
{
    for (; *arguments != NULL; arguments++) {
        if (strcmp(*arguments, ":") == 0)
            return true;
    }
    return false;
}

bool hpct_spank_nodes_asked_one(char *const *arguments)
{
    bool one = false, script = false;
    if (hpct_spank_nodes_asked_parts(arguments))
        return false;
    for (int i = 1; arguments[i] != NULL && !one; i++) {
        one = says_one(arguments[i], arguments[i + 1]);
        int said = script || arguments[i][0] == '-' ? -1 : script_says(arguments[i], says_one);
        script = script || said >= 0;
        one = one || said == 1;
    }
    return one;
}

int hpct_spank_nodes_asked_array(char *const *arguments)
{
    int said = -1;
    if (hpct_spank_arguments_call(arguments, "salloc"))
        return 0;
    for (int i = 1; arguments[i] != NULL; i++) {
        if (says_array(arguments[i], arguments[i + 1]))
            return 1;
        if (strncmp(arguments[i], "--wrap", 6) == 0)
            said = 0;
        int script = arguments[i][0] == '-' ? -1 : script_says(arguments[i], says_array);
        if (script >= 0)
            return script; /* the following words are the script's arguments */
    }
    return said;
}

bool hpct_spank_nodes_asked_several(char *const *arguments)
{
    for (int i = 1; arguments[i] != NULL; i++) {
        const hpct_spank_word argument = hpct_spank_word_scan(arguments[i], of_srun);
        const char *value = argument.value, *next = arguments[i + 1];
        bool nodes = hpct_spank_word_is(&argument, 'N', "nodes");
        /* -I and -K have their value attached */
        bool letter = argument.letter != '\0' && strchr("IK", argument.letter) == NULL;
        if (!argument.is_option)
            return false; /* the program */
        if (value == NULL && (nodes || letter)) {
            if (next == NULL)
                return false;
            value = next;
            i++;
        } else if (value == NULL && argument.name != NULL && next != NULL && next[0] != '-') {
            return false; /* value of the option, or the program? unknown */
        }
        if (nodes && strtol(value, NULL, 10) > 1)
            return true;
    }
    return false;
}
