/* A list: there are few outputs. */
#include "base/tried.h"

#include "base/file.h"
#include "base/status.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* An output's file when the name was tried, or as this process has last written it. */
typedef struct tried {
    struct tried *next;
    char *path, *target;
    struct stat info; /* st_nlink 0: nothing */
} tried;

static pthread_mutex_t tried_mutex = PTHREAD_MUTEX_INITIALIZER;
static tried *tried_names;

static tried *find_tried(const char *path)
{
    tried *t = tried_names;
    while (t != NULL && strcmp(t->path, path) != 0)
        t = t->next;
    return t;
}

static bool is_changed(const struct stat *old, const struct stat *now)
{
    return !hpct_file_same(old, now) || old->st_size != now->st_size ||
           old->st_mtim.tv_sec != now->st_mtim.tv_sec ||
           old->st_mtim.tv_nsec != now->st_mtim.tv_nsec;
}

hpct_status hpct_tried_note(const char *path, const char *target, bool add)
{
    hpct_status status = HPCT_OK;
    pthread_mutex_lock(&tried_mutex);
    tried *t = find_tried(path);
    if (t == NULL && add && (t = calloc(1, sizeof *t)) != NULL) {
        *t = (tried){tried_names, strdup(path), strdup(target), {0}};
        if (t->path != NULL && t->target != NULL)
            tried_names = t;
        else
            status = hpct_fail_memory(sizeof *t);
    }
    if (t != NULL && stat(target, &t->info) != 0)
        t->info = (struct stat){0};
    pthread_mutex_unlock(&tried_mutex);
    return t == NULL && add ? hpct_fail_memory(sizeof *t) : status;
}

hpct_status hpct_tried_check(const char *path, const char *target)
{
    struct stat now;
    pthread_mutex_lock(&tried_mutex);
    const tried *t = find_tried(path);
    bool other = t != NULL && stat(target, &now) == 0 && S_ISREG(now.st_mode) &&
                 (is_changed(&t->info, &now) || strcmp(t->target, target) != 0);
    pthread_mutex_unlock(&tried_mutex);
    return other ? hpct_fail(HPCT_ERR_IO,
                             "%s has been written by another program since this run began, and "
                             "stays: give each run a name of its own",
                             path)
                 : HPCT_OK;
}
