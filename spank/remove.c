/* Safe removal, on descriptors only. The depth of descriptors is bounded: what lies deeper is first
 * moved up to the top. */
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
#include "spank/folder.h"

#define MAX_DEPTH 64

typedef struct removal {
    int top; /* the tree's own directory */
    time_t end;
    unsigned long done; /* what went, or moved; a pass without any is the last one */
    unsigned names;     /* given to what was moved up */
    int error;          /* why `stuck`, the first of a pass, would not go */
    char stuck[256];
} removal;

static time_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec;
}

static void empty(removal *r, int folder, int depth);

static void keep_error(removal *r, const char *name, int error)
{
    if (r->error != 0)
        return;
    r->error = error;
    snprintf(r->stuck, sizeof r->stuck, "%s", name);
}

/* The kernel asks the directory's owner and mode at each change, not when it was opened. */
static bool take_over(int fd)
{
    return fchown(fd, geteuid(), getegid()) == 0 && fchmod(fd, 0700) == 0;
}

/* What is too deep gets a name at the top; a later pass finds it there. */
static bool move_up(removal *r, int folder, const char *name)
{
    char fresh[48];
    snprintf(fresh, sizeof fresh, ".deep-%d-%u", (int) getpid(), r->names++);
    return renameat(folder, name, r->top, fresh) == 0;
}

/* Without what is in it; false and ENOTEMPTY when there is something. */
static bool remove_itself(int folder, const char *name)
{
    for (int mounts = 0; mounts < 100; mounts++) { /* one may be mounted on the other */
        if (unlinkat(folder, name, 0) == 0 || errno == ENOENT)
            return true;
        int error = errno;
        if (error == EISDIR || error == EPERM) { /* EPERM: what POSIX wants for folders */
            if (unlinkat(folder, name, AT_REMOVEDIR) == 0)
                return true;
            error = errno == ENOTDIR ? error : errno == EEXIST ? ENOTEMPTY : errno;
        }
        if (error != EBUSY || !hpct_folder_unmount(folder, name)) {
            errno = error;
            return false;
        }
    }
    return false;
}

static void remove_entry(removal *r, int folder, const char *name, int depth)
{
    bool gone = remove_itself(folder, name);
    if (!gone && errno == ENOTEMPTY) {
        if (depth == MAX_DEPTH) {
            gone = move_up(r, folder, name);
        } else {
            int fd = hpct_folder_open(folder, name);
            if (fd >= 0 && take_over(fd)) {
                empty(r, fd, depth + 1); /* takes fd */
                gone = unlinkat(folder, name, AT_REMOVEDIR) == 0;
            } else if (fd >= 0) {
                close(fd);
            }
        }
    }
    if (gone)
        r->done++;
    else
        keep_error(r, name, errno);
}

/* Removes what `fd` holds, as far as it can; closes fd. */
static void empty(removal *r, int fd, int depth)
{
    DIR *folder = fdopendir(fd);
    if (folder == NULL) {
        keep_error(r, "a folder", errno);
        close(fd);
        return;
    }
    for (struct dirent *entry; now() < r->end && (entry = readdir(folder)) != NULL;) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            remove_entry(r, fd, entry->d_name, depth);
    }
    closedir(folder);
}

static hpct_status fail_whole(const removal *r, const char *path, int seconds)
{
    if (now() >= r->end)
        return hpct_fail(HPCT_ERR_IO,
                         "%s is not removed yet after %d seconds: the epilogs of later jobs go on",
                         path, seconds);
    return hpct_fail(HPCT_ERR_IO, "%s cannot be removed whole: '%s': %s", path, r->stuck,
                     strerror(r->error));
}

hpct_status hpct_remove(int parent, const char *name, const char *path, int seconds)
{
    removal r = {.end = now() + seconds, .top = hpct_folder_open(parent, name)};
    for (int mounts = 0;
         r.top < 0 && errno == EXDEV && mounts < 100 && hpct_folder_unmount(parent, name); mounts++)
        r.top = hpct_folder_open(parent, name);
    if (r.top < 0 && (errno == ENOENT || (errno != EXDEV && remove_itself(parent, name))))
        return HPCT_OK;
    if (r.top < 0 && (errno == EXDEV || errno == EBUSY))
        return hpct_fail(HPCT_ERR_IO, "%s cannot be removed: a file system is mounted on it", path);
    if (r.top < 0)
        return hpct_fail(HPCT_ERR_IO, "%s cannot be removed: %s", path, strerror(errno));
    if (!take_over(r.top)) {
        close(r.top);
        return hpct_fail(HPCT_ERR_IO, "%s cannot be taken over: %s", path, strerror(errno));
    }
    bool gone = false;
    for (unsigned long done = 0; !gone; done = r.done) {
        int copy = openat(r.top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        r.error = 0;
        if (copy >= 0)
            empty(&r, copy, 0);
        gone = unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT;
        if (!gone && r.error == 0)
            keep_error(&r, name, errno);
        if (now() >= r.end || done == r.done)
            break;
    }
    close(r.top);
    return gone ? HPCT_OK : fail_whole(&r, path, seconds);
}
