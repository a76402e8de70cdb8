/* The lock of a folder. */
#include "agent/checkpoint/lock.h"

#include "agent/checkpoint/disk.h"
#include "agent/checkpoint/holder.h"
#include "base/file.h"
#include "base/headway.h"
#include "base/process.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ATTEMPTS 100   /* while others take and release it */
#define JOIN_SECONDS 5 /* for a thread that a file system blocks */
#define LOOK_SECONDS 1

const hpct_lock_times hpct_lock_usual = {.renew = 30, .gone = 120, .wait = 150};

struct hpct_lock {
    char *dir, *path;
    hpct_holder self;
    hpct_lock_times times;
    int fd; /* of the lock file, whatever has its name later */
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t ended;
    bool ends, has_thread;
};

/* ---- the file ---- */

typedef struct seen {
    hpct_holder holder;
    struct timespec time; /* of its last renewal */
} seen;

/* Opening it makes NFS ask the server. HPCT_ERR_NO_INPUT: there is none. */
static hpct_status read_lock(seen *out, const char *path)
{
    struct stat info;
    char text[HPCT_HOLDER_MAX_BYTES];
    if (lstat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return hpct_fail(HPCT_ERR_CONFIG,
                         "%s is not a regular file, so no run has created it: remove it", path);
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && (errno == ENOENT || errno == ESTALE))
        return hpct_fail(HPCT_ERR_NO_INPUT, "%s does not exist", path);
    if (fd < 0)
        return hpct_file_failed("opening", path);
    ssize_t length = fstat(fd, &info) == 0 ? pread(fd, text, sizeof text, 0) : -1;
    int error = errno;
    close(fd);
    errno = error;
    if (length < 0)
        return errno == ESTALE ? hpct_fail(HPCT_ERR_NO_INPUT, "%s does not exist", path)
                               : hpct_file_failed("reading", path);
    hpct_holder_parse(&out->holder, text, (size_t) length);
    out->time = info.st_mtim;
    return HPCT_OK;
}

/* 1: the lock is made, and *fd its file; 0: there is one; -1: error. */
static int make_lock(const hpct_lock *lock, int *fd, hpct_status *status)
{
    char *text = NULL;
    hpct_disk_file file;
    int made = -1;
    *status = hpct_holder_format(&text, &lock->self);
    if (*status == HPCT_OK)
        *status = hpct_disk_create(&file, lock->dir, HPCT_LOCK_FILE);
    if (*status == HPCT_OK) {
        *status = hpct_disk_write(&file, text, strlen(text));
        if (*status == HPCT_OK && fsync(file.fd) != 0 && errno != EINVAL)
            *status = hpct_file_failed("syncing", file.temporary);
        if (*status == HPCT_OK) {
            made = hpct_disk_link(file.temporary, lock->path);
            if (made < 0)
                *status = hpct_file_failed("making the lock", lock->path);
        }
        if (made == 1) {
            *fd = file.fd;
            file.fd = -1;
        }
        hpct_disk_discard(&file);
    }
    free(text);
    return made;
}

/* Whether no other process removes the lock: the file system's lock on it is taken, or there are
 * none. *fd is to be closed afterwards, unless it is -1. */
static bool may_remove(const hpct_lock *lock, int *fd)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    *fd = open(lock->path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    return *fd < 0 || fcntl(*fd, F_OFD_SETLK, &whole) == 0 || (errno != EAGAIN && errno != EACCES);
}

static hpct_status rename_and_remove(const hpct_lock *lock, const char *token)
{
    char name[64], *aside, own[HPCT_DISK_TOKEN];
    seen now;
    hpct_disk_token(own);
    snprintf(name, sizeof name, HPCT_LOCK_FILE HPCT_DISK_TEMPORARY "%s", own);
    HPCT_TRY(hpct_disk_join(&aside, lock->dir, name));
    hpct_status status = HPCT_OK;
    if (rename(lock->path, aside) != 0) {
        if (errno != ENOENT && errno != ESTALE)
            status = hpct_file_failed("renaming", lock->path);
    } else if (read_lock(&now, aside) == HPCT_OK && strcmp(now.holder.token, token) != 0) {
        hpct_disk_link(aside, lock->path);
    } else if (unlink(aside) != 0 && errno != ENOENT) {
        status = hpct_file_failed("removing", aside);
    }
    free(aside);
    return status;
}

/* Removes the lock if it has this token. Another run may have taken it over since it was read: so
 * it is read again, where no other process may remove it. Some file systems have no locks: there it
 * is renamed first, and put back if it turns out to be another one's. */
