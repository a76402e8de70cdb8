/* squeue is asked every five minutes, near the end more often. */
#include "agent/rank/job_end.h"

#include "agent/rank/squeue.h"
#include "base/process.h"
#include "base/status.h"
#include "base/thread.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MOST_PAUSE 300 /* seconds between two questions, and near the end */
#define LEAST_PAUSE 5
#define PATIENCE 30 /* seconds that squeue gets */

struct hpct_rank_job_end {
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
    return text[0] >= '1' && text[0] <= '9' && *end == '\0' && errno == 0 ? at : -1;
}

static bool is_ended(void *context)
{
    hpct_rank_job_end *d = context;
    pthread_mutex_lock(&d->mutex);
    bool ends = d->ends;
    pthread_mutex_unlock(&d->mutex);
    return ends;
}

/* Seconds left, or -1. */
static double ask_squeue(hpct_rank_job_end *d)
{
    char *text;
    const hpct_rank_squeue question = {
        .job = d->job, .format = "%e", .seconds = PATIENCE, .is_cancelled = is_ended, .context = d};
    if (hpct_rank_squeue_ask(&text, &question) != HPCT_OK)
        return -1;
    long long at = parse_time(text);
    free(text);
    return at < 0 ? -1 : fmax((double) (at - (long long) time(NULL)), 0);
}

/* ---- the thread ---- */

static double pause_before(double left)
{
    return fmin(MOST_PAUSE, fmax(LEAST_PAUSE, left / 8));
}

/* Until the next question, or the end. */
static void wait_a_while(hpct_rank_job_end *d)
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
    hpct_rank_job_end *d = argument;
    pthread_setname_np(pthread_self(), "job_end");
    pthread_mutex_lock(&d->mutex);
    while (!d->ends) {
        pthread_mutex_unlock(&d->mutex);
        double asked = hpct_process_clock(), left = ask_squeue(d);
        pthread_mutex_lock(&d->mutex);
        if (left >= 0)
            d->end = asked + left;
        wait_a_while(d);
    }
    pthread_mutex_unlock(&d->mutex);
    return NULL;
}

static hpct_status start(hpct_rank_job_end *d)
{
    pthread_mutex_init(&d->mutex, NULL);
    hpct_thread_condition(&d->changed);
    int error = hpct_thread_start(&d->thread, ask_again, d);
    d->has_thread = error == 0;
    return error == 0
               ? HPCT_OK
               : hpct_fail(HPCT_ERR_INTERNAL, "no thread can be started: %s", strerror(error));
}

hpct_status hpct_rank_job_end_open(hpct_rank_job_end **out)
{
    const char *job = getenv("SLURM_JOB_ID"), *end = getenv("HPC_TRAIN_END_TIME");
    *out = NULL;
    if (job == NULL || strlen(job) >= sizeof(*out)->job || job[0] < '0' || job[0] > '9')
        return HPCT_OK;
    hpct_rank_job_end *d = calloc(1, sizeof *d);
    if (d == NULL)
        return hpct_fail_memory(sizeof *d);
    strcpy(d->job, job);
    long long at = end != NULL ? atoll(end) : 0;
    d->end = at > 0 ? hpct_process_clock() + (double) (at - (long long) time(NULL)) : INFINITY;
    hpct_status status = start(d);
    if (status == HPCT_OK)
        *out = d;
    else
        hpct_rank_job_end_close(d);
    return status;
}

void hpct_rank_job_end_close(hpct_rank_job_end *d)
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

double hpct_rank_job_end_left(hpct_rank_job_end *d)
{
    if (d == NULL)
        return INFINITY;
    pthread_mutex_lock(&d->mutex);
    double left = d->end - hpct_process_clock();
    pthread_mutex_unlock(&d->mutex);
    return fmax(left, 0);
}
