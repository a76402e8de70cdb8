/* Files of event records. */
#include "agent/results/event_files.h"

#include "agent/results/log_file.h"
#include "agent/results/results.h"
#include "base/file.h"
#include "base/output.h"
#include "base/status.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ATTEMPTS 2
#define MARK "tfevents" /* what readers look for in a name */
#define PREFIX "events.out." MARK "."
#define HOST_MAX 64

struct hpct_results_event_files {
    char *folder;
    char *earlier; /* where an earlier run's are moved; NULL: not yet */
    int num;
    bool waits;        /* an earlier run's files are still there, and these are not */
    bool epochs, good; /* any; any good one */
    hpct_results_log_file logs[HPCT_RESULTS_EVENTS_FILES];
};

static const char *const folders[HPCT_RESULTS_EVENTS_FILES] = {"train", "validation"};

/* FOLDER/train, or FOLDER/train/NAME. */
static hpct_status join(char **out, const char *folder, int which, const char *name)
{
    if (asprintf(out, "%s/%s%s%s", folder, folders[which], name != NULL ? "/" : "",
                 name != NULL ? name : "") >= 0)
        return HPCT_OK;
    *out = NULL;
    return hpct_fail_memory(0);
}

/* DIR of DIR/NAME is made. */
static hpct_status make_folder_of(const char *path)
{
    char *folder = strdup(path);
    if (folder == NULL)
        return hpct_fail_memory(strlen(path));
    *strrchr(folder, '/') = '\0';
    hpct_status status = hpct_output_make_folder(folder);
    free(folder);
    return status;
}

/* ---- an earlier run's files ---- */

typedef hpct_status event_file_visitor(void *arg, int which, const char *name);

static bool is_event_file(int folder, const char *name)
{
    struct stat info;
    return strstr(name, MARK) != NULL && fstatat(folder, name, &info, 0) == 0 &&
           S_ISREG(info.st_mode);
}

static hpct_status visit_folder(const char *folder, int which, event_file_visitor *visit, void *arg)
{
    char *path;
    const struct dirent *entry;
    hpct_status status = HPCT_OK;
    HPCT_TRY(join(&path, folder, which, NULL));
    DIR *all = opendir(path);
    if (all == NULL && errno != ENOENT)
        status = hpct_file_failed("reading the folder", path);
    while (all != NULL && status == HPCT_OK && (entry = readdir(all)) != NULL) {
        if (is_event_file(dirfd(all), entry->d_name))
            status = visit(arg, which, entry->d_name);
    }
    if (all != NULL)
        closedir(all);
    free(path);
    return status;
}

static hpct_status visit_all(const char *folder, event_file_visitor *visit, void *arg)
{
    for (int which = 0; which < HPCT_RESULTS_EVENTS_FILES; which++)
        HPCT_TRY(visit_folder(folder, which, visit, arg));
    return HPCT_OK;
}

/* The largest SECONDS of their names. */
typedef struct newest {
    bool any;
    long long seconds;
} newest;

static hpct_status note_file(void *arg, int which, const char *name)
{
    newest *n = arg;
    long long seconds;
    (void) which;
    n->any = true;
    if (sscanf(name, PREFIX "%lld.", &seconds) == 1 && seconds > n->seconds)
        n->seconds = seconds;
    return HPCT_OK;
}

static hpct_status move_file(void *arg, int which, const char *name)
{
    const hpct_results_event_files *files = arg;
    char *from = NULL, *to = NULL;
    hpct_status status = join(&from, files->folder, which, name);
    if (status == HPCT_OK)
        status = join(&to, files->earlier, which, name);
    if (status == HPCT_OK)
        status = make_folder_of(to);
    if (status == HPCT_OK && rename(from, to) != 0 && errno != ENOENT)
        status = hpct_file_failed("renaming", from);
    free(from);
    free(to);
    return status;
}

/* DIR/PREFIX-events, or DIR/PREFIX-2-events and so on. */
static hpct_status find_beside(char **out, const char *folder, const char *prefix)
{
    char *path;
    if (asprintf(&path, "%s/events", folder) < 0)
        return hpct_fail_memory(0);
    hpct_status status = hpct_results_beside(out, path, prefix);
    free(path);
    return status;
}

/* ---- names ---- */

/* The files of a start have one name; SECONDS come after those that are there, even where the
 * clocks of two nodes differ. */
static hpct_status name_file(char **out, const char *folder, int which, long long seconds)
{
    char host[HOST_MAX] = "";
    if (gethostname(host, sizeof host - 1) != 0 || host[0] == '\0')
        snprintf(host, sizeof host, "localhost");
    if (asprintf(out, "%s/%s/" PREFIX "%010lld.%s.%ld.%d", folder, folders[which], seconds, host,
                 (long) getpid(), which) >= 0)
        return HPCT_OK;
    *out = NULL;
    return hpct_fail_memory(0);
}

/* ---- opening ---- */

static void files_free(hpct_results_event_files *files)
{
    for (int i = 0; i < HPCT_RESULTS_EVENTS_FILES; i++)
        hpct_results_log_free(&files->logs[i]);
    free(files->folder);
    free(files->earlier);
    free(files);
}