static hpct_status remove_lock(const hpct_lock *lock, const char *token)
{
    int fd;
    seen now;
    hpct_status status = HPCT_OK;
    if (may_remove(lock, &fd) && read_lock(&now, lock->path) == HPCT_OK &&
        strcmp(now.holder.token, token) == 0)
        status = rename_and_remove(lock, token);
    if (fd >= 0)
        close(fd);
    return status;
}

/* ---- another run's ---- */

static hpct_status refuse(const hpct_lock *lock, const hpct_holder *holder)
{
    char who[512];
    hpct_holder_describe(holder, who, sizeof who);
    return hpct_fail(HPCT_ERR_CONFIG,
                     "%s is in use by %s: end that run, or give this one a folder of its own",
                     lock->dir, who);
}

/* The file server's time: that of a file which is made there. */
static hpct_status server_time(const hpct_lock *lock, struct timespec *out)
{
    struct stat info;
    hpct_disk_file file;
    HPCT_TRY(hpct_disk_create(&file, lock->dir, HPCT_LOCK_FILE));
    hpct_status status = futimens(file.fd, NULL) == 0 && fstat(file.fd, &info) == 0
                             ? HPCT_OK
                             : hpct_file_failed("reading its time", file.temporary);
    if (status == HPCT_OK)
        *out = info.st_mtim;
    hpct_disk_discard(&file);
    return status;
}

static double seconds_between(const struct timespec *a, const struct timespec *b)
{
    return (double) (b->tv_sec - a->tv_sec) + 1e-9 * (double) (b->tv_nsec - a->tv_nsec);
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static void sleep_for(double seconds)
{
    struct timespec time = {.tv_sec = (time_t) seconds};
    time.tv_nsec = (long) (1e9 * (seconds - (double) time.tv_sec));
    nanosleep(&time, NULL);
}

static void note_wait(const hpct_lock *lock, const hpct_holder *holder, hpct_store_note *note,
                      void *context)
{
    char who[512], line[1024];
    hpct_holder_describe(holder, who, sizeof who);
    snprintf(line, sizeof line,
             "%.255s is locked by %s: waiting up to %.0f s to see whether that run is alive",
             lock->dir, who, lock->times.wait);
    if (note != NULL)
        note(context, line);
}

/* Waits until a holder on another machine renews its lock (HPCT_ERR_CONFIG), or is gone. */
static hpct_status watch(const hpct_lock *lock, const seen *first, hpct_store_note *note,
                         void *context)
{
    double begin = hpct_process_clock();
    seen now = *first;
    struct timespec clock;
    for (bool noted = false;; noted = true) {
        HPCT_TRY(server_time(lock, &clock));
        if (seconds_between(&now.time, &clock) > lock->times.gone ||
            hpct_process_clock() - begin > lock->times.wait)
            return HPCT_OK;
        if (!noted)
            note_wait(lock, &now.holder, note, context);
        sleep_for(lock->times.wait < 10 * LOOK_SECONDS ? lock->times.wait / 20 : LOOK_SECONDS);
        hpct_headway();
        hpct_status status = read_lock(&now, lock->path);
        if (status == HPCT_ERR_NO_INPUT)
            return HPCT_OK;
        HPCT_TRY(status);
        if (strcmp(now.holder.token, first->holder.token) != 0 ||
            !same_time(&now.time, &first->time))
            return refuse(lock, &now.holder);
    }
}

/* After another run's lock was found: HPCT_OK to try again. */
static hpct_status replace(const hpct_lock *lock, hpct_store_note *note, void *context)
{
    seen other;
    hpct_status status = read_lock(&other, lock->path);
    if (status == HPCT_ERR_NO_INPUT)
        return HPCT_OK;
    HPCT_TRY(status);
    hpct_holder_life life = hpct_holder_look(&other.holder);
    if (life == HPCT_HOLDER_LIVES)
        return refuse(lock, &other.holder);
    if (life == HPCT_HOLDER_UNKNOWN)
        HPCT_TRY(watch(lock, &other, note, context));
    return remove_lock(lock, other.holder.token);
}

/* ---- renewing ---- */

/* Not the training thread: a file system may block for minutes. */
static void *renew(void *arg)
{
    hpct_lock *lock = arg;
    pthread_mutex_lock(&lock->mutex);
    while (!lock->ends) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        pthread_mutex_unlock(&lock->mutex);
        futimens(lock->fd, NULL); /* an error shows in hpct_lock_check, if it matters */
        pthread_mutex_lock(&lock->mutex);
        double at = (double) until.tv_nsec * 1e-9 + lock->times.renew;
        until.tv_sec += (time_t) at;
        until.tv_nsec = (long) ((at - (double) (time_t) at) * 1e9);
        while (!lock->ends && pthread_cond_timedwait(&lock->ended, &lock->mutex, &until) == 0) {
        }
    }
    pthread_mutex_unlock(&lock->mutex);
    return NULL;
}

