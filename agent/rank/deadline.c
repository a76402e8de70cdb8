/* squeue is asked every five minutes, near the end more often. */
#include "agent/rank/deadline.h"

#include "base/process.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST_PAUSE 300 /* seconds between two questions, and near the end */
#define LEAST_PAUSE 5
#define PATIENCE 30  /* seconds that squeue gets */
#define SLICE_MS 200 /* in which an end is noticed */

extern char **environ;

struct hpct_deadline {
    char job[24];
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool has_thread, ends;
    double end; /* of the job, on hpct_process_clock; INFINITY: unknown */
};

/* ---- squeue ---- */

/* Seconds since 1970; -1: none. */
static long long parse_time(const char *text)
{
    char *end;
    errno = 0;
    long long at = strtoll(text, &end, 10);
    return text[0] >= '1' && text[0] <= '9' && (*end == '\0' || *end == '\n') && errno == 0 ? at
                                                                                            : -1;
}

static bool is_ended(hpct_deadline *d)
{
    pthread_mutex_lock(&d->mutex);
    bool ends = d->ends;
    pthread_mutex_unlock(&d->mutex);
    return ends;
}

/* Its output's first line. */
static void hear(hpct_deadline *d, int fd, char *text, size_t size)
{
    size_t length = 0;
    double until = hpct_process_clock() + PATIENCE;
    struct pollfd one = {.fd = fd, .events = POLLIN};
    text[0] = '\0';
    while (hpct_process_clock() < until && !is_ended(d)) {
        int ready = poll(&one, 1, SLICE_MS);
        if (ready < 0)
            break;
        if (ready == 0)
            continue;
        ssize_t bytes = (one.revents & (POLLIN | POLLHUP)) != 0
                            ? read(fd, text + length, size - 1 - length)
                            : -1;
        if (bytes <= 0)
            break;
        length += (size_t) bytes;
        text[length] = '\0';
        if (length + 1 >= size)
            break;
    }
}

/* Seconds left, or -1. */
static double ask(hpct_deadline *d)
{
    char text[64];
    char *const arguments[] = {
        "env", "SLURM_TIME_FORMAT=%s", "squeue", "--noheader", "--jobs", d->job, "--format", "%e",
        NULL};
    int fds[2], status;
    pid_t pid;
    posix_spawn_file_actions_t actions;
    if (pipe2(fds, O_CLOEXEC) != 0)
        return -1;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    int error = posix_spawnp(&pid, arguments[0], &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(fds[1]);
    if (error == 0) {
        hear(d, fds[0], text, sizeof text);
        kill(pid, SIGKILL); /* it has said all, or was late */
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            continue;
    }
    close(fds[0]);
    long long at = error == 0 ? parse_time(text) : -1;
    return at < 0 ? -1 : fmax((double) (at - (long long) time(NULL)), 0);
}

/* ---- the thread ---- */

static double pause_before(double left)
{
    return fmin(MOST_PAUSE, fmax(LEAST_PAUSE, left / 8));
}

/* Until the next question, or the end. */
static void wait_a_while(hpct_deadline *d)
{
    struct timespec until;
    double seconds = pause_before(d->end - hpct_process_clock());
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t) seconds;
    while (!d->ends && pthread_cond_timedwait(&d->changed, &d->mutex, &until) != ETIMEDOUT)
        continue;
}

static void *ask_again(void *argument)
{
    hpct_deadline *d = argument;
    pthread_setname_np(pthread_self(), "deadline");
    pthread_mutex_lock(&d->mutex);
    while (!d->ends) {
        pthread_mutex_unlock(&d->mutex);
        double asked = hpct_process_clock(), left = ask(d);
        pthread_mutex_lock(&d->mutex);
        if (left >= 0)
            d->end = asked + left;
        wait_a_while(d);
    }
    pthread_mutex_unlock(&d->mutex);
    return NULL;
}

static hpct_status start(hpct_deadline *d)
{
    sigset_t all, before;
    pthread_condattr_t by_clock;
    pthread_condattr_init(&by_clock);
    pthread_condattr_setclock(&by_clock, CLOCK_MONOTONIC);
    pthread_mutex_init(&d->mutex, NULL);
    pthread_cond_init(&d->changed, &by_clock);
    pthread_condattr_destroy(&by_clock);
    sigfillset(&all); /* signals are for the thread that trains */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&d->thread, NULL, ask_again, d);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    d->has_thread = error == 0;
    return error == 0
               ? HPCT_OK
               : hpct_fail(HPCT_ERR_INTERNAL, "no thread can be started: %s", strerror(error));
}

hpct_status hpct_deadline_open(hpct_deadline **out)
{
    const char *job = getenv("SLURM_JOB_ID"), *end = getenv("HPC_TRAIN_END_TIME");
    *out = NULL;
    if (job == NULL || strlen(job) >= sizeof(*out)->job || job[0] < '0' || job[0] > '9')
        return HPCT_OK;
    hpct_deadline *d = calloc(1, sizeof *d);
    if (d == NULL)
        return hpct_fail_memory(sizeof *d);
    strcpy(d->job, job);
    long long at = end != NULL ? atoll(end) : 0;
    d->end = at > 0 ? hpct_process_clock() + (double) (at - (long long) time(NULL)) : INFINITY;
    hpct_status status = start(d);
    if (status == HPCT_OK)
        *out = d;
    else
        hpct_deadline_close(d);
    return status;
}

void hpct_deadline_close(hpct_deadline *d)
{
    if (d == NULL)
        return;
    if (d->has_thread) {
        pthread_mutex_lock(&d->mutex);
        d->ends = true;
        pthread_cond_broadcast(&d->changed);
        pthread_mutex_unlock(&d->mutex);
        pthread_join(d->thread, NULL);
    }
    pthread_cond_destroy(&d->changed);
    pthread_mutex_destroy(&d->mutex);
    free(d);
}

double hpct_deadline_left(hpct_deadline *d)
{
    if (d == NULL)
        return INFINITY;
    pthread_mutex_lock(&d->mutex);
    double left = d->end - hpct_process_clock();
    pthread_mutex_unlock(&d->mutex);
    return fmax(left, 0);
}
