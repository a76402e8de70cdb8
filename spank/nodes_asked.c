/* Searches the words of a command line and of #SBATCH lines. */
#include <config.h>

#include "spank/nodes_asked.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "spank/arguments.h"

#define MAX_BYTES 65536 /* searched at the beginning of a script */

static bool is_one(const char *value)
{
    return strcmp(value, "1") == 0 || strcmp(value, "1-1") == 0;
}

/* Whether a word is the option; `next` is the following word or NULL. */
typedef bool (*word_says)(const char *word, const char *next);

static bool says_one(const char *word, const char *next)
{
    if (strcmp(word, "-N") == 0 || strcmp(word, "--nodes") == 0)
        return next != NULL && is_one(next);
    if (strncmp(word, "--nodes=", 8) == 0)
        return is_one(word + 8);
    return strncmp(word, "-N", 2) == 0 && is_one(word + 2);
}

/* "-a 1-4", "-Qa1-4", "--array=1-4", and abbreviations that getopt accepts. */
static bool says_array(const char *word, const char *next)
{
    static const char alone[] = "hHIkKOQsvVW"; /* sbatch's short options without value */
    (void) next;
    if (strncmp(word, "--ar", 4) == 0)
        return strncmp(word, "--array", strcspn(word, "=")) == 0;
    return word[0] == '-' && word[1 + strspn(word + 1, alone)] == 'a';
}

/* 1: the option is there, 0: it is not, -1: another component begins. */
static int line_says(char *line, word_says says)
{
    char *rest = NULL, *word = strtok_r(line, " \t", &rest);
    if (word == NULL || strcmp(word, "#SBATCH") != 0)
        return 0;
    for (word = strtok_r(NULL, " \t", &rest); word != NULL;) {
        char *next = strtok_r(NULL, " \t", &rest);
        if (says(word, next))
            return 1;
        if (strcmp(word, "hetjob") == 0 || strcmp(word, "packjob") == 0)
            return -1;
        word = next;
    }
    return 0;
}

/* Slurm ignores #SBATCH lines after the first command. */
static bool is_command(const char *line)
{
    line += strspn(line, " \t\r");
    return *line != '\0' && *line != '#';
}

/* 1: a script with the option, 0: a script without it, -1: not a script. */
static int read_script(const char *path, char *text, word_says says)
{
    struct stat info;
    int fd = stat(path, &info) == 0 && S_ISREG(info.st_mode) /* opening a FIFO wakes its writer */
                 ? open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
                 : -1;
    ssize_t size = fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode)
                       ? read(fd, text, MAX_BYTES - 1)
                       : -1;
    if (fd >= 0)
        close(fd);
    if (size < 2 || strncmp(text, "#!", 2) != 0)
        return -1;
    text[size] = '\0';
    char *rest = NULL;
    bool found = false;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL && !is_command(line);
         line = strtok_r(NULL, "\n", &rest)) {
        int said = line_says(line, says);
        if (said < 0)
            return 0;
        found = found || said > 0;
    }
    return found;
}

bool hpct_nodes_asked_parts(char *const *arguments)
{
    for (int i = 1; arguments[i] != NULL; i++) {
        if (strcmp(arguments[i], ":") == 0)
            return true;
    }
    return false;
}

bool hpct_nodes_asked_one(char *const *arguments)
{
    if (hpct_nodes_asked_parts(arguments))
        return false;
    char *text = malloc(MAX_BYTES);
    bool one = false, script = false;
    for (int i = 1; text != NULL && arguments[i] != NULL && !one; i++) {
        one = says_one(arguments[i], arguments[i + 1]);
        int found =
            script || arguments[i][0] == '-' ? -1 : read_script(arguments[i], text, says_one);
        script = script || found >= 0;
        one = one || found == 1;
    }
    free(text);
    return one;
}

int hpct_nodes_asked_array(char *const *arguments)
{
    const char *slash = strrchr(arguments[0], '/');
    if (strcmp(slash == NULL ? arguments[0] : slash + 1, "salloc") == 0)
        return 0;
    char *text = malloc(MAX_BYTES);
    int said = -1;
    for (int i = 1; text != NULL && arguments[i] != NULL; i++) {
        if (says_array(arguments[i], arguments[i + 1])) {
            said = 1;
            break;
        }
        if (strncmp(arguments[i], "--wrap", 6) == 0)
            said = 0;
        int script = arguments[i][0] == '-' ? -1 : read_script(arguments[i], text, says_array);
        if (script >= 0) { /* the following words are the script's arguments */
            said = script;
            break;
        }
    }
    free(text);
    return said;
}

bool hpct_nodes_asked_several(char *const *arguments)
{
    static const char alone[] = "EHOQXZbhklsuvV"; /* srun's short options without value */
    for (int i = 1; arguments[i] != NULL; i++) {
        const char *word = arguments[i];
        if (word[0] != '-' || word[1] == '\0' || strcmp(word, "--") == 0)
            return false; /* the program */
        bool letters = word[1] != '-', last = word[strcspn(word, "=")] == '\0';
        const char *value = strncmp(word, "--nodes=", 8) == 0 ? word + 8 : NULL;
        if (letters) {
            const char *letter = word + 1 + strspn(word + 1, alone);
            if (*letter == '\0' || *letter == 'I' || *letter == 'K') /* or value attached */
                continue;
            const char *behind = letter[1] != '\0' ? letter + 1 : arguments[++i];
            if (behind == NULL)
                return false;
            value = *letter == 'N' ? behind : NULL;
        } else if (last && strcmp(word, "--nodes") == 0) {
            value = arguments[++i];
            if (value == NULL)
                return false;
        } else if (last && arguments[i + 1] != NULL && arguments[i + 1][0] != '-') {
            return false; /* value of the option, or the program? unknown */
        }
        if (value != NULL && strtol(value, NULL, 10) > 1)
            return true;
    }
    return false;
}

/* Applies `ask` to this process's command line. */
static bool ask_here(bool (*ask)(char *const *arguments))
{
    char **arguments = hpct_arguments_here();
    bool said = arguments != NULL && ask(arguments);
    free(arguments);
    return said;
}

bool hpct_nodes_asked_one_here(void)
{
    return ask_here(hpct_nodes_asked_one);
}

bool hpct_nodes_asked_parts_here(void)
{
    return ask_here(hpct_nodes_asked_parts);
}

bool hpct_nodes_asked_several_here(void)
{
    return ask_here(hpct_nodes_asked_several);
}

int hpct_nodes_asked_array_here(void)
{
    char **arguments = hpct_arguments_here();
    int said = arguments == NULL || arguments[0] == NULL ? -1 : hpct_nodes_asked_array(arguments);
    free(arguments);
    return said;
}
