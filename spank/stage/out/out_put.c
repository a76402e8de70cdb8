/* Lock-free, as not all shared file systems have locks. A name is given by an operation that fails
 * if it is taken: RENAME_NOREPLACE, or link() on NFS. An old file is replaced by RENAME_EXCHANGE
 * and checked afterwards. Without RENAME_EXCHANGE, two steps that replace the same old file within
 * the same moment are not detected.
 *
 * Times are the file server's: a file is newer than the step if it was created after the server's
 * current time minus the step's run time on this node's monotonic clock. */
#include <config.h>

#include "spank/stage/out/out_put.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "spank/stage/tree/content.h"

#define MARGIN_MS 50 /* coarse clocks of kernels, and skew where clients set the times */
#define TRIES 100    /* while the name appears and disappears */

static hpct_status fail_put(const char *name)
{
    return hpct_fail(HPCT_ERR_IO, "the copy of %s cannot be written: %s", name, strerror(errno));
}

static bool same_inode(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* 0, or an errno: EEXIST if the name is taken. */
static int name_new(int at, const char *temp, const char *part)
{
    struct stat own, have;
    if (renameat2(at, temp, at, part, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return errno;
    int error = linkat(at, temp, at, part, 0) == 0 ? 0 : errno;
    /* NFS: the reply was lost, and the retransmitted request finds its own link */
    if (error == EEXIST && fstatat(at, temp, &own, AT_SYMLINK_NOFOLLOW) == 0 &&
        fstatat(at, part, &have, AT_SYMLINK_NOFOLLOW) == 0 && same_inode(&own, &have))
        error = 0;
    if (error == 0)
        unlinkat(at, temp, 0);
    if (error != EPERM && error != EOPNOTSUPP && error != ENOSYS && error != EMLINK)
        return error;
    /* a file system without hard links */
    if (fstatat(at, part, &have, AT_SYMLINK_NOFOLLOW) == 0)
        return EEXIST;
    return renameat(at, temp, at, part) == 0 ? 0 : errno;
}

/* 0, or an errno: EAGAIN if the name no longer refers to `have`;
 * ENOTRECOVERABLE if another step has removed it meanwhile. */
static int replace(int at, const char *temp, const char *part, const struct stat *have)
{
    struct stat got;
    if (renameat2(at, temp, at, part, RENAME_EXCHANGE) != 0) {
        if (errno != EINVAL && errno != ENOSYS)
            return errno;
        return renameat(at, temp, at, part) == 0 ? 0 : errno;
    }
    if (fstatat(at, temp, &got, AT_SYMLINK_NOFOLLOW) == 0 && same_inode(&got, have))
        return unlinkat(at, temp, 0), 0;
    /* if that fails, the temporary name has the other step's file */
    return renameat2(at, temp, at, part, RENAME_EXCHANGE) == 0 ? EAGAIN : ENOTRECOVERABLE;
}

/* ---- collisions ----------------------------------------------------------------------------- */

static int64_t in_ms(int64_t seconds, int64_t nanoseconds)
{
    return seconds * 1000 + nanoseconds / 1000000;
}

/* Creation time where the file system has it: a change of mode does not make a file new. */
static bool made_at(int at, const char *part, int64_t *ms)
{
    struct statx info;
    if (statx(at, part, AT_SYMLINK_NOFOLLOW, STATX_BTIME | STATX_CTIME, &info) != 0)
        return false;
    const struct statx_timestamp *time =
        (info.stx_mask & STATX_BTIME) != 0 ? &info.stx_btime : &info.stx_ctime;
    *ms = in_ms(time->tv_sec, time->tv_nsec);
    return true;
}

/* Start of the step in the server's time: utimensat sets the copy's ctime to its current time. */
static bool find_start(hpct_stage_out *out, int at)
{
    struct stat info;
    const int64_t ran = hpct_now_ms() - out->start;
    if (out->since != 0)
        return true;
    if (out->start == 0 || ran < 0 || fstatat(at, out->temp, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return false;
    const struct timespec times[2] = {info.st_atim, info.st_mtim};
    if (utimensat(at, out->temp, times, AT_SYMLINK_NOFOLLOW) != 0 ||
        fstatat(at, out->temp, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return false;
    out->since = in_ms(info.st_ctim.tv_sec, info.st_ctim.tv_nsec) - ran + MARGIN_MS;
    return true;
}

static bool same_content(hpct_stage_out *out, int at, const char *part)
{
    int a = openat(at, out->temp, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    int b = openat(at, part, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool same = a >= 0 && b >= 0 && hpct_stage_same_content(a, b, out->report);
    hpct_fd_close(a);
    hpct_fd_close(b);
    return same;
}

/* Whether `have` is of another SRC in this run, or came since this step began and is not an earlier
 * version of this copy; and differs. */
static bool is_others(hpct_stage_out *out, int at, const char *part, const char *name,
                      const struct stat *have)
{
    int64_t made = 0;
    bool came = hpct_stage_inodes_has(&out->named, have) ||
                (find_start(out, at) && made_at(at, part, &made) && made > out->since &&
                 !hpct_stage_out_ours_has(out->ours, name, out->to, have));
    return came && !same_content(out, at, part);
}

/* ---------------------------------------------------------------------------------------------- */

/* NAME.JOB.STEP.NODE, then with .2 and so on: entries of one list may have the same destination. A
 * name that becomes too long loses its end. */
static hpct_status put_beside(hpct_stage_out *out, int at, const char *part, const char *name)
{
    char other[NAME_MAX + 1], suffix[sizeof out->suffix + 16];
    for (int i = 1; i <= TRIES; i++) {
        int size = i == 1 ? snprintf(suffix, sizeof suffix, "%s", out->suffix)
                          : snprintf(suffix, sizeof suffix, "%s.%d", out->suffix, i);
        snprintf(other, sizeof other, "%.*s%s", NAME_MAX - size, part, suffix);
        int error = name_new(at, out->temp, other);
        if (error == 0) {
            out->beside++;
            if (out->beside <= HPCT_STAGE_OUT_LINES)
                hpct_stage_report_say(
                    "%s to %s: since this step began, another step, job or SRC has put a different "
                    "'%s' there, which stays; this one is kept beside it as '%s': give each a "
                    "destination of its own, with %%j, %%s, %%n or %%t in DST",
                    name, out->to, part, other);
            return HPCT_OK;
        }
        if (error != EEXIST) {
            errno = error;
            return fail_put(name);
        }
        if (same_content(out, at, other)) { /* by an earlier attempt */
            unlinkat(at, out->temp, 0);
            out->beside++;
            return HPCT_OK;
        }
    }
    errno = EEXIST;
    return fail_put(name);
}

/* Under its own name, or beside it. */
static hpct_status give_name(hpct_stage_out *out, int at, const char *part, const char *name)
{
    struct stat have;
    int error = EEXIST;
    for (int i = 0; i < TRIES; i++) {
        error = name_new(at, out->temp, part);
        if (error == 0)
            return HPCT_OK;
        if (error != EEXIST)
            break;
        if (fstatat(at, part, &have, AT_SYMLINK_NOFOLLOW) != 0)
            continue; /* removed meanwhile */
        if (S_ISDIR(have.st_mode)) {
            unlinkat(at, out->temp, 0);
            hpct_stage_out_left(
                out,
                hpct_fail(HPCT_ERR_IO, "%s: a folder is in its place at the destination", name));
            return HPCT_OK;
        }
        if (is_others(out, at, part, name, &have))
            return put_beside(out, at, part, name);
        error = replace(at, out->temp, part, &have);
        if (error == 0)
            return HPCT_OK;
        if (error != EAGAIN && error != ENOENT)
            break;
    }
    errno = error;
    return fail_put(name);
}

hpct_status hpct_stage_out_put(hpct_stage_out *out, int at, const char *part, const char *name)
{
    struct stat own, now;
    if (fstatat(at, out->temp, &own, AT_SYMLINK_NOFOLLOW) != 0)
        return fail_put(name);
    hpct_stage_out_ours_add(out->ours, name, out->to, &own);
    hpct_status status = give_name(out, at, part, name);
    if (status == HPCT_OK)
        status =
            hpct_stage_inodes_add(&out->named, &own, 0, "") == NULL ? hpct_fail_memory(0) : HPCT_OK;
    else if (fstatat(at, out->temp, &now, AT_SYMLINK_NOFOLLOW) == 0 && same_inode(&own, &now))
        unlinkat(at, out->temp, 0);
    return status;
}
