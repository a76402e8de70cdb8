/* Folders are looked through one level deep: a log folder is usually made beside the job's script.
 */
#include "agent/top/find.h"

#include "agent/rank/squeue.h"
#include "agent/results/status_file.h"
#include "base/status.h"

#include <dirent.h>
#include <errno.h>
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

hpct_status hpct_find_run(char **path, const char *run)
{
    struct stat info;
    const char *folder = run != NULL ? run : ".";
    *path = NULL;
    if (stat(folder, &info) != 0)
        return hpct_fail(HPCT_ERR_NO_INPUT, "%s cannot be read: %s", folder, strerror(errno));
    HPCT_TRY(join(path, folder, S_ISDIR(info.st_mode) ? HPCT_LIVE_FILE : ""));
    if (access(*path, F_OK) == 0)
        return HPCT_OK;
    free(*path);
    *path = NULL;
    return hpct_fail(HPCT_ERR_NO_INPUT,
                     "%s has no " HPCT_LIVE_FILE ": give the --log-dir of a run, or --job", folder);
}

/* ---- of a job ---- */

typedef struct newest {
    const char *job;
    char *path;
    int64_t time;
} newest;

/* Takes `path`, or frees it. */
static void consider(newest *best, char *path)
{
    hpct_live_report report;
    if (access(path, F_OK) != 0 || hpct_status_file_read(&report, path) != HPCT_OK) {
        free(path);
        return;
    }
    bool is_better = report.job != NULL && strcmp(report.job, best->job) == 0 &&
                     (best->path == NULL || report.time > best->time);
    if (is_better) {
        free(best->path);
        best->path = path;
        best->time = report.time;
    } else {
        free(path);
    }
    hpct_live_report_free(&report);
}

static hpct_status look(newest *best, const char *folder, const char *name)
{
    char *inner, *path;
    HPCT_TRY(join(&inner, folder, name));
    hpct_status status = join(&path, inner, HPCT_LIVE_FILE);
    free(inner);
    if (status == HPCT_OK)
        consider(best, path);
    return status;
}

hpct_status hpct_find_below(char **path, const char *folder, const char *job)
{
    newest best = {.job = job};
    const struct dirent *entry;
    *path = NULL;
    DIR *all = opendir(folder);
    if (all == NULL)
        return hpct_fail(HPCT_ERR_NO_INPUT, "%s cannot be read: %s", folder, strerror(errno));
    hpct_status status = look(&best, folder, "");
    while (status == HPCT_OK && (entry = readdir(all)) != NULL) {
        if (entry->d_name[0] != '.' &&
            (entry->d_type == DT_DIR || entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN))
            status = look(&best, folder, entry->d_name);
    }
    closedir(all);
    *path = best.path;
    return status != HPCT_OK || best.path != NULL
               ? status
               : hpct_fail(HPCT_ERR_NO_INPUT,
                           "neither %s nor a folder in it has the " HPCT_LIVE_FILE
                           " of job %s: give the --log-dir of the run",
                           folder, job);
}

hpct_status hpct_find_job(char **path, const char *job)
{
    char *folder;
    const hpct_squeue question = {.job = job, .format = "%Z", .seconds = SQUEUE_SECONDS};
    *path = NULL;
    hpct_status status = hpct_squeue_ask(&folder, &question);
    if (status == HPCT_ERR_IO)
        return hpct_fail(status,
                         "--job %s: squeue does not answer, or does not know the job: give the "
                         "--log-dir of the run (%s)",
                         job, hpct_last_error());
    HPCT_TRY(status);
    status = hpct_find_below(path, folder, job);
    free(folder);
    return status;
}
