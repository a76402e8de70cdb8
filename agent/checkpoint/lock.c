/* The lock of a folder. */
#include "agent/checkpoint/lock.h"

#include "agent/checkpoint/disk.h"
#include "agent/checkpoint/holder.h"
#include "base/file.h"
#include "base/process.h"
#include "base/progress.h"
#include "base/status.h"
#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ATTEMPTS 100   /* while others take and release it */
#define JOIN_SECONDS 5 /* for a thread that a file system blocks */
#define LOOK_SECONDS 1
#define MAX_BYTES 4096

const hpct_ckpt_lock_times hpct_ckpt_lock_usual = {.renew = 30, .gone = 120, .wait = 150};

struct hpct_ckpt_lock {
    char *dir, *path;
    json_t *self;
    json_t *seen;    /* the holder, as last read … */
    int64_t renewed; /* … and when it had renewed the lock: nanoseconds */
    hpct_ckpt_lock_times times;
    hpct_ckpt_store_note *note;
    void *context;
    int fd; /* of the lock file, whatever has its name later */
    int ended;
    pthread_t thread;
};

/* ---- the file ---- */

static int64_t modified(const struct stat *info)
{
    return (int64_t) info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec;
}

/* Opening it makes NFS ask the server. HPCT_ERR_NO_INPUT: there is none. */
static hpct_status read_lock(hpct_ckpt_lock *lock)
{
    struct stat info;
    char text[MAX_BYTES];
    if (lstat(lock->path, &info) == 0 && !S_ISREG(info.st_mode))
        return hpct_fail(HPCT_ERR_CONFIG,
                         "%s is not a regular file, so no run has created it: remove it",
                         lock->path);
    int fd = open(lock->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ssize_t length = fd >= 0 && fstat(fd, &info) == 0 ? pread(fd, text, sizeof text, 0) : -1;
    hpct_status status = HPCT_OK;
    if (length < 0 && (errno == ENOENT || errno == ESTALE))
        status = hpct_fail(HPCT_ERR_NO_INPUT, "%s does not exist", lock->path);
    else if (length < 0)
        status = hpct_file_failed(fd < 0 ? "opening" : "reading", lock->path);
    if (fd >= 0)
        close(fd);
    HPCT_TRY(status);
    json_decref(lock->seen);
    lock->seen = json_loadb(text, (size_t) length, 0, NULL);
    lock->renewed = modified(&info);
    return HPCT_OK;
}

/* Writes and links the file. *fd: the lock's file; -1: there is a lock already. *now: the file
 * server's time. */
static hpct_status write_lock(hpct_ckpt_disk_file *file, const char *path, const char *text,
                              int *fd, int64_t *now)
{
    struct stat info;
    HPCT_TRY(hpct_ckpt_disk_write(file, text, strlen(text)));
    if ((fsync(file->fd) != 0 && errno != EINVAL) || fstat(file->fd, &info) != 0)
        return hpct_file_failed("syncing", file->temporary);
    *now = modified(&info);
    int made = hpct_ckpt_disk_link(file->temporary, path);
    if (made == 1) {
        *fd = file->fd;
        file->fd = -1;
    }
    return made >= 0 ? HPCT_OK : hpct_file_failed("making the lock", path);
}

static hpct_status make_lock(const hpct_ckpt_lock *lock, int *fd, int64_t *now)
{
    hpct_ckpt_disk_file file;
    *fd = -1;
    HPCT_TRY(hpct_ckpt_disk_create(&file, lock->dir, HPCT_CKPT_LOCK_FILE));
    char *text = json_dumps(lock->self, JSON_INDENT(1));
    hpct_status status =
        text != NULL ? write_lock(&file, lock->path, text, fd, now) : hpct_fail_memory(0);
    hpct_ckpt_disk_discard(&file);
    free(text);
    return status;
}

/* Removes the lock if this holder has it. Another run may have taken it over since it was read: so
 * it is read again while the file system's lock on it keeps others from removing it. Where there
 * are no such locks, a run whose lock was removed finds out in hpct_ckpt_lock_check(). */
static hpct_status remove_lock(hpct_ckpt_lock *lock, const json_t *holder)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    hpct_status status = HPCT_OK;
    int fd = open(lock->path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    bool others =
        fd >= 0 && fcntl(fd, F_OFD_SETLK, &whole) != 0 && (errno == EAGAIN || errno == EACCES);
    if (!others && read_lock(lock) == HPCT_OK && hpct_ckpt_holder_same(lock->seen, holder) &&
        unlink(lock->path) != 0 && errno != ENOENT)
        status = hpct_file_failed("removing", lock->path);
    if (fd >= 0)
        close(fd);
    return status;
}

/* ---- another run's ---- */

static hpct_status refuse(const hpct_ckpt_lock *lock)
{
    char who[512];
    hpct_ckpt_holder_describe(lock->seen, who, sizeof who);
    return hpct_fail(HPCT_ERR_CONFIG,
                     "%s is in use by %s: end that run, or give this one a folder of its own",
                     lock->dir, who);
}

static void note_wait(const hpct_ckpt_lock *lock)
{
    char who[512], line[1024];
    hpct_ckpt_holder_describe(lock->seen, who, sizeof who);
    snprintf(line, sizeof line,
             "%.255s is locked by %s: waiting up to %.0f s to see whether that run is alive",
             lock->dir, who, lock->times.wait);
    if (lock->note != NULL)
        lock->note(lock->context, line);
}

/* Waits until a holder on another machine renews its lock (HPCT_ERR_CONFIG), or is gone. `now`: the
 * file server's time. */
static hpct_status watch(hpct_ckpt_lock *lock, const json_t *holder, int64_t now)
{
    const int64_t renewed = lock->renewed;
    double begin = hpct_process_clock(), wait = lock->times.wait,
           left = lock->times.gone - 1e-9 * (double) (now - renewed);
    if (left < 0)
        return HPCT_OK;
    note_wait(lock);
    while (hpct_process_clock() - begin <= (left < wait ? left : wait)) {
        usleep((useconds_t) (1e6 * (wait < 10 * LOOK_SECONDS ? wait / 20 : LOOK_SECONDS)));
        hpct_count_progress();
        HPCT_TRY(read_lock(lock));
        if (!hpct_ckpt_holder_same(lock->seen, holder) || lock->renewed != renewed)
            return refuse(lock);
    }
    return HPCT_OK;
}

static hpct_status remove_if_gone(hpct_ckpt_lock *lock, const json_t *holder, int64_t now)
{
    hpct_ckpt_holder_life life = hpct_ckpt_holder_look(holder);
    if (life == HPCT_CKPT_HOLDER_LIVES)
        return refuse(lock);
    if (life == HPCT_CKPT_HOLDER_UNKNOWN)
        HPCT_TRY(watch(lock, holder, now));
    return remove_lock(lock, holder);
}

/* After another run's lock was found: HPCT_OK to try again. */
static hpct_status replace(hpct_ckpt_lock *lock, int64_t now)
{
    hpct_status status = read_lock(lock);
    if (status == HPCT_OK) {
        json_t *holder = json_incref(lock->seen);
        status = remove_if_gone(lock, holder, now);
        json_decref(holder);
    }
    return status == HPCT_ERR_NO_INPUT ? HPCT_OK : status;
}

/* ---- renewing ---- */

/* Not the training thread: a file system may block for minutes. */
static void *renew(void *arg)
{
    const hpct_ckpt_lock *lock = arg;
    struct pollfd ended = {.fd = lock->ended, .events = POLLIN};
    do
        futimens(lock->fd, NULL); /* an error shows in hpct_ckpt_lock_check, if it matters */
    while (poll(&ended, 1, (int) (1000 * lock->times.renew)) != 1);
    return NULL;
}

static hpct_status start_thread(hpct_ckpt_lock *lock)
{
    int error = lock->ended < 0 ? errno : hpct_thread_start(&lock->thread, renew, lock);
    return error == 0 ? HPCT_OK
                      : hpct_fail(HPCT_ERR_INTERNAL, "no thread for the lock of %s: %s", lock->dir,
                                  strerror(error));
}

/* False: a file system blocks it. */
static bool end_thread(hpct_ckpt_lock *lock)
{
    struct timespec until;
    eventfd_write(lock->ended, 1);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += JOIN_SECONDS;
    bool ended = pthread_timedjoin_np(lock->thread, NULL, &until) == 0;
    if (!ended)
        pthread_detach(lock->thread);
    return ended;
}

/* ---- the calls ---- */

static void free_lock(hpct_ckpt_lock *lock)
{
    if (lock->fd >= 0)
        close(lock->fd);
    if (lock->ended >= 0)
        close(lock->ended);
    json_decref(lock->self);
    json_decref(lock->seen);
    free(lock->path);
    free(lock->dir);
    free(lock);
}

static hpct_status acquire(hpct_ckpt_lock *lock)
{
    int64_t now;
    if (lock->dir == NULL || lock->self == NULL)
        return hpct_fail_memory(0);
    HPCT_TRY(hpct_ckpt_disk_join(&lock->path, lock->dir, HPCT_CKPT_LOCK_FILE));
    for (int i = 0; i < ATTEMPTS; i++) {
        HPCT_TRY(make_lock(lock, &lock->fd, &now));
        if (lock->fd >= 0)
            return start_thread(lock);
        HPCT_TRY(replace(lock, now));
    }
    return hpct_fail(HPCT_ERR_CONFIG,
                     "%s: other runs take the lock again and again: give each run a folder of its "
                     "own",
                     lock->dir);
}

hpct_status hpct_ckpt_lock_take(hpct_ckpt_lock **out, const char *dir,
                                const hpct_ckpt_lock_times *times, hpct_ckpt_store_note *note,
                                void *context)
{
    hpct_ckpt_lock *lock = calloc(1, sizeof *lock);
    if (lock == NULL)
        return hpct_fail_memory(sizeof *lock);
    *lock = (hpct_ckpt_lock){.dir = strdup(dir),
                             .self = hpct_ckpt_holder_self(),
                             .times = *times,
                             .note = note,
                             .context = context,
                             .fd = -1,
                             .ended = eventfd(0, EFD_CLOEXEC)};
    hpct_status status = acquire(lock);
    if (status == HPCT_OK) {
        *out = lock;
        return HPCT_OK;
    }
    char *told = hpct_error_keep();
    if (lock->fd >= 0)
        remove_lock(lock, lock->self);
    free_lock(lock);
    hpct_error_restore(told);
    return status;
}

/* Someone has removed it by hand: no other run has it. The thread keeps its descriptor's number. */
static hpct_status make_again(hpct_ckpt_lock *lock)
{
    int64_t now;
    int fd;
    HPCT_TRY(make_lock(lock, &fd, &now));
    if (fd >= 0) {
        dup3(fd, lock->fd, O_CLOEXEC);
        close(fd);
    }
    return HPCT_OK;
}

hpct_status hpct_ckpt_lock_check(hpct_ckpt_lock *lock)
{
    hpct_status status = read_lock(lock);
    if (status == HPCT_ERR_NO_INPUT) {
        HPCT_TRY(make_again(lock));
        status = read_lock(lock);
    }
    if (status != HPCT_OK)
        return status == HPCT_ERR_NO_INPUT ? HPCT_ERR_IO : status;
    return hpct_ckpt_holder_same(lock->seen, lock->self) ? HPCT_OK : refuse(lock);
}

void hpct_ckpt_lock_release(hpct_ckpt_lock *lock)
{
    if (lock == NULL)
        return;
    bool ended = end_thread(lock);
    char *told = hpct_error_keep();
    remove_lock(lock, lock->self);
    hpct_error_restore(told);
    if (ended)
        free_lock(lock); /* else the thread still uses it */
}