/* Under a name that no reader takes for an event file. */
static hpct_status try_folder(const char *folder, int which)
{
    char *path;
    HPCT_TRY(join(&path, folder, which, "events"));
    hpct_status status = hpct_output_try(path, 0);
    free(path);
    return status;
}

static hpct_status create(hpct_results_log_file *log)
{
    return log->file.fd >= 0 ? HPCT_OK : hpct_output_create(&log->file, log->path, true);
}

static hpct_status open_files(hpct_results_event_files *files, bool continues)
{
    newest there = {.any = false};
    HPCT_TRY(visit_all(files->folder, note_file, &there));
    long long now = (long long) time(NULL);
    files->waits = there.any && !continues;
    for (int i = 0; i < files->num; i++) {
        char *path;
        HPCT_TRY(name_file(&path, files->folder, i, now > there.seconds ? now : there.seconds + 1));
        files->logs[i] = hpct_results_log_file_of(path, "record");
        HPCT_TRY(make_folder_of(path));
        HPCT_TRY(files->waits ? try_folder(files->folder, i) : create(&files->logs[i]));
    }
    return HPCT_OK;
}

hpct_status hpct_results_event_files_open(hpct_results_event_files **out, const char *folder,
                                          int num, bool continues)
{
    hpct_results_event_files *files = calloc(1, sizeof *files);
    if (files == NULL)
        return hpct_fail_memory(sizeof *files);
    files->num = num;
    files->folder = strdup(folder);
    hpct_status status = files->folder != NULL ? open_files(files, continues) : hpct_fail_memory(0);
    if (status == HPCT_OK)
        *out = files;
    else
        files_free(files);
    return status;
}

/* ---- records ---- */

void hpct_results_event_files_add(hpct_results_event_files *files, int which,
                                  const hpct_protobuf *records)
{
    if (which >= files->num)
        return;
    hpct_results_log_add(&files->logs[which], records->data, records->size);
    if (records->failed)
        files->logs[which].lost = HPCT_ERR_IO;
}

/* This run's files take the place of an earlier one's. */
static hpct_status replace_earlier(hpct_results_event_files *files)
{
    if (!files->waits)
        return HPCT_OK;
    if (files->earlier == NULL)
        HPCT_TRY(find_beside(&files->earlier, files->folder, "earlier"));
    HPCT_TRY(visit_all(files->folder, move_file, files));
    files->waits = false;
    return HPCT_OK;
}

static hpct_status flush(hpct_results_event_files *files)
{
    hpct_status first = HPCT_OK;
    for (int i = 0; i < files->num; i++) {
        hpct_status status = create(&files->logs[i]);
        if (status == HPCT_OK)
            status = hpct_results_log_flush(&files->logs[i]);
        first = first == HPCT_OK ? status : first;
    }
    return first;
}

hpct_status hpct_results_event_files_flush(hpct_results_event_files *files, bool epoch, bool good)
{
    files->epochs |= epoch;
    files->good |= epoch && good;
    if (files->waits && !files->good)
        return HPCT_OK;
    HPCT_TRY(replace_earlier(files));
    return flush(files);
}

void hpct_results_event_files_mark(hpct_results_event_files *files)
{
    if (replace_earlier(files) == HPCT_OK)
        flush(files);
}

/* ---- the end ---- */

/* An earlier run's files stay: nothing good came to replace them. */
static hpct_status put_beside(hpct_results_event_files *files)
{
    char *folder;
    HPCT_TRY(find_beside(&folder, files->folder, HPCT_RESULTS_DIVERGED));
    hpct_status status = HPCT_OK;
    for (int i = 0; i < files->num && status == HPCT_OK; i++) {
        char *path;
        hpct_results_log_file *log = &files->logs[i];
        status = join(&path, folder, i, strrchr(log->path, '/') + 1);
        if (status != HPCT_OK)
            break;
        status = make_folder_of(path);
        free(log->path);
        log->path = path;
    }
    free(folder);
    files->waits = status != HPCT_OK;
    return status;
}

static hpct_status place(hpct_results_event_files *files)
{
    if (files->waits)
        return files->good ? replace_earlier(files) : put_beside(files);
    return HPCT_OK;
}

static hpct_status close_log(hpct_results_event_files *files, hpct_results_log_file *log)
{
    hpct_status status = HPCT_ERR_IO;
    for (int i = 0; i < ATTEMPTS && status != HPCT_OK; i++) {
        status = place(files);
        if (status == HPCT_OK)
            status = create(log);
        if (status == HPCT_OK)
            status = hpct_results_log_flush(log);
        if (status == HPCT_OK)
            status = hpct_output_place(&log->file);
    }
    return status == HPCT_OK ? hpct_results_log_check(log) : hpct_results_log_rescue(status, log);
}

hpct_status hpct_results_event_files_close(hpct_results_event_files *files)
{
    char *why = NULL;
    hpct_status first = HPCT_OK;
    if (files == NULL)
        return HPCT_OK;
    for (int i = 0; i < files->num && (!files->waits || files->epochs); i++) {
        hpct_status status = close_log(files, &files->logs[i]);
        if (status == HPCT_OK)
            continue;
        if (why != NULL)
            hpct_fail(status, "%s; %s", why, hpct_last_error());
        free(why);
        why = hpct_error_keep();
        first = status;
    }
    files_free(files);
    if (why != NULL)
        hpct_error_restore(why);
    return first;
}
