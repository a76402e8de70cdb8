/* Loaded before libc into hpc-train-stage: file systems that lack what local ones have. OLD_FS is a
 * list of: "flags", no flags of renameat2 (NFS); "born", no creation time; "links", no hard links;
 * "twice", a link is made, and the answer is that of a second request (NFS); "slow", a file is
 * replaced a while after it was looked at. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static int lacks(const char *what)
{
    const char *list = getenv("OLD_FS");
    return list != NULL && strstr(list, what) != NULL;
}

EXPORT int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags)
{
    if (flags != 0 && lacks("flags")) {
        errno = EINVAL;
        return -1;
    }
    if ((flags & RENAME_EXCHANGE) != 0 && lacks("slow"))
        usleep(500000);
    int (*real)(int, const char *, int, const char *, unsigned);
    *(void **) &real = dlsym(RTLD_NEXT, "renameat2");
    return real(from_at, from, to_at, to, flags);
}

EXPORT int linkat(int from_at, const char *from, int to_at, const char *to, int flags)
{
    if (lacks("links")) {
        errno = EPERM;
        return -1;
    }
    int (*real)(int, const char *, int, const char *, int);
    *(void **) &real = dlsym(RTLD_NEXT, "linkat");
    int result = real(from_at, from, to_at, to, flags);
    return result == 0 && lacks("twice") ? real(from_at, from, to_at, to, flags) : result;
}

EXPORT int statx(int at, const char *path, int flags, unsigned mask, struct statx *info)
{
    int (*real)(int, const char *, int, unsigned, struct statx *);
    *(void **) &real = dlsym(RTLD_NEXT, "statx");
    int result = real(at, path, flags, mask, info);
    if (lacks("born"))
        info->stx_mask &= ~(unsigned) STATX_BTIME;
    return result;
}
