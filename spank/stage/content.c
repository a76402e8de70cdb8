/* File content: reflink, copy_file_range, read/write. */
#include <config.h>

#include "spank/stage/content.h"

#include <errno.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/status.h"

#define CHUNK (4u << 20) /* small enough that a signal is answered within a second */

static hpct_status fail_write(const char *name)
{
    return hpct_fail(HPCT_ERR_IO, "%s: the copy cannot be written: %s", name, strerror(errno));
}

/* 1: done, 0: this way is closed, go on from *done in another one, -1: failed (message kept). */
static int copy_range(int src, int dst, uint64_t size, uint64_t *done, const char *name,
                      hpct_report *report)
{
    while (*done < size) {
        uint64_t left = size - *done;
        ssize_t got = copy_file_range(src, NULL, dst, NULL, left < CHUNK ? left : CHUNK, 0);
        if (got < 0 && errno == EINTR)
            got = 0;
        else if (got < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EIO || errno == EFBIG))
            return fail_write(name), -1;
        else if (got <= 0)
            return 0; /* not these file systems, or (on some) not this file */
        *done += (uint64_t) got;
        if (hpct_report_tick(report, (uint64_t) got) != HPCT_OK)
            return -1;
    }
    return 1;
}

static hpct_status copy_bytes(int src, int dst, uint64_t size, uint64_t done, const char *name,
                              hpct_report *report)
{
    hpct_status status = HPCT_OK;
    char *buffer = malloc(CHUNK);
    if (buffer == NULL)
        return hpct_fail_memory(CHUNK);
    while (done < size && status == HPCT_OK) {
        ssize_t got = read(src, buffer, CHUNK);
        if (got < 0 && errno == EINTR) {
            status = hpct_report_tick(report, 0);
            continue;
        }
        if (got < 0)
            status = hpct_fail(HPCT_ERR_NO_INPUT, "%s cannot be read: %s", name, strerror(errno));
        else if (got == 0)
            status = hpct_fail(HPCT_ERR_IO, "%s became shorter while it was copied", name);
        for (ssize_t at = 0; at < got && status == HPCT_OK;) {
            ssize_t put = write(dst, buffer + at, (size_t) (got - at));
            if (put < 0 && errno == EINTR)
                put = 0;
            if (put < 0) {
                status = fail_write(name);
                break;
            }
            at += put;
            done += (uint64_t) put;
            status = hpct_report_tick(report, (uint64_t) put);
        }
    }
    free(buffer);
    return status;
}

static bool same(const struct stat *a, const struct stat *b)
{
    return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

hpct_status hpct_copy_content(int src, const struct stat *info, int dst, const char *name,
                              hpct_report *report)
{
    uint64_t size = (uint64_t) info->st_size, done = 0;
    struct stat after;
    hpct_status status = HPCT_OK;
    if (size > 0 && ioctl(dst, FICLONE, src) == 0) {
        status = hpct_report_tick(report, size);
    } else {
        int way = copy_range(src, dst, size, &done, name, report);
        if (way < 0)
            status = hpct_report_tick(report, 0) != HPCT_OK ? HPCT_ERR_STOPPED : HPCT_ERR_IO;
        else if (way == 0)
            status = copy_bytes(src, dst, size, done, name, report);
    }
    if (status != HPCT_OK)
        return status;
    if (fstat(src, &after) != 0 || !same(info, &after))
        return hpct_fail(HPCT_ERR_IO, "%s changed while it was copied", name);
    const struct timespec times[2] = {info->st_atim, info->st_mtim};
    if (fchmod(dst, info->st_mode & 0777) != 0 || futimens(dst, times) != 0)
        return fail_write(name);
    return HPCT_OK;
}
