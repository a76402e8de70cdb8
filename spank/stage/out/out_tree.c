/* Two kinds of failure are told apart: of a source, after which the next one is tried, and of the
 * destination (full, gone) or of time, after which nothing more can be done. */
#include <config.h>

#include "spank/stage/out/out_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/status.h"
#include "spank/spec/entry.h"
#include "spank/stage/out/out_put.h"
#include "spank/stage/tree/content.h"

#define MAX_DEPTH 256
#define TRIES 3 /* for a file that changes while it is copied */
#define SYNC_BYTES                                                                                 \
    (1l << 20) /* from this size on, a file is on the disk before it has its name                  \
                */
#define OPEN_FLAGS (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)

void hpct_stage_out_left(hpct_stage_out *out, hpct_status status)
{
    if (out->left_out++ == 0)
        out->first = status;
    if (out->left_out <= HPCT_STAGE_OUT_LINES)
        hpct_stage_report_say("not copied out: %s", hpct_last_error());
    if (out->loss != NULL)
        fprintf(out->loss, "%s\n", hpct_last_error());
}

static void left_unread(hpct_stage_out *out, const char *name)
{
    if (errno == ENOENT) /* removed meanwhile, by a process that the job left behind */
        return;
    hpct_stage_out_left(
        out, hpct_fail(HPCT_ERR_NO_INPUT, "%s cannot be read: %s", name, strerror(errno)));
}

static hpct_status fail_write(const char *name)
{
    return hpct_fail(HPCT_ERR_IO, "the copy of %s cannot be written: %s", name, strerror(errno));
}

