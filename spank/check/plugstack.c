/* Parses plugstack.conf: "optional|required PATH [ARGUMENT]...", "include PATTERN", '#'
 * comments. */
#include "spank/check/plugstack.h"

#include <errno.h>
#include <glob.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

#define MAX_DEPTH 8 /* nesting of includes */

static hpct_status search(const char *path, const char *name, int depth, bool *found,
                          hpct_check_plugstack_line *out);

static hpct_status include(const char *from, const char *pattern, const char *name, int depth,
                           bool *found, hpct_check_plugstack_line *out)
{
    char *copy = strdup(from), *whole = NULL;
    hpct_status status = HPCT_OK;
    glob_t files = {0};
    if (copy == NULL || asprintf(&whole, "%s%s%s", pattern[0] == '/' ? "" : dirname(copy),
                                 pattern[0] == '/' ? "" : "/", pattern) < 0) {
        free(copy);
        return hpct_fail_memory(0);
    }
    if (glob(whole, 0, NULL, &files) == 0) {
        for (size_t i = 0; i < files.gl_pathc && status == HPCT_OK && !*found; i++)
            status = search(files.gl_pathv[i], name, depth + 1, found, out);
        globfree(&files);
    }
    free(whole);
    free(copy);
    return status;
}

static hpct_status keep(const char *path, int number, bool required, const char *plugin,
                        char *arguments, hpct_check_plugstack_line *out)
{
    char *rest = NULL;
    *out = (hpct_check_plugstack_line){
        .file = strdup(path), .line = number, .required = required, .plugin = strdup(plugin)};
    for (char *word = strtok_r(arguments, " \t", &rest);
         word != NULL && out->count < HPCT_CHECK_PLUGSTACK_ARGUMENTS;
         word = strtok_r(NULL, " \t", &rest))
        out->arguments[out->count++] = strdup(word);
    return out->file == NULL || out->plugin == NULL ? hpct_fail_memory(0) : HPCT_OK;
}

static hpct_status search(const char *path, const char *name, int depth, bool *found,
                          hpct_check_plugstack_line *out)
{
    hpct_status status = HPCT_OK;
    char *text = NULL, none[] = "";
    size_t room = 0;
    if (depth > MAX_DEPTH)
        return hpct_fail(HPCT_ERR_CONFIG, "%s: more than %d files include each other", path,
                         MAX_DEPTH);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return hpct_fail(HPCT_ERR_NO_INPUT, "%s cannot be read: %s", path, strerror(errno));
    for (int number = 1; status == HPCT_OK && !*found && getline(&text, &room, file) >= 0;
         number++) {
        char *rest = NULL;
        text[strcspn(text, "#\n")] = '\0';
        char *kind = strtok_r(text, " \t", &rest);
        char *what = kind == NULL ? NULL : strtok_r(NULL, " \t", &rest);
        if (what == NULL)
            continue;
        if (strcasecmp(kind, "include") == 0) {
            status = include(path, what, name, depth, found, out);
        } else if (strcmp(strrchr(what, '/') == NULL ? what : strrchr(what, '/') + 1, name) == 0) {
            *found = true;
            status = keep(path, number, strcasecmp(kind, "required") == 0, what,
                          rest == NULL ? none : rest, out);
        }
    }
    free(text);
    fclose(file);
    return status;
}

hpct_status hpct_check_plugstack_find(const char *path, const char *name,
                                      hpct_check_plugstack_line *out)
{
    bool found = false;
    *out = (hpct_check_plugstack_line){0};
    hpct_status status = search(path, name, 0, &found, out);
    if (status == HPCT_OK && !found)
        status = hpct_fail(HPCT_ERR_CONFIG, "neither %s nor a file that it includes names %s", path,
                           name);
    if (status != HPCT_OK)
        hpct_check_plugstack_line_free(out);
    return status;
}

void hpct_check_plugstack_line_free(hpct_check_plugstack_line *line)
{
    free(line->file);
    free(line->plugin);
    for (int i = 0; i < line->count; i++)
        free(line->arguments[i]);
    *line = (hpct_check_plugstack_line){0};
}
