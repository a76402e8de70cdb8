/* Loaded before libc into hpc-train-stage by faults.c: at one call, chosen by number, a read or a
 * write goes wrong, or somebody else changes the source or fills the disk.
 * HPCT_FAULT=KIND:NUMBER:RANDOM, HPCT_FAULT_PATH: the file to change, or to fill the disk with. */
#undef _FORTIFY_SOURCE /* its headers have bodies for the very functions that are defined here */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/stage/fault.h"

static int kind = -1;
static long number;
static unsigned long chance;
static const char *path;
static _Atomic long calls;
static ssize_t (*real_pread)(int, void *, size_t, off_t);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static int (*real_openat)(int, const char *, int, ...);
static int (*real_fstat)(int, struct stat *);
static ssize_t (*real_recv)(int, void *, size_t, int);
static ssize_t (*real_send)(int, const void *, size_t, int);
static ssize_t (*real_sendmsg)(int, const struct msghdr *, int);

__attribute__((constructor)) static void read_settings(void)
{
    const char *text = getenv("HPCT_FAULT");
    *(void **) &real_pread = dlsym(RTLD_NEXT, "pread64");
    *(void **) &real_pwrite = dlsym(RTLD_NEXT, "pwrite64");
    *(void **) &real_openat = dlsym(RTLD_NEXT, "openat64");
    *(void **) &real_fstat = dlsym(RTLD_NEXT, "fstat64");
    *(void **) &real_recv = dlsym(RTLD_NEXT, "recv");
    *(void **) &real_send = dlsym(RTLD_NEXT, "send");
    *(void **) &real_sendmsg = dlsym(RTLD_NEXT, "sendmsg");
    path = getenv("HPCT_FAULT_PATH");
    if (text != NULL && sscanf(text, "%d:%ld:%lu", &kind, &number, &chance) != 3)
        kind = -1;
}

/* Whether this call is the one, for kinds that happen at calls of this sort. */
static int is_due(int first, int last)
{
    return kind >= first && kind <= last && atomic_fetch_add(&calls, 1) + 1 == number;
}

/* By system calls alone: what is used here must not come here. */
static void change(void)
{
    char block[65536];
    struct stat info;
    int fd = -1;
    if (kind == FAULT_VANISH) {
        unlink(path);
        return;
    }
    if (kind == FAULT_REPLACE) {
        unlink(path);
        symlink("/etc/passwd", path);
        return;
    }
    fd = (int) syscall(SYS_openat, AT_FDCWD, path, kind == FAULT_FILL ? O_WRONLY | O_CREAT : O_RDWR,
                       0600);
    if (fd < 0 || real_fstat(fd, &info) != 0)
        return;
    if (kind == FAULT_TRUNCATE) {
        ftruncate(fd, info.st_size / 2);
    } else if (kind == FAULT_GROW) {
        real_pwrite(fd, FAULT_GROWTH, strlen(FAULT_GROWTH), info.st_size);
    } else if (kind == FAULT_REWRITE) {
        for (off_t at = 0; at < info.st_size;) {
            ssize_t got = real_pread(fd, block, sizeof block, at);
            if (got <= 0)
                break;
            for (ssize_t i = 0; i < got; i++)
                block[i] = (char) (block[i] ^ FAULT_MASK);
            real_pwrite(fd, block, (size_t) got, at);
            at += got;
        }
    } else {
        memset(block, 1, sizeof block);
        size_t size = sizeof block; /* to the last byte */
        for (off_t at = 0; size > 0;) {
            ssize_t put = real_pwrite(fd, block, size, at);
            if (put > 0)
                at += put;
            else
                size /= 2;
        }
    }
    syscall(SYS_close, fd);
}

static void event(void)
{
    if (is_due(FAULT_FIRST_CHANGE, FAULT_LAST_CHANGE))
        change();
    if (is_due(FAULT_KILL, FAULT_KILL))
        raise(SIGKILL);
}