static bool same_time(const struct stat *a, const struct stat *b)
{
    return a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Two runs may give their files the same size and time (touch -d, tar): only what was put there
 * after the source had last changed can be a copy of it; if not by this job, its bytes decide. */
static bool is_copy(const struct stat *have, const struct stat *info)
{
    return S_ISREG(have->st_mode) && have->st_size == info->st_size && same_time(have, info) &&
           (have->st_mode & 0777) == (info->st_mode & 0777) &&
           (have->st_ctim.tv_sec > info->st_ctim.tv_sec ||
            (have->st_ctim.tv_sec == info->st_ctim.tv_sec &&
             have->st_ctim.tv_nsec >= info->st_ctim.tv_nsec));
}

static bool there_already(const hpct_stage_out *out, int src, const struct stat *info,
                          const char *name, int at, const char *part, struct stat *have)
{
    if (fstatat(at, part, have, AT_SYMLINK_NOFOLLOW) != 0 || !is_copy(have, info))
        return false;
    if (hpct_stage_out_ours_has(out->ours, name, out->to, have))
        return true;
    int dst = openat(at, part, OPEN_FLAGS);
    bool same = dst >= 0 && hpct_stage_same_content(src, dst, out->report);
    hpct_fd_close(dst);
    return same;
}

hpct_status hpct_stage_out_file(hpct_stage_out *out, int src, const struct stat *info,
                                const char *name, int at, const char *part)
{
    struct stat before = *info, after, have;
    if (there_already(out, src, info, name, at, part, &have))
        return HPCT_OK;
    for (int tries = 1;; tries++) {
        unlinkat(at, out->temp, 0);
        int dst = openat(at, out->temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (dst < 0)
            return fail_write(name);
        hpct_status status = hpct_stage_copy_content(src, &before, dst, name, out->report);
        if (status == HPCT_OK && before.st_size >= SYNC_BYTES && fsync(dst) != 0)
            status = fail_write(name);
        if (close(dst) != 0 && status == HPCT_OK)
            status = fail_write(name);
        if (status == HPCT_OK) {
            out->report->files++;
            return hpct_stage_out_put(out, at, part, name);
        }
        unlinkat(at, out->temp, 0);
        bool changed = fstat(src, &after) != 0 || after.st_size != before.st_size ||
                       !same_time(&after, &before);
        if (status == HPCT_ERR_STOPPED || (status == HPCT_ERR_IO && !changed) ||
            status == HPCT_ERR_INTERNAL)
            return status;
        if (!changed || tries == TRIES) {
            hpct_stage_out_left(out, status);
            return HPCT_OK;
        }
        before = after;
        if (lseek(src, 0, SEEK_SET) != 0)
            return hpct_fail(HPCT_ERR_INTERNAL, "%s: %s", name, strerror(errno));
    }
}

/* Makes `part` another name of what was copied to `first`, below the root. False when that cannot
 * be: it was not copied, or the file system keeps no hard links. */
static bool copy_hard_link(hpct_stage_out *out, int src, const struct stat *info, const char *first,
                           const char *name, int at, const char *part, hpct_status *status)
{
    struct stat copy, have;
    char *first_name = NULL;
    *status = HPCT_OK;
    if (asprintf(&first_name, "%.*s/%s", (int) out->root_name, name, first) < 0)
        return false;
    bool copied = there_already(out, src, info, first_name, out->root, first, &copy);
    free(first_name);
    if (!copied)
        return false;
    if (fstatat(at, part, &have, AT_SYMLINK_NOFOLLOW) == 0 && have.st_dev == copy.st_dev &&
        have.st_ino == copy.st_ino)
        return true;
    unlinkat(at, out->temp, 0);
    if (linkat(out->root, first, at, out->temp, 0) != 0)
        return false;
    *status = hpct_stage_out_put(out, at, part, name);
    return true;
}

static hpct_status copy_file(hpct_stage_out *out, int src, const struct stat *info,
                             const char *name, int at, const char *part)
{
    const char *path = name + out->root_name + 1;
    const hpct_stage_inode *first = NULL;
    hpct_status status = HPCT_OK;
    if (info->st_nlink > 1 && (first = hpct_stage_inodes_add(&out->links, info, 0, path)) == NULL)
        return hpct_fail_memory(strlen(path));
    if (first != NULL && strcmp(first->name, path) != 0 &&
        copy_hard_link(out, src, info, first->name, name, at, part, &status))
        return status;
    return hpct_stage_out_file(out, src, info, name, at, part);
}

static hpct_status copy_link(hpct_stage_out *out, int folder, const struct stat *info,
                             const char *found, const char *name, int at)
{
    char target[PATH_MAX], have[PATH_MAX];
    const struct timespec times[2] = {info->st_atim, info->st_mtim};
    ssize_t size = readlinkat(folder, found, target, sizeof target - 1);
    if (size < 0) {
        left_unread(out, name);
        return HPCT_OK;
    }
    target[size] = '\0';
    if (readlinkat(at, found, have, sizeof have) == size &&
        memcmp(have, target, (size_t) size) == 0)
        return HPCT_OK;
    unlinkat(at, out->temp, 0);
    if (symlinkat(target, at, out->temp) != 0)
        return fail_write(name);
    utimensat(at, out->temp, times, AT_SYMLINK_NOFOLLOW);
    return hpct_stage_out_put(out, at, found, name);
}

static hpct_status walk(hpct_stage_out *out, int src, const char *name, int at, bool whole,
                        int depth);

static hpct_status copy_folder(hpct_stage_out *out, int src, const struct stat *info,
                               const char *found, const char *name, int at, bool whole, int depth)
{
    bool made = mkdirat(at, found, (info->st_mode & 0777) | 0700) == 0;
    if (!made && errno != EEXIST)
        return fail_write(name);
    int dst = openat(at, found, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dst < 0) {
        hpct_stage_out_left(out, hpct_fail(HPCT_ERR_IO,
                                           "%s: at the destination there is no folder of "
                                           "that name that can be written to: %s",
                                           name, strerror(errno)));
        return HPCT_OK;
    }
    hpct_status status = walk(out, src, name, dst, whole || made, depth + 1);
    close(dst);
    return status;
}

static hpct_status copy_entry(hpct_stage_out *out, int folder, const char *found, const char *name,
                              int at, bool whole, int depth)
{
    struct stat info;
    if (fstatat(folder, found, &info, AT_SYMLINK_NOFOLLOW) != 0) {
        left_unread(out, name);
        return HPCT_OK;
    }
    if (S_ISLNK(info.st_mode))
        return copy_link(out, folder, &info, found, name, at);
    if (info.st_dev == out->root_info.st_dev && info.st_ino == out->root_info.st_ino) {
        hpct_stage_out_left(out,
                            hpct_fail(HPCT_ERR_USAGE,
                                      "%s is where this is copied to: give a destination outside "
                                      "of what is copied",
                                      name));
        return HPCT_OK;
    }
    if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) {
        hpct_stage_report_say("%s is not a file, folder or link, and is left out", name);
        return HPCT_OK;
    }
    int src = openat(folder, found, OPEN_FLAGS);
    if (src < 0 || fstat(src, &info) != 0) {
        left_unread(out, name);
        hpct_fd_close(src);
        return HPCT_OK;
    }
    hpct_status status = S_ISDIR(info.st_mode)
                             ? copy_folder(out, src, &info, found, name, at, whole, depth)
                         : S_ISREG(info.st_mode) ? copy_file(out, src, &info, name, at, found)
                                                 : HPCT_OK; /* it was replaced meanwhile */
    close(src);
    return status;
}

/* Neither ours nor, in the folder itself, what was not asked for. */
static bool is_wanted(const char *name, const char *only, int depth)
{
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
        (depth == 0 && strcmp(name, HPCT_SPEC_PRIVATE_FOLDER) == 0))
        return false;
    return depth > 0 || only == NULL || strcmp(name, only) == 0 ||
           fnmatch(only, name, FNM_PERIOD) == 0;
}

