/* Words of a command line, and of lines that stand for one. */
#include <config.h>

#include "spank/nodes_asked.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "spank/arguments.h"

#define MAX_BYTES 65536 /* of a script's beginning */

static bool is_one(const char *value)
{
    return strcmp(value, "1") == 0 || strcmp(value, "1-1") == 0;
}

/* `next` follows `word`, or is NULL. */
static bool says_one(const char *word, const char *next)
{
    if (strcmp(word, "-N") == 0 || strcmp(word, "--nodes") == 0)
        return next != NULL && is_one(next);
    if (strncmp(word, "--nodes=", 8) == 0)
        return is_one(word + 8);
    return strncmp(word, "-N", 2) == 0 && is_one(word + 2);
}

/* 1: one node, 0: nothing of them, -1: a component of several begins. */
static int line_says(char *line)
{
    char *rest = NULL, *word = strtok_r(line, " \t", &rest);
    if (word == NULL || strcmp(word, "#SBATCH") != 0)
        return 0;
    for (word = strtok_r(NULL, " \t", &rest); word != NULL;) {
        char *next = strtok_r(NULL, " \t", &rest);
        if (says_one(word, next))
            return 1;
        if (strcmp(word, "hetjob") == 0 || strcmp(word, "packjob") == 0)
            return -1;
        word = next;
    }
    return 0;
}

/* 1: a script that says one node, 0: a script, -1: none. */
static int read_script(const char *path, char *text)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    ssize_t size = fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode)
                       ? read(fd, text, MAX_BYTES - 1)
                       : -1;
    if (fd >= 0)
        close(fd);
    if (size < 2 || strncmp(text, "#!", 2) != 0)
        return -1;
    text[size] = '\0';
    char *rest = NULL;
    bool one = false;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        int said = line_says(line);
        if (said < 0)
            return 0;
        one = one || said > 0;
    }
    return one;
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
        int found = script || arguments[i][0] == '-' ? -1 : read_script(arguments[i], text);
        script = script || found >= 0;
        one = one || found == 1;
    }
    free(text);
    return one;
}

bool hpct_nodes_asked_several(char *const *arguments)
{
    static const char alone[] = "EHOQXZbhklsuvV"; /* srun's letters that take no value */
    for (int i = 1; arguments[i] != NULL; i++) {
        const char *word = arguments[i];
        if (word[0] != '-' || word[1] == '\0' || strcmp(word, "--") == 0)
            return false; /* the program */
        bool letters = word[1] != '-', last = word[strcspn(word, "=")] == '\0';
        const char *value = strncmp(word, "--nodes=", 8) == 0 ? word + 8 : NULL;
        if (letters) {
            const char *letter = word + 1 + strspn(word + 1, alone);
            if (*letter == '\0' || *letter == 'I' || *letter == 'K') /* or none that stands apart */
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
            return false; /* its value, or the program? */
        }
        if (value != NULL && strtol(value, NULL, 10) > 1)
            return true;
    }
    return false;
}

/* What `ask` says of this process's command line. */
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