static int is_copy(int fd)
{
    return (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR;
}

static ssize_t faulty_pread(int fd, void *data, size_t size, off_t at)
{
    event();
    if (is_copy(fd)) {
        ssize_t got = real_pread(fd, data, size, at);
        if (got > 0 && is_due(FAULT_BACK, FAULT_BACK))
            ((char *) data)[chance % (unsigned long) got] ^= (char) (1 << chance % 7);
        return got;
    }
    if (!is_due(FAULT_READ_SHORT, FAULT_READ_ERROR))
        return real_pread(fd, data, size, at);
    if (kind == FAULT_READ_ERROR)
        return errno = EIO, -1;
    return kind == FAULT_READ_END ? 0 : real_pread(fd, data, size / 2 + 1, at);
}

static ssize_t faulty_pwrite(int fd, const void *data, size_t size, off_t at)
{
    event();
    if (size == 0 || !is_due(FAULT_WRITE, FAULT_WRITE_FULL))
        return real_pwrite(fd, data, size, at);
    if (kind == FAULT_WRITE_ERROR)
        return errno = EIO, -1;
    if (kind == FAULT_WRITE_FULL)
        return errno = ENOSPC, -1;
    if (kind == FAULT_WRITE_SHORT)
        return real_pwrite(fd, data, size / 2 + 1, at);
    char *wrong = malloc(size);
    memcpy(wrong, data, size);
    wrong[chance % size] ^= (char) (1 << chance % 7);
    ssize_t put = real_pwrite(fd, wrong, size, at);
    free(wrong);
    return put;
}

#define EXPORT __attribute__((visibility("default")))

EXPORT ssize_t pread(int fd, void *data, size_t size, off_t at);
EXPORT ssize_t pread64(int fd, void *data, size_t size, off_t at);
EXPORT ssize_t pwrite(int fd, const void *data, size_t size, off_t at);
EXPORT ssize_t pwrite64(int fd, const void *data, size_t size, off_t at);
EXPORT int openat(int folder, const char *name, int flags, ...);
EXPORT int openat64(int folder, const char *name, int flags, ...);
EXPORT int fstat(int fd, struct stat *info);
EXPORT int fstat64(int fd, struct stat64 *info);

ssize_t pread(int fd, void *data, size_t size, off_t at)
{
    return faulty_pread(fd, data, size, at);
}

ssize_t pread64(int fd, void *data, size_t size, off_t at)
{
    return faulty_pread(fd, data, size, at);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at)
{
    return faulty_pwrite(fd, data, size, at);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off_t at)
{
    return faulty_pwrite(fd, data, size, at);
}

static int faulty_openat(int folder, const char *name, int flags, mode_t mode)
{
    event();
    if ((flags & O_CREAT) != 0 && is_due(FAULT_CREATE, FAULT_CREATE))
        return errno = EDQUOT, -1;
    return real_openat(folder, name, flags, mode);
}

int openat(int folder, const char *name, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(args, mode_t) : 0;
    va_end(args);
    return faulty_openat(folder, name, flags, mode);
}

int openat64(int folder, const char *name, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(args, mode_t) : 0;
    va_end(args);
    return faulty_openat(folder, name, flags, mode);
}

int fstat(int fd, struct stat *info)
{
    event();
    return real_fstat(fd, info);
}

int fstat64(int fd, struct stat64 *info)
{
    event();
    return real_fstat(fd, (struct stat *) info); /* the same, where off_t has 64 bits */
}

/* ---- the network ---- */

EXPORT ssize_t recv(int fd, void *data, size_t size, int flags);
EXPORT ssize_t send(int fd, const void *data, size_t size, int flags);
EXPORT ssize_t sendmsg(int fd, const struct msghdr *message, int flags);

ssize_t recv(int fd, void *data, size_t size, int flags)
{
    event();
    if (is_due(FAULT_RECV_SHORT, FAULT_RECV_SHORT))
        return real_recv(fd, data, size / 2 + 1, flags);
    ssize_t got = real_recv(fd, data, size, flags);
    if (got <= 0) /* counted where something came */
        return got;
    if (is_due(FAULT_RECV, FAULT_RECV))
        ((char *) data)[chance % (unsigned long) got] ^= (char) (1 << chance % 7);
    if (is_due(FAULT_RECV_END, FAULT_RECV_END)) {
        shutdown(fd, SHUT_RDWR);
        return 0;
    }
    return got;
}

ssize_t send(int fd, const void *data, size_t size, int flags)
{
    event();
    if (!is_due(FAULT_SEND_SHORT, FAULT_SEND_ERROR))
        return real_send(fd, data, size, flags);
    if (kind == FAULT_SEND_SHORT)
        return real_send(fd, data, size / 2 + 1, flags);
    return errno = ECONNRESET, -1;
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    event();
    if (!is_due(FAULT_SEND_SHORT, FAULT_SEND_ERROR))
        return real_sendmsg(fd, message, flags);
    if (kind == FAULT_SEND_ERROR)
        return errno = ECONNRESET, -1;
    struct msghdr less = *message; /* only what is in its first part */
    while (less.msg_iovlen > 1 && less.msg_iov[0].iov_len == 0) {
        less.msg_iov++;
        less.msg_iovlen--;
    }
    less.msg_iovlen = 1;
    return real_sendmsg(fd, &less, flags);
}

/* How many calls there were, for the driver to choose from. */
__attribute__((destructor)) static void tell(void)
{
    const char *file = getenv("HPCT_FAULT_COUNT");
    char text[32];
    if (file == NULL)
        return;
    int fd = (int) syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0)
        return;
    int size = snprintf(text, sizeof text, "%ld\n", calls);
    if (write(fd, text, (size_t) size) != size)
        abort();
    syscall(SYS_close, fd);
}