/* A folder that was made in a group's folder (with the set-group-ID bit) stays the group's. */
static int set_mode(int at, mode_t mode)
{
    struct stat have;
    if (fstat(at, &have) != 0)
        return -1;
    mode = (mode & 0777) | (have.st_mode & S_ISGID);
    return mode == (have.st_mode & 07777) ? 0 : fchmod(at, mode);
}

static hpct_status walk(hpct_stage_out *out, int src, const char *name, int at, bool whole,
                        int depth)
{
    struct stat info;
    hpct_status status = HPCT_OK;
    if (depth > MAX_DEPTH) {
        hpct_stage_out_left(
            out,
            hpct_fail(HPCT_ERR_DATA, "%s: folders are nested more than %d deep", name, MAX_DEPTH));
        return HPCT_OK;
    }
    DIR *entries = hpct_fd_list(src);
    if (entries == NULL || fstat(src, &info) != 0) {
        left_unread(out, name);
        goto end;
    }
    for (struct dirent *found; status == HPCT_OK && (found = readdir(entries)) != NULL;) {
        char *path = NULL;
        if (!is_wanted(found->d_name, out->only, depth))
            continue;
        status = hpct_stage_report_tick(out->report, 0);
        if (status == HPCT_OK && asprintf(&path, "%s/%s", name, found->d_name) < 0)
            status = hpct_fail_memory(0);
        if (status == HPCT_OK)
            status = copy_entry(out, src, found->d_name, path, at, whole, depth);
        free(path);
    }
    const struct timespec times[2] = {info.st_atim, info.st_mtim};
    if (status == HPCT_OK && whole && (set_mode(at, info.st_mode) != 0 || futimens(at, times) != 0))
        status = fail_write(name);
end:
    if (entries != NULL)
        closedir(entries);
    return status;
}

hpct_status hpct_stage_out_folder(hpct_stage_out *out, int src, const char *name, int at,
                                  bool whole)
{
    out->root = at;
    if (fstat(at, &out->root_info) != 0)
        return fail_write(name);
    out->root_name = strlen(name);
    hpct_status status = walk(out, src, name, at, whole, 0);
    hpct_stage_inodes_free(&out->links);
    return status;
}

bool hpct_stage_out_matches(int src, const char *only)
{
    bool found = false;
    DIR *entries = hpct_fd_list(src);
    for (struct dirent *next; !found && entries != NULL && (next = readdir(entries)) != NULL;)
        found = is_wanted(next->d_name, only, 0);
    if (entries != NULL)
        closedir(entries);
    return found;
}

typedef struct sum {
    hpct_stage_report *report;
    const char *only;
    void *counted; /* hpct_stage_inodes: of files with several names */
    size_t files;
    uint64_t bytes;
} sum;

static hpct_status count_file(sum *s, const struct stat *info)
{
    const hpct_stage_inode *known = NULL;
    const size_t number = ++s->files;
    if (info->st_nlink > 1 &&
        (known = hpct_stage_inodes_add(&s->counted, info, number, "")) == NULL)
        return hpct_fail_memory(0);
    if (known == NULL || known->number == number)
        s->bytes += (uint64_t) info->st_size;
    return HPCT_OK;
}

static hpct_status measure(int src, sum *s, int depth)
{
    struct stat info;
    hpct_status status = HPCT_OK;
    DIR *entries = depth <= MAX_DEPTH ? hpct_fd_list(src) : NULL;
    if (entries == NULL)
        return HPCT_OK;
    for (struct dirent *found; status == HPCT_OK && (found = readdir(entries)) != NULL;) {
        if (!is_wanted(found->d_name, s->only, depth))
            continue;
        status = hpct_stage_report_tick(s->report, 0);
        if (status != HPCT_OK || fstatat(src, found->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        if (S_ISREG(info.st_mode))
            status = count_file(s, &info);
        int below = S_ISDIR(info.st_mode) ? openat(src, found->d_name, OPEN_FLAGS) : -1;
        if (below >= 0) {
            status = measure(below, s, depth + 1);
            close(below);
        }
    }
    closedir(entries);
    return status;
}

hpct_status hpct_stage_out_measure(int src, const char *only, hpct_stage_report *report,
                                   uint64_t *bytes)
{
    struct stat info;
    sum s = {.report = report, .only = only};
    hpct_status status = HPCT_OK;
    if (fstat(src, &info) == 0 && S_ISREG(info.st_mode))
        s.bytes = (uint64_t) info.st_size;
    else
        status = measure(src, &s, 0);
    *bytes += s.bytes;
    hpct_stage_inodes_free(&s.counted);
    return status;
}
