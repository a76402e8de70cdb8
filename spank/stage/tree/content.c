/* File content: reflink, copy_file_range, read/write. */
#include <config.h>

#include "spank/stage/tree/content.h"

#include <errno.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/status.h"

#define COMPARED 65536   /* bytes at once */
#define CHUNK (4u << 20) /* small enough that a signal is handled within a second */

static hpct_status fail_write(const char *name)
{
    return hpct_fail(HPCT_ERR_IO, "%s: the copy cannot be written: %s", name, strerror(errno));
}

/* A range of data between holes. */
typedef struct extent {
    uint64_t at, end;
} extent;

/* The next data range from `at` on: empty at the end; all the rest if the file system does not
 * support SEEK_DATA. */
static extent next_data(int src, uint64_t at, uint64_t size)
{
    off_t data = lseek(src, (off_t) at, SEEK_DATA);
    if (data < 0)
        return errno == ENXIO ? (extent){size, size} : (extent){at, size};
    off_t hole = lseek(src, data, SEEK_HOLE);
    uint64_t from = (uint64_t) data < size ? (uint64_t) data : size;
    return (extent){from, hole < 0 || (uint64_t) hole > size ? size : (uint64_t) hole};
}

/* Copies by copy_file_range. Sets *open to false if that is not possible for these files, and e->at
 * to the end of what was copied. */
static hpct_status copy_range(int src, int dst, extent *e, bool *open, const char *name,
                              hpct_stage_report *report)
{
    hpct_status status = HPCT_OK;
    while (e->at < e->end && *open && status == HPCT_OK) {
        uint64_t left = e->end - e->at;
        off_t from = (off_t) e->at, to = from;
        ssize_t got = copy_file_range(src, &from, dst, &to, left < CHUNK ? left : CHUNK, 0);
        if (got < 0 && errno == EINTR)
            got = 0;
        else if (got < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EIO || errno == EFBIG))
            return fail_write(name);
        else if (got <= 0)
            *open = false; /* not supported by these file systems or (on some) for this file */
        if (got > 0)
            e->at += (uint64_t) got;
        status = hpct_stage_report_tick(report, got > 0 ? (uint64_t) got : 0);
    }
    return status;
}

static hpct_status copy_bytes(int src, int dst, extent e, char *buffer, const char *name,
                              hpct_stage_report *report)
{
    hpct_status status = HPCT_OK;
    while (e.at < e.end && status == HPCT_OK) {
        uint64_t left = e.end - e.at;
        ssize_t got = pread(src, buffer, left < CHUNK ? left : CHUNK, (off_t) e.at);
        if (got < 0 && errno == EINTR)
            got = 0;
        else if (got < 0)
            return hpct_fail(HPCT_ERR_NO_INPUT, "%s cannot be read: %s", name, strerror(errno));
        else if (got == 0)
            return hpct_fail(HPCT_ERR_IO, "%s became shorter while it was copied", name);
        for (ssize_t at = 0; at < got && status == HPCT_OK;) {
            ssize_t put = pwrite(dst, buffer + at, (size_t) (got - at), (off_t) e.at);
            if (put < 0 && errno != EINTR)
                return fail_write(name);
            if (put > 0) {
                at += put;
                e.at += (uint64_t) put;
            }
            status = hpct_stage_report_tick(report, put > 0 ? (uint64_t) put : 0);
        }
        if (got == 0)
            status = hpct_stage_report_tick(report, 0);
    }
    return status;
}

/* Copies the data without the holes; ftruncate sets the size if a hole is at the end. */
static hpct_status copy_extents(int src, int dst, uint64_t size, const char *name,
                                hpct_stage_report *report)
{
    hpct_status status = HPCT_OK;
    bool open = true;
    char *buffer = NULL;
    for (uint64_t at = 0; at < size && status == HPCT_OK;) {
        extent e = next_data(src, at, size);
        at = e.end;
        status = copy_range(src, dst, &e, &open, name, report);
        if (status != HPCT_OK || e.at == e.end)
            continue;
        if (buffer == NULL)
            buffer = malloc(CHUNK);
        status = buffer == NULL ? hpct_fail_memory(CHUNK)
                                : copy_bytes(src, dst, e, buffer, name, report);
    }
    free(buffer);
    if (status == HPCT_OK && ftruncate(dst, (off_t) size) != 0)
        status = fail_write(name);
    return status;
}

static bool same(const struct stat *a, const struct stat *b)
{
    return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

hpct_status hpct_stage_copy_content(int src, const struct stat *info, int dst, const char *name,
                                    hpct_stage_report *report)
{
    uint64_t size = (uint64_t) info->st_size;
    struct stat after;
    HPCT_TRY(size > 0 && ioctl(dst, FICLONE, src) == 0
                 ? hpct_stage_report_tick(report, size)
                 : copy_extents(src, dst, size, name, report));
    if (fstat(src, &after) != 0 || !same(info, &after))
        return hpct_fail(HPCT_ERR_IO, "%s changed while it was copied", name);
    const struct timespec times[2] = {info->st_atim, info->st_mtim};
    if (fchmod(dst, info->st_mode & 0777) != 0 || futimens(dst, times) != 0)
        return fail_write(name);
    return HPCT_OK;
}

bool hpct_stage_same_content(int a, int b, hpct_stage_report *report)
{
    char one[COMPARED], two[COMPARED];
    for (off_t at = 0;; at += COMPARED) {
        ssize_t size = hpct_fd_read_at(a, one, COMPARED, at);
        if (size < 0 || hpct_fd_read_at(b, two, COMPARED, at) != size ||
            memcmp(one, two, (size_t) size) != 0 || hpct_stage_report_tick(report, 0) != HPCT_OK)
            return false;
        if (size < COMPARED)
            return true;
    }
}
