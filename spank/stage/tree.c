/* Walking, measuring, comparing and copying a tree. */
#include <config.h>

#include "spank/stage/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "spank/stage/copy.h"

#define MAX_DEPTH 256
#define OPEN_FLAGS (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)

/* One entry of a folder being walked. */
typedef struct entry {
    int folder;       /* the source folder */
    const char *part; /* its name there */
    const char *name; /* for messages, from the source on */
    int depth;        /* folders between the tree's root and this entry's folder */
    struct stat info;
} entry;

typedef hpct_status (*visitor)(void *context, const entry *e);

static hpct_status fail_read(const char *name)
{
    return hpct_fail(HPCT_ERR_NO_INPUT, "%s cannot be read: %s", name, strerror(errno));
}

/* Calls `visit` for each entry of the open folder (which stays open), in the order of the disk. */
static hpct_status each(int folder, const char *name, int depth, hpct_report *report, visitor visit,
                        void *context)
{
    hpct_status status = HPCT_OK;
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *open_folder = copy < 0 ? NULL : fdopendir(copy);
    if (open_folder == NULL) {
        status = fail_read(name);
        if (copy >= 0)
            close(copy);
        return status;
    }
    if (depth > MAX_DEPTH)
        status =
            hpct_fail(HPCT_ERR_DATA, "%s: folders are nested more than %d deep", name, MAX_DEPTH);
    while (status == HPCT_OK) {
        char *path = NULL;
        errno = 0;
        struct dirent *found = readdir(open_folder);
        if (found == NULL) {
            status = errno != 0 ? fail_read(name) : HPCT_OK;
            break;
        }
        if (strcmp(found->d_name, ".") == 0 || strcmp(found->d_name, "..") == 0)
            continue;
        status = hpct_report_tick(report, 0);
        if (status != HPCT_OK)
            break;
        if (asprintf(&path, "%s/%s", name, found->d_name) < 0) {
            status = hpct_fail_memory(0);
            break;
        }
        entry e = {.folder = folder, .part = found->d_name, .name = path, .depth = depth};
        if (fstatat(folder, e.part, &e.info, AT_SYMLINK_NOFOLLOW) != 0)
            status = fail_read(path);
        else
            status = visit(context, &e);
        free(path);
    }
    closedir(open_folder);
    return status;
}

static int open_entry(const entry *e)
{
    int fd = openat(e->folder, e->part, OPEN_FLAGS);
    if (fd < 0)
        fail_read(e->name);
    return fd;
}

/* A link may stay when, from the folder it lies in, it never climbs above the tree's root. That is
 * checked on its text: a link behind a link is itself checked, so no chain of them leads out. */
static hpct_status read_link(const entry *e, char target[PATH_MAX])
{
    ssize_t size = readlinkat(e->folder, e->part, target, PATH_MAX - 1);
    if (size < 0)
        return fail_read(e->name);
    target[size] = '\0';
    int depth = e->depth;
    bool names = false; /* a ".." behind a name could climb from wherever a link with it leads */
    for (const char *p = target; depth >= 0 && *p != '\0';) {
        size_t part = strcspn(p, "/");
        if (part == 2 && strncmp(p, "..", 2) == 0)
            depth = names ? -1 : depth - 1;
        else if (part > 0 && !(part == 1 && *p == '.'))
            names = true;
        p += part;
        p += strspn(p, "/");
    }
    if (depth < 0 || target[0] == '/')
        return hpct_fail(
            HPCT_ERR_DATA,
            "%s is a link to '%s', out of the folder that is staged: replace it by what "
            "it leads to, or stage that by itself",
            e->name, target);
    return HPCT_OK;
}

static hpct_status fail_kind(const char *name)
{
    return hpct_fail(HPCT_ERR_DATA, "%s is neither a file nor a folder nor a link", name);
}

/* ---- measuring ---- */

typedef struct measuring {
    hpct_tree_size size;
    hpct_report *report;
} measuring;

