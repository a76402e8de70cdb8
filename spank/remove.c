/* Removes trees safely, by descriptors only. The number of open descriptors is bounded: folders
 * that are too deep are first moved to the top. */
#include <config.h>

#include "spank/remove.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "spank/folder.h"

#define MAX_DEPTH 64

typedef struct removal {
    int top;            /* root folder of the tree */
    int64_t end;        /* hpct_now_ms */
    unsigned long done; /* entries removed or moved; a pass without any is the last one */
    unsigned names;     /* counter for names of moved folders */
    int error;          /* errno for `stuck`, the first entry of a pass that could not be removed */
    char stuck[256];
} removal;

static void empty(removal *r, int folder, int depth);

static void keep_error(removal *r, const char *name, int error)
{
    if (r->error != 0)
        return;
    r->error = error;
    snprintf(r->stuck, sizeof r->stuck, "%s", name);
}

/* The kernel checks the folder's owner and mode at each change, not when it was opened. */
static bool take_over(int fd)
{
    return fchown(fd, geteuid(), getegid()) == 0 && fchmod(fd, 0700) == 0;
}

/* Moves a folder that is too deep to the top, where a later pass finds it. */
static bool move_up(removal *r, int folder, const char *name)
{
    char fresh[48];
    snprintf(fresh, sizeof fresh, ".deep-%d-%u", (int) getpid(), r->names++);
    return renameat(folder, name, r->top, fresh) == 0;
}

/* Removes an entry without its contents; false and ENOTEMPTY if it has any. */
static bool remove_itself(int folder, const char *name)
{
    for (int mounts = 0; mounts < 100; mounts++) { /* mounts may be stacked */
        if (unlinkat(folder, name, 0) == 0 || errno == ENOENT)
            return true;
        int error = errno;
        if (error == EISDIR || error == EPERM) { /* EPERM: POSIX's error for folders */
            if (unlinkat(folder, name, AT_REMOVEDIR) == 0)
                return true;
            error = errno == ENOTDIR ? error : errno == EEXIST ? ENOTEMPTY : errno;
        }
        if (error != EBUSY || !hpct_spank_folder_unmount(folder, name)) {
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
            int fd = hpct_spank_folder_open(folder, name);
            if (fd >= 0 && take_over(fd)) {
                empty(r, fd, depth + 1); /* closes fd */
                gone = unlinkat(folder, name, AT_REMOVEDIR) == 0;
            } else {
                hpct_fd_close(fd);
            }
        }
    }
    if (gone)
        r->done++;
    else
        keep_error(r, name, errno);
}

/* Removes the contents of `fd` as far as possible; closes fd. */
static void empty(removal *r, int fd, int depth)
{
    DIR *folder = fdopendir(fd);
    if (folder == NULL) {
        keep_error(r, "a folder", errno);
        close(fd);
        return;
    }
    for (struct dirent *entry; hpct_now_ms() < r->end && (entry = readdir(folder)) != NULL;) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            remove_entry(r, fd, entry->d_name, depth);
    }
    closedir(folder);
}

static hpct_status fail_whole(const removal *r, const char *path, int seconds)
{
    if (hpct_now_ms() >= r->end)
        return hpct_fail(HPCT_ERR_IO,
                         "%s was not removed within %d seconds: later epilogs continue", path,
                         seconds);
    return hpct_fail(HPCT_ERR_IO, "%s cannot be removed whole: '%s': %s", path, r->stuck,
                     strerror(r->error));
}

hpct_status hpct_spank_remove(int parent, const char *name, const char *path, int seconds)
{
    removal r = {.end = hpct_now_ms() + seconds * 1000,
                 .top = hpct_spank_folder_open(parent, name)};
    for (int mounts = 0;
         r.top < 0 && errno == EXDEV && mounts < 100 && hpct_spank_folder_unmount(parent, name);
         mounts++)
        r.top = hpct_spank_folder_open(parent, name);
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
        if (hpct_now_ms() >= r.end || done == r.done)
            break;
    }
    close(r.top);
    return gone ? HPCT_OK : fail_whole(&r, path, seconds);
}
