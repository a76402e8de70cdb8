#include "base/below.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LEVELS 2
#define MOST_ENTRIES 20000 /* a folder of pictures may be among them */

typedef struct search {
    hpct_below found;
    const char *const *names;
    size_t num_names;
    int entries;
} search;

/* Without "./" and double slashes; a name that begins with a dash stays no option. */
static char *join(const char *folder, const char *name)
{
    char *path;
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/')
        length--;
    bool here = length == 1 && folder[0] == '.' && name[0] != '-';
    int bytes = here ? asprintf(&path, "%s", name)
                     : asprintf(&path, "%.*s%s%s", (int) length, folder,
                                folder[length - 1] == '/' ? "" : "/", name);
    return bytes >= 0 ? path : NULL;
}

static bool has_file(const search *s, const char *folder)
{
    bool any = false;
    for (size_t i = 0; i < s->num_names && !any; i++) {
        char *path = join(folder, s->names[i]);
        any = path != NULL && access(path, F_OK) == 0;
        free(path);
    }
    return any;
}

/* Takes ownership of `path`. */
static void add(search *s, char *path)
{
    char **paths = realloc(s->found.paths, (s->found.num + 1) * sizeof *paths);
    if (paths == NULL) {
        free(path);
        return;
    }
    s->found.paths = paths;
    s->found.paths[s->found.num++] = path;
}

static void look_in(search *s, const char *folder, int levels)
{
    DIR *all = opendir(folder);
    const struct dirent *entry;
    while (all != NULL && s->entries < MOST_ENTRIES && (entry = readdir(all)) != NULL) {
        bool is_folder =
            entry->d_type == DT_DIR || entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN;
        s->entries++;
        char *path = is_folder && entry->d_name[0] != '.' ? join(folder, entry->d_name) : NULL;
        if (path != NULL && levels > 1)
            look_in(s, path, levels - 1);
        if (path != NULL && has_file(s, path))
            add(s, path);
        else
            free(path);
    }
    if (all != NULL)
        closedir(all);
}

static int by_name(const void *a, const void *b)
{
    return strverscmp(*(char *const *) a, *(char *const *) b);
}

hpct_below hpct_below_find(const char *folder, const char *const *names, size_t num_names)
{
    search s = {.names = names, .num_names = num_names};
    look_in(&s, folder, LEVELS);
    if (s.found.num > 1)
        qsort(s.found.paths, s.found.num, sizeof *s.found.paths, by_name);
    return s.found;
}

void hpct_below_free(hpct_below *below)
{
    for (size_t i = 0; i < below->num; i++)
        free(below->paths[i]);
    free(below->paths);
    *below = (hpct_below){.paths = NULL};
}