static void count(measuring *m, const struct stat *info)
{
    m->size.entries++;
    if (S_ISREG(info->st_mode)) {
        m->size.bytes += (uint64_t) info->st_size;
        m->size.blocks += ((uint64_t) info->st_size + 4095) & ~UINT64_C(4095);
    } else {
        m->size.blocks += 4096;
    }
}

static hpct_status measure_entry(void *context, const entry *e)
{
    measuring *m = context;
    char target[PATH_MAX];
    count(m, &e->info);
    if (S_ISREG(e->info.st_mode)) {
        return faccessat(e->folder, e->part, R_OK, AT_EACCESS) == 0 ? HPCT_OK : fail_read(e->name);
    }
    if (S_ISLNK(e->info.st_mode))
        return read_link(e, target);
    if (!S_ISDIR(e->info.st_mode))
        return fail_kind(e->name);
    int fd = open_entry(e);
    if (fd < 0)
        return HPCT_ERR_NO_INPUT;
    hpct_status status = each(fd, e->name, e->depth + 1, m->report, measure_entry, m);
    close(fd);
    return status;
}

hpct_status hpct_tree_measure(int src, const char *name, hpct_report *report, hpct_tree_size *size)
{
    measuring m = {.size = *size, .report = report};
    struct stat info;
    hpct_status status = HPCT_OK;
    if (fstat(src, &info) != 0)
        return fail_read(name);
    count(&m, &info);
    if (S_ISDIR(info.st_mode))
        status = each(src, name, 0, report, measure_entry, &m);
    else if (!S_ISREG(info.st_mode))
        status = fail_kind(name);
    *size = m.size;
    return status;
}

/* ---- comparing ---- */

typedef struct comparing {
    int dst; /* the folder of the copy */
    long entries;
    hpct_report *report;
} comparing;

static hpct_status count_entry(void *context, const entry *e)
{
    (void) e;
    (*(long *) context)++;
    return HPCT_OK;
}

static hpct_status different(void)
{
    return hpct_fail(HPCT_ERR_DATA, "it is not the same");
}

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec && (a->st_mode & 0777) == (b->st_mode & 0777);
}

static hpct_status compare_folders(int src, int dst, const char *name, int depth,
                                   hpct_report *report);

