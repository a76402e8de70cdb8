/* Safe removal: openat2, unlinkat, on descriptors only. The depth of descriptors is bounded: what
 * lies deeper is first moved up to the top. */
#include <config.h>

#include "spank/remove.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/status.h"

#define MAX_DEPTH 64
#define PATIENCE_SECONDS 5 /* for what is still added to */

typedef struct removal {
    int top; /* the tree's own directory */
    dev_t device;
    time_t end;
    unsigned moved;
} removal;

static time_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec;
}

static void empty(removal *r, int folder, int depth);

/* The mount that a name leads to, or -1 where the file system cannot say. Opens nothing. */
static int mount_of(int at, const char *name, int flags)
{
    struct file_handle handle = {.handle_bytes = 0}; /* too small for a handle; the number comes */
    int mount = -1;
    if (name_to_handle_at(at, name, &handle, &mount, flags) != 0 && errno != EOVERFLOW)
        return -1;
    return mount;
}

/* Opens a folder that is no link and on which nothing is mounted (else: EXDEV). The kernel itself
 * looks: device numbers do not tell a bind mount from a folder, and the open of a user's FUSE mount
 * would wait for his answer. Kernels before 5.6 cannot; there the mounts are compared first. */
static int open_folder(int at, const char *name)
{
    const struct open_how how = {
        .flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
        .resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS,
    };
    long fd = syscall(SYS_openat2, at, name, &how, sizeof how);
    if (fd >= 0 || errno != ENOSYS)
        return (int) fd;
    if (mount_of(at, name, 0) != mount_of(at, "", AT_EMPTY_PATH)) {
        errno = EXDEV;
        return -1;
    }
    return openat(at, name, (int) how.flags);
}

static hpct_status fail_mounted(const char *path)
{
    return hpct_fail(HPCT_ERR_IO, "%s cannot be removed: a file system is mounted on it", path);
}

/* What is too deep gets a name at the top; a later pass finds it there. */
static void move_up(removal *r, int folder, const char *name)
{
    char fresh[48];
    snprintf(fresh, sizeof fresh, ".deep-%d-%u", (int) getpid(), r->moved++);
    renameat(folder, name, r->top, fresh);
}

static void remove_entry(removal *r, int folder, const char *name, int depth)
{
    if (unlinkat(folder, name, 0) == 0)
        return;
    if (errno != EISDIR && errno != EPERM)
        return;
    if (unlinkat(folder, name, AT_REMOVEDIR) == 0)
        return;
    if (depth == MAX_DEPTH) {
        move_up(r, folder, name);
        return;
    }
    int fd = open_folder(folder, name);
    if (fd < 0)
        return;
    struct stat info;
    if (fstat(fd, &info) == 0 && info.st_dev == r->device)
        empty(r, fd, depth + 1); /* takes fd */
    else
        close(fd);
    unlinkat(folder, name, AT_REMOVEDIR);
}

/* Removes what `fd` holds, as far as it can; closes fd. */
static void empty(removal *r, int fd, int depth)
{
    DIR *folder = fdopendir(fd);
    if (folder == NULL) {
        close(fd);
        return;
    }
    for (struct dirent *entry; now() < r->end && (entry = readdir(folder)) != NULL;) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            remove_entry(r, fd, entry->d_name, depth);
    }
    closedir(folder);
}

hpct_status hpct_remove(int parent, const char *name, const char *path, int seconds, bool once)
{
    struct stat info, above;
    time_t start = now();
    removal r = {.end = start + seconds};
    r.top = open_folder(parent, name);
    if (r.top < 0 && errno == EXDEV)
        return fail_mounted(path);
    if (r.top < 0) { /* no directory: a link or a file, or nothing */
        if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
            return HPCT_OK;
        return hpct_fail(HPCT_ERR_IO, "%s cannot be removed: %s", path, strerror(errno));
    }
    if (fstat(r.top, &info) != 0 || fstat(parent, &above) != 0 || info.st_dev != above.st_dev) {
        close(r.top);
        return fail_mounted(path);
    }
    r.device = info.st_dev;
    if (fchown(r.top, geteuid(), getegid()) != 0 || fchmod(r.top, 0700) != 0) {
        close(r.top);
        return hpct_fail(HPCT_ERR_IO, "%s cannot be taken over: %s", path, strerror(errno));
    }
    int error = 0;
    for (;;) {
        int copy = openat(r.top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        unsigned moved = r.moved;
        if (copy >= 0)
            empty(&r, copy, 0);
        if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT) {
            close(r.top);
            return HPCT_OK;
        }
        error = errno;
        if (now() >= r.end || error == EBUSY)
            break;
        if (moved != r.moved)
            continue;
        /* somebody adds to it, or something cannot be removed */
        if (once || now() >= start + PATIENCE_SECONDS)
            break;
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
    close(r.top);
    return hpct_fail(HPCT_ERR_IO, "%s cannot be removed whole: %s", path, strerror(error));
}
