/* The entries of a list, one after the other: whatever becomes of one, the next is tried. */
#include <config.h>

#include "spank/stage/out.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"
#include "spank/stage/out_entry.h"
#include "spank/stage/out_tree.h"
#include "spank/stage/tree.h"

typedef struct place {
    int at;           /* the folder of the destination */
    const char *part; /* its name there */
    char *path;       /* all of it, for messages */
} place;

static hpct_status make_folders(char *folder)
{
    for (char *p = folder + 1;; p++) {
        char end = *p;
        if (end != '/' && end != '\0')
            continue;
        *p = '\0';
        if (mkdir(folder, 0777) != 0 && errno != EEXIST)
            return hpct_fail(HPCT_ERR_IO, "%s cannot be made: %s", folder, strerror(errno));
        *p = end;
        if (end == '\0')
            return HPCT_OK;
    }
}

/* Opens the folder that the absolute `path` lies in, making what is missing of it. */
static hpct_status open_above(char *path, place *out)
{
    hpct_status status = HPCT_OK;
    size_t size = (size_t) (strrchr(path, '/') - path);
    char *folder = size == 0 ? strdup("/") : strndup(path, size);
    *out = (place){.path = path, .part = path + size + 1, .at = -1};
    if (folder == NULL)
        return hpct_fail_memory(size);
    out->at = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (out->at < 0 && errno == ENOENT) {
        status = make_folders(folder);
        if (status == HPCT_OK)
            out->at = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    if (status == HPCT_OK && out->at < 0)
        status = hpct_fail(HPCT_ERR_IO, "%s cannot be opened: %s", folder, strerror(errno));
    free(folder);
    return status;
}

static hpct_status fail_place(const place *p)
{
    return hpct_fail(HPCT_ERR_IO, "%s cannot be written: %s", p->path, strerror(errno));
}

static hpct_status into_folder(hpct_out *out, int src, const char *name, const place *p)
{
    int folder = openat(p->at, p->part, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return fail_place(p);
    hpct_status status = hpct_out_folder(out, src, name, folder, false);
    close(folder);
    return status;
}

/* A folder that is not there yet: gets its name when all of it is there. */
static hpct_status new_folder(hpct_out *out, const hpct_out_job *job, int src, const char *name,
                              const place *p)
{
    if (!job->again)
        hpct_tree_remove(p->at, out->temp, out->report);
    if (mkdirat(p->at, out->temp, 0700) != 0 && errno != EEXIST)
        return fail_place(p);
    int temp = openat(p->at, out->temp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (temp < 0)
        return fail_place(p);
    hpct_status status = hpct_out_folder(out, src, name, temp, true);
    close(temp);
    if (status != HPCT_OK || renameat2(p->at, out->temp, p->at, p->part, RENAME_NOREPLACE) == 0 ||
        (errno == EINVAL && renameat(p->at, out->temp, p->at, p->part) == 0))
        return status;
    if (errno != EEXIST && errno != ENOTEMPTY)
        return fail_place(p);
    status = into_folder(out, src, name, p); /* another step was quicker */
    if (status == HPCT_OK)
        hpct_tree_remove(p->at, out->temp, out->report);
    return status;
}

/* What a last try leaves half copied is the user's, and worth more than nothing. */
static void keep_part(hpct_out *out, const place *p)
{
    char *name = NULL;
    struct stat info;
    if (fstatat(p->at, out->temp, &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(info.st_mode) ||
        asprintf(&name, "%s.partial", p->part) < 0)
        return;
    bool kept = renameat2(p->at, out->temp, p->at, name, RENAME_NOREPLACE) == 0;
    hpct_fail(HPCT_ERR_IO, "what could be copied of it is in %.*s%s", (int) (p->part - p->path),
              p->path, kept ? name : out->temp);
    hpct_report_say("%s", hpct_last_error());
    if (out->loss != NULL)
        fprintf(out->loss, "%s\n", hpct_last_error());
    free(name);
}

static hpct_status copy_to(hpct_out *out, const hpct_out_job *job, int src, const char *name,
                           const place *p)
{
    struct stat info, have;
    if (fstat(src, &info) != 0)
        return hpct_fail(HPCT_ERR_NO_INPUT, "%s cannot be read: %s", name, strerror(errno));
    bool there = fstatat(p->at, p->part, &have, 0) == 0;
    if (S_ISREG(info.st_mode)) {
        if (there && S_ISDIR(have.st_mode))
            return hpct_fail(HPCT_ERR_IO,
                             "%s is a folder and %s a file: write %s/ to put it in there", p->path,
                             name, p->path);
        return hpct_out_file(out, src, &info, name, p->at, p->part);
    }
    if (!S_ISDIR(info.st_mode))
        return hpct_fail(HPCT_ERR_DATA, "%s is neither a file nor a folder", name);
    return there ? into_folder(out, src, name, p) : new_folder(out, job, src, name, p);
}

/* Names and numbers for one copy, and where it goes. */
typedef struct copy {
    const hpct_out_entry *entry;
    hpct_out_names names;
    unsigned number; /* among all of the record */
} copy;

static hpct_status run_copy(hpct_out *out, const hpct_out_job *job, const hpct_out_record *record,
                            const copy *c, int from)
{
    place p = {.at = -1};
    int src = -1;
    unsigned left_out = out->left_out;
    hpct_status status = HPCT_OK;
    char *name = hpct_out_name(c->entry->src, &c->names), *path = NULL;
    char *dst = hpct_out_name(c->entry->dst, &c->names);
    if (name == NULL || dst == NULL ||
        (*dst == '/' ? (path = strdup(dst)) == NULL
                     : asprintf(&path, "%s/%s", record->cwd, dst) < 0)) {
        status = hpct_fail_memory(0);
        goto end;
    }
    int size = snprintf(out->temp, sizeof out->temp, ".hpc-train-out.%u.%s.%u.%u", record->job,
                        record->step, record->node, c->number);
    if (job->process != 0 && (size_t) size < sizeof out->temp)
        snprintf(out->temp + size, sizeof out->temp - (size_t) size, ".%d", job->process);
    status = hpct_report_tick(out->report, 0);
    if (status != HPCT_OK)
        goto end;
    src = openat(from, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (src < 0 && (errno == ENOENT || errno == ENOTDIR)) {
        hpct_report_say("%s/%s is not there: nothing is copied to %s", job->from, name, path);
        goto end;
    }
    if (src < 0) {
        status = hpct_fail(HPCT_ERR_NO_INPUT, "%s cannot be read: %s", name, strerror(errno));
        goto end;
    }
    status = open_above(path, &p);
    if (status == HPCT_OK)
        status = copy_to(out, job, src, name, &p);
end:
    if (status != HPCT_OK && path != NULL) {
        char why[2048];
        snprintf(why, sizeof why, "%s", hpct_last_error());
        hpct_out_left(out, hpct_fail(status, "%s to %s: %s", name, path, why));
    } else if (status != HPCT_OK) {
        hpct_out_left(out, status);
    } else if (out->left_out > left_out + HPCT_OUT_LINES) {
        hpct_report_say("and %u more below %s", out->left_out - left_out - HPCT_OUT_LINES, name);
    }
    if (job->last && status != HPCT_OK && p.at >= 0)
        keep_part(out, &p);
    if (src >= 0)
        close(src);
    if (p.at >= 0)
        close(p.at);
    free(path);
    free(dst);
    free(name);
    return status;
}

/* Calls run_copy for each copy of the list, or only adds up their sizes. */
static void each_copy(hpct_out *out, const hpct_out_job *job, const hpct_out_record *record,
                      const hpct_out_list *list, const char *host, int from, uint64_t *bytes)
{
    copy c = {
        .names = {.job = record->job, .step = record->step, .node = record->node, .host = host}};
    for (int i = 0; i < list->count; i++) {
        uint32_t count = list->entries[i].per_task ? record->num_tasks : 1;
        c.entry = &list->entries[i];
        for (uint32_t task = 0; task < count; task++, c.number++) {
            c.names.task = record->num_tasks > 0 ? record->tasks[task] : 0;
            if (bytes == NULL) {
                run_copy(out, job, record, &c, from);
                continue;
            }
            char *name = hpct_out_name(c.entry->src, &c.names);
            int src = name == NULL ? -1 : openat(from, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
            if (src >= 0) {
                hpct_out_measure(src, out->report, bytes);
                close(src);
            }
            free(name);
        }
    }
}

static void write_loss(const hpct_out_record *record, const char *text)
{
    char *path = NULL;
    struct stat info;
    if (asprintf(&path, "%s/hpc-train-lost.%u.%s.%u", record->cwd, record->job, record->step,
                 record->node) < 0)
        return;
    /* A job that was requeued may have lost something before. */
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    if (fd >= 0 && (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))) {
        close(fd);
        fd = -1;
        errno = EEXIST;
    }
    if (fd < 0)
        hpct_report_say("%s cannot be written: %s", path, strerror(errno));
    else if (dprintf(fd, "hpc-train: not copied out of job %u, step %s, node %u, and removed:\n%s",
                     record->job, record->step, record->node, text) < 0)
        hpct_report_say("%s cannot be written", path);
    if (fd >= 0)
        close(fd);
    free(path);
}

hpct_status hpct_out_run(const hpct_out_job *job, const hpct_out_record *record,
                         hpct_report *report)
{
    hpct_out out = {.report = report, .first = HPCT_OK};
    hpct_out_list list;
    char host[256] = "", *text = NULL;
    size_t size = 0;
    hpct_status status = hpct_out_list_parse(record->list, &list);
    if (status != HPCT_OK)
        return status;
    gethostname(host, sizeof host - 1);
    host[strcspn(host, ".")] = '\0';
    int from = open(job->from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (from < 0) {
        status = hpct_fail(HPCT_ERR_NO_INPUT, "%s cannot be read: %s", job->from, strerror(errno));
        hpct_out_list_free(&list);
        return status;
    }
    umask(record->umask);
    out.loss = open_memstream(&text, &size);
    each_copy(&out, job, record, &list, host, from, &report->total);
    each_copy(&out, job, record, &list, host, from, NULL);
    if (out.loss != NULL && fclose(out.loss) == 0 && out.left_out > 0 && job->note)
        write_loss(record, text);
    free(text);
    close(from);
    hpct_out_list_free(&list);
    if (out.left_out > 0)
        return hpct_fail(out.first, "%u of the results could not be copied", out.left_out);
    return HPCT_OK;
}
