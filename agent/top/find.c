/* Folders are looked through two levels deep: a log folder is usually made beside the job's script,
 * or as one of several in a folder there. */
#include "agent/top/find.h"

#include "agent/rank/squeue.h"
#include "agent/report/run.h"
#include "base/below.h"
#include "base/hint.h"
#include "base/status.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SQUEUE_SECONDS 30

static hpct_status join(char **out, const char *folder, const char *name)
{
    if (asprintf(out, "%s%s%s", folder, name[0] != '\0' ? "/" : "", name) >= 0)
        return HPCT_OK;
    *out = NULL;
    return hpct_fail_memory(0);
}

static const char *const names[] = {HPCT_RESULTS_LIVE_FILE};

static bool is_later(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec > b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec > b->tv_nsec);
}

/* "; below it there are 3 runs, the newest: hpc-train top runs/n4", or "" */
static void hint_below(char *hint, size_t size, const char *folder)
{
    hpct_below below = hpct_below_find(folder, names, 1);
    const char *newest = NULL;
    struct timespec time = {0};
    for (size_t i = 0; i < below.num; i++) {
        struct stat info;
        char *path;
        if (join(&path, below.paths[i], HPCT_RESULTS_LIVE_FILE) != HPCT_OK)
            continue;
        if (stat(path, &info) == 0 && (newest == NULL || is_later(&info.st_mtim, &time))) {
            newest = below.paths[i];
            time = info.st_mtim;
        }
        free(path);
    }
    FILE *out = newest != NULL ? fmemopen(hint, size, "w") : NULL;
    if (out != NULL) {
        if (below.num > 1)
            fprintf(out, "; below it there are %zu runs, the newest: ", below.num);
        else
            fputs("; below it there is one: ", out);
        fputs("hpc-train top ", out);
        hpct_print_word(out, newest);
        fclose(out);
    }
    hpct_below_free(&below);
}

hpct_status hpct_top_find_run(char **path, const char *run)
{
    struct stat info;
    const char *folder = run != NULL ? run : ".";
    char hint[PATH_MAX + 64] = "";
    *path = NULL;
    if (stat(folder, &info) != 0)
        return hpct_fail(HPCT_ERR_NO_INPUT, "%s cannot be read: %s", folder, strerror(errno));
    HPCT_TRY(join(path, folder, S_ISDIR(info.st_mode) ? HPCT_RESULTS_LIVE_FILE : ""));
    if (access(*path, F_OK) == 0)
        return HPCT_OK;
    free(*path);
    *path = NULL;
    if (S_ISDIR(info.st_mode))
        hint_below(hint, sizeof hint, folder);
    return hpct_fail(HPCT_ERR_NO_INPUT,
                     "%s has no " HPCT_RESULTS_LIVE_FILE
                     ": give the --log-dir of a run, or --job%s",
                     folder, hint);
}

/* ---- of a job ---- */

typedef struct newest {
    const char *job;
    char *path;
    int64_t time;
} newest;

/* Keeps the folder's file if it is of the job, and newer than the best so far. */
static hpct_status consider(newest *best, const char *folder)
{
    char *path;
    hpct_report_run run;
    HPCT_TRY(join(&path, folder, HPCT_RESULTS_LIVE_FILE));
    if (access(path, F_OK) == 0 && hpct_report_run_read_status(&run, path) == HPCT_OK) {
        const hpct_results_live_report *s = &run.status;
        if (s->job != NULL && strcmp(s->job, best->job) == 0 &&
            (best->path == NULL || s->time > best->time)) {
            char *older = best->path;
            best->path = path;
            best->time = s->time;
            path = older;
        }
        hpct_report_run_free(&run);
    }
    free(path);
    return HPCT_OK;
}

hpct_status hpct_top_find_below(char **path, const char *folder, const char *job)
{
    newest best = {.job = job};
    hpct_below below = hpct_below_find(folder, names, 1);
    hpct_status status = consider(&best, folder);
    for (size_t i = 0; i < below.num && status == HPCT_OK; i++)
        status = consider(&best, below.paths[i]);
    hpct_below_free(&below);
    *path = best.path;
    return status != HPCT_OK || best.path != NULL
               ? status
               : hpct_fail(HPCT_ERR_NO_INPUT,
                           "neither %s nor a folder in it has the " HPCT_RESULTS_LIVE_FILE
                           " of job %s: give the --log-dir of the run",
                           folder, job);
}

hpct_status hpct_top_find_job(char **path, const char *job)
{
    char *folder;
    const hpct_rank_squeue question = {.job = job, .format = "%Z", .seconds = SQUEUE_SECONDS};
    *path = NULL;
    hpct_status status = hpct_rank_squeue_ask(&folder, &question);
    if (status == HPCT_ERR_IO)
        return hpct_fail(status,
                         "--job %s: squeue does not answer, or does not know the job: give the "
                         "--log-dir of the run (%s)",
                         job, hpct_last_error());
    HPCT_TRY(status);
    status = hpct_top_find_below(path, folder, job);
    free(folder);
    return status;
}