static hpct_status compare_entry(void *context, const entry *e)
{
    comparing *c = context;
    char want[PATH_MAX], have[PATH_MAX];
    struct stat info;
    c->entries++;
    if (fstatat(c->dst, e->part, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
        (info.st_mode & S_IFMT) != (e->info.st_mode & S_IFMT))
        return different();
    if (S_ISREG(info.st_mode))
        return same_file(&info, &e->info) ? HPCT_OK : different();
    if (S_ISLNK(info.st_mode)) {
        ssize_t a = readlinkat(e->folder, e->part, want, sizeof want);
        ssize_t b = readlinkat(c->dst, e->part, have, sizeof have);
        return a >= 0 && a == b && memcmp(want, have, (size_t) a) == 0 ? HPCT_OK : different();
    }
    if (!S_ISDIR(info.st_mode))
        return different();
    int src = open_entry(e), dst = openat(c->dst, e->part, OPEN_FLAGS);
    hpct_status status = src < 0 || dst < 0
                             ? different()
                             : compare_folders(src, dst, e->name, e->depth + 1, c->report);
    if (src >= 0)
        close(src);
    if (dst >= 0)
        close(dst);
    return status;
}

static hpct_status compare_folders(int src, int dst, const char *name, int depth,
                                   hpct_report *report)
{
    comparing c = {.dst = dst, .report = report};
    long entries = 0;
    hpct_status status = each(src, name, depth, report, compare_entry, &c);
    if (status == HPCT_OK)
        status = each(dst, name, depth, report, count_entry, &entries);
    return status == HPCT_OK && entries != c.entries ? different() : status;
}

bool hpct_tree_same(int src, int parent, const char *dst, hpct_report *report)
{
    struct stat want, have;
    int fd = openat(parent, dst, OPEN_FLAGS);
    if (fd < 0)
        return false;
    bool same = fstat(src, &want) == 0 && fstat(fd, &have) == 0 &&
                (want.st_mode & S_IFMT) == (have.st_mode & S_IFMT);
    if (same && S_ISREG(want.st_mode))
        same = same_file(&want, &have);
    else if (same)
        same = compare_folders(src, fd, dst, 0, report) == HPCT_OK;
    close(fd);
    return same;
}

/* ---- copying ---- */

typedef struct copying {
    int dst; /* the folder to copy into */
    hpct_report *report;
} copying;

static hpct_status fail_make(const char *name)
{
    return hpct_fail(HPCT_ERR_IO, "%s: the copy cannot be made: %s", name, strerror(errno));
}

static hpct_status copy_any(int src, const struct stat *info, const char *name, int parent,
                            const char *part, int depth, hpct_report *report);

static hpct_status copy_entry(void *context, const entry *e)
{
    copying *c = context;
    char target[PATH_MAX];
    if (S_ISLNK(e->info.st_mode)) {
        hpct_status status = read_link(e, target);
        if (status != HPCT_OK)
            return status;
        const struct timespec times[2] = {e->info.st_atim, e->info.st_mtim};
        if (symlinkat(target, c->dst, e->part) != 0 ||
            utimensat(c->dst, e->part, times, AT_SYMLINK_NOFOLLOW) != 0)
            return fail_make(e->name);
        c->report->files++;
        return HPCT_OK;
    }
    struct stat info; /* of what was opened, which may no longer be what was seen */
    int fd = open_entry(e);
    if (fd < 0)
        return HPCT_ERR_NO_INPUT;
    hpct_status status = fstat(fd, &info) != 0 ? fail_read(e->name)
                                               : copy_any(fd, &info, e->name, c->dst, e->part,
                                                          e->depth + 1, c->report);
    close(fd);
    return status;
}

/* A folder is filled while it is the owner's alone, and gets its mode and times last. */
static hpct_status copy_folder(int src, const struct stat *info, const char *name, int parent,
                               const char *part, int depth, hpct_report *report)
{
    if (mkdirat(parent, part, 0700) != 0)
        return fail_make(name);
    int dst = openat(parent, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dst < 0)
        return fail_make(name);
    copying c = {.dst = dst, .report = report};
    const struct timespec times[2] = {info->st_atim, info->st_mtim};
    hpct_status status = each(src, name, depth, report, copy_entry, &c);
    if (status == HPCT_OK && (fchmod(dst, info->st_mode & 0777) != 0 || futimens(dst, times) != 0))
        status = fail_make(name);
    close(dst);
    return status;
}

static hpct_status copy_any(int src, const struct stat *info, const char *name, int parent,
                            const char *part, int depth, hpct_report *report)
{
    report->files++;
    if (S_ISDIR(info->st_mode))
        return copy_folder(src, info, name, parent, part, depth, report);
    if (!S_ISREG(info->st_mode))
        return fail_kind(name);
    int dst = openat(parent, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (dst < 0)
        return fail_make(name);
    hpct_status status = hpct_copy_content(src, info, dst, name, report);
    if (close(dst) != 0 && status == HPCT_OK)
        status = fail_make(name);
    return status;
}

hpct_status hpct_tree_copy(int src, const char *name, int parent, const char *dst,
                           hpct_report *report)
{
    struct stat info;
    if (fstat(src, &info) != 0)
        return fail_read(name);
    return copy_any(src, &info, name, parent, dst, 0, report);
}

/* ---- removing ---- */

void hpct_tree_remove(int parent, const char *name)
{
    if (unlinkat(parent, name, 0) == 0 || (errno != EISDIR && errno != EPERM))
        return;
    fchmodat(parent, name, 0700, 0);
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    if (folder == NULL) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (struct dirent *found; (found = readdir(folder)) != NULL;) {
        if (strcmp(found->d_name, ".") != 0 && strcmp(found->d_name, "..") != 0)
            hpct_tree_remove(fd, found->d_name);
    }
    closedir(folder);
    unlinkat(parent, name, AT_REMOVEDIR);
}
