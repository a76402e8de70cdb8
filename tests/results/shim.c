/* shim: makes the N-th call of one kind on files under a folder fail, for LD_PRELOAD.
 *
 * FAULT=KIND:N:once, KIND:N:ever, KIND:N:kill (the process is killed in its place) or KIND:N:hang
 * (it takes 20 seconds); FAULT_UNDER: the folder; FAULT_COUNT: a file outside of it that gets how
 * many such calls there were, one more byte for each. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool is_under(const char *path)
{
    const char *under = getenv("FAULT_UNDER");
    char full[8192];
    if (under == NULL)
        return false;
    if (path[0] != '/' && getcwd(full, 4096) != NULL) {
        snprintf(full + strlen(full), 4096, "/%.4000s", path);
        path = full;
    }
    return strncmp(path, under, strlen(under)) == 0;
}

static void note_call(void)
{
    int fd = (int) syscall(SYS_openat, AT_FDCWD, getenv("FAULT_COUNT"),
                           O_WRONLY | O_CREAT | O_APPEND, 0600);
    syscall(SYS_write, fd, ".", 1);
    syscall(SYS_close, fd);
}

/* Whether this call is to fail, with errno set. */
static bool fails(const char *kind, const char *path, int error)
{
    static int calls;
    const char *fault = getenv("FAULT");
    size_t length = strlen(kind);
    if (fault == NULL || strncmp(fault, kind, length) != 0 || fault[length] != ':' ||
        !is_under(path))
        return false;
    char *how;
    long wanted = strtol(fault + length + 1, &how, 10);
    calls++;
    note_call();
    if (calls < wanted || (calls > wanted && strcmp(how, ":ever") != 0))
        return false;
    if (strcmp(how, ":kill") == 0)
        kill(getpid(), SIGKILL);
    if (strcmp(how, ":hang") == 0) {
        sleep(20);
        return false;
    }
    errno = error;
    return true;
}

static bool fails_on(const char *kind, int fd, int error)
{
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return false;
    path[length] = '\0';
    return fails(kind, path, error);
}

/* ---- the calls ---- */

#pragma GCC visibility push(default)

#define REAL(name, result, ...) ((result(*)(__VA_ARGS__)) dlsym(RTLD_NEXT, name))

static int open_as(const char *name, const char *path, int flags, va_list args)
{
    mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    bool writes = (flags & O_ACCMODE) != O_RDONLY;
    if (writes &&
        fails(flags & O_CREAT ? "create" : "open", path, flags & O_CREAT ? ENOSPC : EACCES))
        return -1;
    return REAL(name, int, const char *, int, ...)(path, flags, mode);
}

int open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    int fd = open_as("open", path, flags, args);
    va_end(args);
    return fd;
}

int open64(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    int fd = open_as("open64", path, flags, args);
    va_end(args);
    return fd;
}

/* "torn": half of it is written; "untruncated": and cannot be taken back. */
ssize_t write(int fd, const void *data, size_t bytes)
{
    ssize_t (*real)(int, const void *, size_t) = REAL("write", ssize_t, int, const void *, size_t);
    if (fails_on("write", fd, ENOSPC))
        return -1;
    if (bytes > 1 && (fails_on("torn", fd, EIO) || fails_on("untruncated", fd, EIO))) {
        if (real(fd, data, bytes / 2) >= 0)
            errno = EIO;
        return -1;
    }
    return real(fd, data, bytes);
}

int fsync(int fd)
{
    return fails_on("fsync", fd, EIO) ? -1 : REAL("fsync", int, int)(fd);
}

int close(int fd)
{
    bool bad = fails_on("close", fd, EDQUOT);
    int result = (int) syscall(SYS_close, fd);
    if (bad)
        errno = EDQUOT;
    return bad ? -1 : result;
}

int ftruncate(int fd, off_t length)
{
    const char *fault = getenv("FAULT");
    if (fault != NULL && strncmp(fault, "untruncated:", 12) == 0) {
        errno = EIO;
        return -1;
    }
    return fails_on("ftruncate", fd, EIO) ? -1 : REAL("ftruncate", int, int, off_t)(fd, length);
}

int fallocate(int fd, int mode, off_t offset, off_t length)
{
    if (fails_on("fallocate", fd, ENOSPC))
        return -1;
    return REAL("fallocate", int, int, int, off_t, off_t)(fd, mode, offset, length);
}

int fchmod(int fd, mode_t mode)
{
    return fails_on("fchmod", fd, EPERM) ? -1 : REAL("fchmod", int, int, mode_t)(fd, mode);
}

int fchown(int fd, uid_t user, gid_t group)
{
    if (fails_on("fchown", fd, EPERM))
        return -1;
    return REAL("fchown", int, int, uid_t, gid_t)(fd, user, group);
}

int flock(int fd, int operation)
{
    return fails_on("flock", fd, ENOLCK) ? -1 : REAL("flock", int, int, int)(fd, operation);
}

/* "renamed", "linked": it is done, and its answer lost, as on NFS; "unlinkable": a file system
 * without hard links. */
int rename(const char *from, const char *to)
{
    if (fails("rename", to, EIO))
        return -1;
    int result = REAL("rename", int, const char *, const char *)(from, to);
    return result == 0 && fails("renamed", to, EIO) ? -1 : result;
}

int unlink(const char *path)
{
    return fails("unlink", path, EIO) ? -1 : REAL("unlink", int, const char *)(path);
}

int link(const char *from, const char *to)
{
    if (fails("link", to, EIO) || fails("unlinkable", to, EPERM))
        return -1;
    int result = REAL("link", int, const char *, const char *)(from, to);
    return result == 0 && fails("linked", to, EIO) ? -1 : result;
}

int rmdir(const char *path)
{
    return fails("rmdir", path, EIO) ? -1 : REAL("rmdir", int, const char *)(path);
}

int futimens(int fd, const struct timespec times[2])
{
    if (fails_on("futimens", fd, EIO))
        return -1;
    return REAL("futimens", int, int, const struct timespec *)(fd, times);
}

int mkdir(const char *path, mode_t mode)
{
    return fails("mkdir", path, EROFS) ? -1 : REAL("mkdir", int, const char *, mode_t)(path, mode);
}
