/* Copies the entries of a list one after the other; if one fails, the next is tried. */
#include <config.h>

#include "spank/stage/out/out.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/links.h"
#include "base/status.h"
#include "spank/spec/entry.h"
#include "spank/spec/out_entry.h"
#include "spank/stage/out/out_ours.h"
#include "spank/stage/out/out_tree.h"
#include "spank/stage/tree/folders.h"

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

/* A link is not replaced: what it leads to is. Others' in a folder like /tmp are not followed. */
static hpct_status follow(char **path)
{
    struct stat info;
    if (lstat(*path, &info) != 0 || !S_ISLNK(info.st_mode))
        return HPCT_OK;
    if (stat(*path, &info) != 0 && errno != ENOENT)
        return hpct_fail(HPCT_ERR_IO, "%s cannot be opened: %s", *path, strerror(errno));
    char *to = hpct_links_follow(*path);
    if (to == NULL)
        return hpct_fail_memory(strlen(*path));
    free(*path);
    *path = to;
    return HPCT_OK;
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

/* A folder below the job directory, by no link: nothing outside of it is matched. */
static int open_below(int from, const char *path)
{
    int at = openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (at >= 0 && *path != '\0') {
        size_t size = strcspn(path, "/");
        char *part = strndup(path, size);
        int below =
            part == NULL ? -1 : openat(at, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        hpct_fd_close(at);
        free(part);
        at = below;
        path += size + strspn(path + size, "/");
    }
    return at;
}

/* What an entry names, or, with a pattern, the folder in which things match it. */
typedef struct source {
    int at;           /* -1, with errno: ENOENT when there is nothing of it */
    const char *only; /* the pattern, or NULL */
    char *name;       /* of what is open */
} source;

static source open_source(const hpct_spec_out_entry *entry, int from, const char *name)
{
    const char *last = hpct_spec_entry_last_part(name);
    source s = {.at = -1, .only = entry->several ? last : NULL};
    s.name = !entry->several ? strdup(name)
             : last == name  ? strdup(".")
                             : strndup(name, (size_t) (last - name - 1));
    if (s.name == NULL)
        errno = ENOMEM;
    else if (!entry->several)
        s.at = openat(from, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    else
        s.at = open_below(from, s.name);
    if (s.at >= 0 && s.only != NULL && !hpct_stage_out_matches(s.at, s.only)) {
        close(s.at);
        errno = ENOENT;
        s.at = -1;
    }
    return s;
}

static void close_source(source *s)
{
    hpct_fd_close(s->at);
    free(s->name);
}

static hpct_status into_folder(hpct_stage_out *out, int src, const char *name, const place *p)
{
    int folder = openat(p->at, p->part, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return fail_place(p);
    hpct_status status = hpct_stage_out_folder(out, src, name, folder, false);
    close(folder);
    return status;
}

/* A folder that is not there yet: gets its name when all of it is there. */
static hpct_status new_folder(hpct_stage_out *out, const hpct_stage_out_job *job, int src,
                              const char *name, const place *p)
{
    if (!job->again)
        hpct_stage_tree_remove(p->at, out->temp, out->report);
    mode_t mode = out->only == NULL ? 0700 : 0777; /* that of the source comes last */
    if (mkdirat(p->at, out->temp, mode) != 0 && errno != EEXIST)
        return fail_place(p);
    int temp = openat(p->at, out->temp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (temp < 0)
        return fail_place(p);
    hpct_status status = hpct_stage_out_folder(out, src, name, temp, out->only == NULL);
    close(temp);
    if (status != HPCT_OK || renameat2(p->at, out->temp, p->at, p->part, RENAME_NOREPLACE) == 0 ||
        (errno == EINVAL && renameat(p->at, out->temp, p->at, p->part) == 0))
        return status;
    if (errno != EEXIST && errno != ENOTEMPTY)
        return fail_place(p);
    /* another step was quicker */
    HPCT_TRY(into_folder(out, src, name, p));
    hpct_stage_tree_remove(p->at, out->temp, out->report);
    return HPCT_OK;
}

/* What a last try leaves half copied is the user's, and worth more than nothing. */
static void keep_part(hpct_stage_out *out, const place *p)
{
    char *name = NULL;
    struct stat info;
    if (fstatat(p->at, out->temp, &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(info.st_mode) ||
        asprintf(&name, "%s.partial", p->part) < 0)
        return;
    bool kept = renameat2(p->at, out->temp, p->at, name, RENAME_NOREPLACE) == 0;
    hpct_fail(HPCT_ERR_IO, "what could be copied of it is in %.*s%s", (int) (p->part - p->path),
              p->path, kept ? name : out->temp);
    hpct_stage_report_say("%s", hpct_last_error());
    if (out->loss != NULL)
        fprintf(out->loss, "%s\n", hpct_last_error());
    free(name);
}

static hpct_status copy_to(hpct_stage_out *out, const hpct_stage_out_job *job, int src,
                           const char *name, const place *p)
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
        if (there && !S_ISREG(have.st_mode))
            return hpct_fail(HPCT_ERR_IO, "%s is a device, a pipe or a socket", p->path);
        return hpct_stage_out_file(out, src, &info, name, p->at, p->part);
    }
    if (!S_ISDIR(info.st_mode))
        return hpct_fail(HPCT_ERR_DATA, "%s is neither a file nor a folder", name);
    return there ? into_folder(out, src, name, p) : new_folder(out, job, src, name, p);
}

static bool same_folder(int a, int b)
{
    struct stat of_a, of_b;
    return fstat(a, &of_a) == 0 && fstat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
           of_a.st_ino == of_b.st_ino;
}

/* Whether the open folder is `top` or below it, also through links. */
static bool is_below(int folder, int top)
{
    bool below = same_folder(folder, top), root = false;
    int at = openat(folder, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    while (at >= 0 && !below && !root) {
        int up = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        root = up < 0 || same_folder(at, up);
        below = up >= 0 && same_folder(up, top);
        close(at);
        at = up;
    }
    hpct_fd_close(at);
    return below;
}

/* A step's results would go with the job directory. A user's own command may copy there. */
static hpct_status check_goes_out(const hpct_stage_out_job *job, const place *p, int from)
{
    if (job->process != 0 || !is_below(p->at, from))
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_USAGE,
                     "that is in the job directory, which is removed with all that is in it when "
                     "the job ends: give a destination outside of it");
}

/* Names and numbers for one copy, and where it goes. */
typedef struct copy {
    const hpct_spec_out_entry *entry;
    hpct_spec_out_names names;
    unsigned number; /* among all of the record */
    char *found;     /* '1' when there is something of the entry */
} copy;

static hpct_status run_copy(hpct_stage_out *out, const hpct_stage_out_job *job,
                            const hpct_spec_out_record *record, const copy *c, int from)
{
    place p = {.at = -1};
    source src = {.at = -1};
    unsigned left_out = out->left_out;
    hpct_status status = HPCT_OK;
    char *name = hpct_spec_out_name(c->entry->src, &c->names), *path = NULL, *real = NULL;
    char *dst = hpct_spec_out_name(c->entry->dst, &c->names);
    if (name == NULL || dst == NULL || (path = hpct_spec_out_path(dst, record->cwd)) == NULL) {
        status = hpct_fail_memory(0);
        goto end;
    }
    int size = snprintf(out->temp, sizeof out->temp, ".hpc-train-out.%u.%s.%u.%u", record->job,
                        record->step, record->node, c->number);
    if (job->process != 0 && (size_t) size < sizeof out->temp)
        snprintf(out->temp + size, sizeof out->temp - (size_t) size, ".%d", job->process);
    status = hpct_stage_report_tick(out->report, 0);
    if (status != HPCT_OK) {
        *c->found = '1'; /* what was not looked for is not missing */
        goto end;
    }
    src = open_source(c->entry, from, name);
    out->only = src.only;
    out->to = path;
    out->since = 0; /* each destination may be on a file system of its own */
    if (src.at < 0 && (errno == ENOENT || errno == ENOTDIR))
        goto end;
    *c->found = '1';
    if (src.at < 0) {
        status = hpct_fail(HPCT_ERR_NO_INPUT, "%s cannot be read: %s", name, strerror(errno));
        goto end;
    }
    real = strdup(path);
    status = real != NULL ? follow(&real) : hpct_fail_memory(strlen(path));
    if (status == HPCT_OK)
        status = open_above(real, &p);
    if (status == HPCT_OK)
        status = check_goes_out(job, &p, from);
    if (status == HPCT_OK)
        status = copy_to(out, job, src.at, src.name, &p);
end:
    if (status != HPCT_OK && path != NULL) {
        char why[2048];
        snprintf(why, sizeof why, "%s", hpct_last_error());
        hpct_stage_out_left(out, hpct_fail(status, "%s to %s: %s", name, path, why));
    } else if (status != HPCT_OK) {
        hpct_stage_out_left(out, status);
    } else if (out->left_out > left_out + HPCT_STAGE_OUT_LINES) {
        hpct_stage_report_say("and %u more below %s",
                              out->left_out - left_out - HPCT_STAGE_OUT_LINES, name);
    }
    if (job->last && status != HPCT_OK && p.at >= 0)
        keep_part(out, &p);
    close_source(&src);
    hpct_fd_close(p.at);
    free(real);
    free(path);
    free(dst);
    free(name);
    return status;
}

/* Of the first task. */
static hpct_spec_out_names names_of(const hpct_spec_out_record *record, char host[256])
{
    memset(host, 0, 256);
    gethostname(host, 255);
    host[strcspn(host, ".")] = '\0';
    return (hpct_spec_out_names){.job = record->job,
                                 .array = record->array,
                                 .step = record->step,
                                 .node = record->node,
                                 .host = host,
                                 .task = record->num_tasks > 0 ? record->tasks[0] : 0};
}

/* Calls run_copy for each copy of the list, or only adds up their sizes. */
static void each_copy(hpct_stage_out *out, const hpct_stage_out_job *job,
                      const hpct_spec_out_record *record, const hpct_spec_out_list *list, int from,
                      char *found, uint64_t *bytes)
{
    char host[256];
    copy c = {.names = names_of(record, host)};
    for (int i = 0; i < list->count; i++) {
        uint32_t count = list->entries[i].per_task ? record->num_tasks : 1;
        c.entry = &list->entries[i];
        c.found = &found[i];
        for (uint32_t task = 0; task < count; task++, c.number++) {
            c.names.task = record->num_tasks > 0 ? record->tasks[task] : 0;
            if (bytes == NULL) {
                run_copy(out, job, record, &c, from);
                continue;
            }
            char *name = hpct_spec_out_name(c.entry->src, &c.names);
            source src = {.at = -1};
            if (name != NULL)
                src = open_source(c.entry, from, name);
            if (src.at >= 0)
                hpct_stage_out_measure(src.at, src.only, out->report, bytes);
            close_source(&src);
            free(name);
        }
    }
}

static void write_loss(const hpct_spec_out_record *record, const char *text)
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
        hpct_stage_report_say("%s cannot be written: %s", path, strerror(errno));
    else if (dprintf(fd, "hpc-train: not copied out of job %u, step %s, node %u, and removed:\n%s",
                     record->job, record->step, record->node, text) < 0)
        hpct_stage_report_say("%s cannot be written", path);
    hpct_fd_close(fd);
    free(path);
}

/* The whole list, and a note of what is lost. */
static void copy_list(hpct_stage_out *out, const hpct_stage_out_job *job,
                      const hpct_spec_out_record *record, const hpct_spec_out_list *list, int from,
                      char *found)
{
    char *text = NULL;
    size_t size = 0;
    snprintf(out->suffix, sizeof out->suffix, ".%u.%s.%u", record->job, record->step, record->node);
    umask(record->umask);
    out->loss = open_memstream(&text, &size);
    for (int i = 0; i < list->count; i++)
        found[i] = '0';
    each_copy(out, job, record, list, from, found, &out->report->total);
    each_copy(out, job, record, list, from, found, NULL);
    if (out->loss != NULL && fclose(out->loss) == 0 && out->left_out > 0 && job->note)
        write_loss(record, text);
    free(text);
}

static hpct_status status_of(const hpct_stage_out *out)
{
    if (out->left_out > 0)
        return hpct_fail(out->first, "%u of the results could not be copied", out->left_out);
    if (out->beside > 0)
        return hpct_fail(HPCT_ERR_IO,
                         "%u of the results are kept under another name, as another step, job or "
                         "SRC has put something else there meanwhile",
                         out->beside);
    return HPCT_OK;
}

/* The user has made the job directory unreadable. What was not looked for is not missing. */
static hpct_status lose_all(const hpct_stage_out_job *job, const hpct_spec_out_record *record,
                            const hpct_spec_out_list *list, char *found)
{
    char line[PATH_MAX + 128];
    snprintf(line, sizeof line, "%s cannot be read: %s\n", job->from, strerror(errno));
    memset(found, '1', (size_t) list->count);
    if (job->note)
        write_loss(record, line);
    return hpct_fail(HPCT_ERR_NO_INPUT, "%.*s", (int) strlen(line) - 1, line);
}

hpct_status hpct_stage_out_run(const hpct_stage_out_job *job, const hpct_spec_out_record *record,
                               hpct_stage_report *report, hpct_stage_out_result *result)
{
    hpct_stage_out out = {.report = report, .start = record->start};
    hpct_spec_out_list list;
    int from = -1;
    *result = (hpct_stage_out_result){0};
    HPCT_TRY(hpct_spec_out_list_parse(record->list, &list));
    hpct_status status =
        record->array.is ? HPCT_OK : hpct_spec_out_list_check_array(&list, &record->array, 0, NULL);
    if (status != HPCT_OK)
        goto end;
    from = open(job->from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (from < 0) {
        status = lose_all(job, record, &list, result->found);
        goto end;
    }
    out.ours = hpct_stage_out_ours_open(job->from);
    copy_list(&out, job, record, &list, from, result->found);
    status = status_of(&out);
    result->all_copied = out.left_out == 0;
end:
    hpct_stage_inodes_free(&out.named);
    hpct_stage_out_ours_close(out.ours);
    hpct_fd_close(from);
    hpct_spec_out_list_free(&list);
    return status;
}

int hpct_stage_out_say_missing(const hpct_stage_out_job *job, const hpct_spec_out_record *record,
                               const hpct_stage_out_found found, int marks)
{
    char host[256];
    int count = 0;
    const hpct_spec_out_names names = names_of(record, host);
    hpct_spec_out_list list;
    if (hpct_spec_out_list_parse(record->list, &list) != HPCT_OK)
        return 0;
    for (int i = 0; i < list.count && found[i] != '\0'; i++) {
        if (found[i] == '1' || (marks >= 0 && hpct_spec_out_found_marked(marks, i)))
            continue;
        char *src = hpct_spec_out_name(list.entries[i].src, &names);
        char *dst = hpct_spec_out_name(list.entries[i].dst, &names);
        hpct_stage_report_say("%s/%s is not there: nothing is copied to %s%s%s", job->from,
                              src == NULL ? "?" : src,
                              dst != NULL && *dst == '/' ? "" : record->cwd,
                              dst != NULL && *dst == '/' ? "" : "/", dst == NULL ? "?" : dst);
        free(src);
        free(dst);
        count++;
    }
    hpct_spec_out_list_free(&list);
    return count;
}
