/* Safe removal: openat, O_NOFOLLOW, unlinkat, on descriptors only. The depth of descriptors is
 * bounded: what lies deeper is first moved up to the top. */
#include <config.h>

#include "spank/remove.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/status.h"

#define MAX_DEPTH 64
#define MAX_SECONDS 20

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
    int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
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

hpct_status hpct_remove(int parent, const char *name, const char *path)
{
    struct stat info, above;
    removal r = {.end = now() + MAX_SECONDS};
    r.top = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (r.top < 0) { /* no directory: a link or a file, or nothing */
        if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
            return HPCT_OK;
        return hpct_fail(HPCT_ERR_IO, "%s cannot be removed: %s", path, strerror(errno));
    }
    if (fstat(r.top, &info) != 0 || fstat(parent, &above) != 0 || info.st_dev != above.st_dev) {
        close(r.top);
        return hpct_fail(HPCT_ERR_IO, "%s cannot be removed: a file system is mounted on it", path);
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
        if (now() >= r.end)
            break;
        if (moved == r.moved) /* somebody adds to it, or something cannot be removed */
            nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
        if (error == EBUSY || (moved == r.moved && now() >= r.end - MAX_SECONDS + 5))
            break;
    }
    close(r.top);
    return hpct_fail(HPCT_ERR_IO, "%s cannot be removed whole: %s", path, strerror(error));
}