/* Signals are for the training thread. */
static hpct_status start_thread(hpct_lock *lock)
{
    sigset_t all, old;
    pthread_condattr_t attributes;
    pthread_mutex_init(&lock->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&lock->ended, &attributes);
    pthread_condattr_destroy(&attributes);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    int error = pthread_create(&lock->thread, NULL, renew, lock);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    lock->has_thread = error == 0;
    return error == 0 ? HPCT_OK
                      : hpct_fail(HPCT_ERR_INTERNAL, "no thread for the lock of %s: %s", lock->dir,
                                  strerror(error));
}

/* False: a file system blocks it. */
static bool end_thread(hpct_lock *lock)
{
    struct timespec until;
    if (!lock->has_thread)
        return true;
    pthread_mutex_lock(&lock->mutex);
    lock->ends = true;
    pthread_cond_signal(&lock->ended);
    pthread_mutex_unlock(&lock->mutex);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += JOIN_SECONDS;
    if (pthread_timedjoin_np(lock->thread, NULL, &until) != 0) {
        pthread_detach(lock->thread);
        return false;
    }
    pthread_mutex_destroy(&lock->mutex);
    pthread_cond_destroy(&lock->ended);
    return true;
}

/* ---- the calls ---- */

static void free_lock(hpct_lock *lock)
{
    if (lock->fd >= 0)
        close(lock->fd);
    free(lock->path);
    free(lock->dir);
    free(lock);
}

static hpct_status acquire(hpct_lock *lock, hpct_store_note *note, void *context)
{
    hpct_status status = HPCT_OK;
    for (int i = 0; i < ATTEMPTS && status == HPCT_OK; i++) {
        int made = make_lock(lock, &lock->fd, &status);
        if (made == 1)
            return start_thread(lock);
        if (made == 0)
            status = replace(lock, note, context);
    }
    return status != HPCT_OK ? status
                             : hpct_fail(HPCT_ERR_CONFIG,
                                         "%s: other runs take the lock again and again: give "
                                         "each run a folder of its own",
                                         lock->dir);
}

hpct_status hpct_lock_take(hpct_lock **out, const char *dir, const hpct_lock_times *times,
                           hpct_store_note *note, void *context)
{
    hpct_lock *lock = calloc(1, sizeof *lock);
    if (lock == NULL)
        return hpct_fail_memory(sizeof *lock);
    lock->fd = -1;
    lock->times = *times;
    hpct_holder_self(&lock->self);
    lock->dir = strdup(dir);
    hpct_status status =
        lock->dir != NULL ? hpct_disk_join(&lock->path, dir, HPCT_LOCK_FILE) : hpct_fail_memory(0);
    if (status == HPCT_OK)
        status = acquire(lock, note, context);
    if (status == HPCT_OK) {
        *out = lock;
        return HPCT_OK;
    }
    char *told = hpct_error_keep();
    if (lock->fd >= 0)
        remove_lock(lock, lock->self.token);
    free_lock(lock);
    hpct_error_restore(told);
    return status;
}

/* Someone has removed it by hand: no other run has it. The thread keeps its descriptor's number. */
static hpct_status make_again(hpct_lock *lock)
{
    hpct_status status;
    int fd;
    if (make_lock(lock, &fd, &status) == 1) {
        dup3(fd, lock->fd, O_CLOEXEC);
        close(fd);
    }
    return status;
}

hpct_status hpct_lock_check(hpct_lock *lock)
{
    seen now;
    hpct_status status = read_lock(&now, lock->path);
    if (status == HPCT_ERR_NO_INPUT) {
        HPCT_TRY(make_again(lock));
        status = read_lock(&now, lock->path);
    }
    if (status != HPCT_OK)
        return status == HPCT_ERR_NO_INPUT ? HPCT_ERR_IO : status;
    return strcmp(now.holder.token, lock->self.token) == 0 ? HPCT_OK : refuse(lock, &now.holder);
}

void hpct_lock_release(hpct_lock *lock)
{
    if (lock == NULL)
        return;
    bool ended = end_thread(lock);
    char *told = hpct_error_keep();
    remove_lock(lock, lock->self.token);
    hpct_error_restore(told);
    if (ended)
        free_lock(lock); /* else the thread still uses it */
}
