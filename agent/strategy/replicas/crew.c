/* Thread pool with one lock. Runs and sums are counted; threads wait for the counters to change. */
#include "agent/strategy/replicas/crew.h"

#include "agent/comm/comm.h"
#include "agent/rank/threads.h"
#include "base/headway.h"
#include "base/status.h"
#include "base/thread.h"
#include "nn/backend/cpu/backend.h"
#include "nn/run/step.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MESSAGE_SIZE 1024

typedef struct member {
    hpct_crew *crew;
    pthread_t thread;
    int index;
    float *data; /* the argument of hpct_crew_sum it waits in */
} member;

struct hpct_crew {
    hpct_crew_options options;
    member *members;
    int started;
    pthread_mutex_t lock;       /* protects everything below, and the members' data */
    pthread_cond_t go;          /* signalled when a run begins or the crew closes */
    pthread_cond_t caller;      /* signalled when a run ends, or a sum over processes is due */
    pthread_cond_t summed;      /* signalled when a sum is done, or something failed */
    uint64_t runs, sums;        /* runs begun; sums done */
    hpct_crew_work work;        /* of the current run, with */
    void *argument;             /* its argument */
    int running;                /* members that have not finished the run */
    int arrived;                /* members that have called hpct_crew_sum */
    size_t count;               /* of the sum */
    hpct_status status;         /* first error of the run, */
    char message[MESSAGE_SIZE]; /* and its message */
    bool closing;
};

/* ---- errors; called with the lock held ---- */

static void fail(hpct_crew *crew, hpct_status status, int index)
{
    if (crew->status != HPCT_OK)
        return;
    crew->status = status;
    if (index >= 0 && crew->options.members > 1)
        snprintf(crew->message, sizeof crew->message, "replica %d: %s", index, hpct_last_error());
    else
        snprintf(crew->message, sizeof crew->message, "%s", hpct_last_error());
    pthread_cond_broadcast(&crew->summed);
}

/* ---- sums; called with the lock held, while all members wait ---- */

static void add_up(hpct_crew *crew)
{
    float *total = crew->members[0].data;
    for (int k = 1; k < crew->options.members; k++) {
        const float *data = crew->members[k].data;
        for (size_t i = 0; i < crew->count; i++)
            total[i] += data[i];
    }
}

static void hand_out(hpct_crew *crew)
{
    const float *total = crew->members[0].data;
    for (int k = 1; k < crew->options.members; k++)
        memcpy(crew->members[k].data, total, crew->count * sizeof *total);
    crew->arrived = 0;
    crew->sums++;
    pthread_cond_broadcast(&crew->summed);
}

/* In the caller's thread: sums over the other processes, with the lock released. All members are
 * waiting for the result, so none can fail meanwhile. */
static void sum_over_processes(hpct_crew *crew)
{
    add_up(crew);
    pthread_mutex_unlock(&crew->lock);
    hpct_status status =
        crew->options.sum(crew->options.argument, crew->members[0].data, crew->count);
    pthread_mutex_lock(&crew->lock);
    if (status == HPCT_OK) {
        hand_out(crew);
    } else {
        crew->arrived = 0;
        fail(crew, status, -1);
    }
}

hpct_status hpct_crew_sum(hpct_crew *crew, int index, float *data, size_t count)
{
    pthread_mutex_lock(&crew->lock);
    uint64_t sum = crew->sums;
    crew->members[index].data = data;
    if (crew->arrived > 0 && crew->count != count)
        fail(crew,
             hpct_fail(HPCT_ERR_INTERNAL, "a sum of %zu where others have %zu", count, crew->count),
             index);
    crew->count = count;
    if (crew->status == HPCT_OK && ++crew->arrived == crew->options.members) {
        if (crew->options.sum != NULL) {
            pthread_cond_signal(&crew->caller);
        } else {
            add_up(crew);
            hand_out(crew);
        }
    }
    while (crew->sums == sum && crew->status == HPCT_OK)
        pthread_cond_wait(&crew->summed, &crew->lock);
    hpct_status status = crew->sums == sum ? crew->status : HPCT_OK;
    pthread_mutex_unlock(&crew->lock);
    return status == HPCT_OK ? HPCT_OK : hpct_fail(status, "another replica failed");
}

/* ---- runs ---- */

static void *serve(void *argument)
{
    member *m = argument;
    hpct_crew *crew = m->crew;
    uint64_t done = 0;
    hpct_cpu_set_threads(crew->options.threads);
    hpct_threads_bind(m->index, crew->options.members);
    pthread_mutex_lock(&crew->lock);
    for (;;) {
        while (crew->runs == done && !crew->closing)
            pthread_cond_wait(&crew->go, &crew->lock);
        if (crew->closing)
            break;
        done = crew->runs;
        pthread_mutex_unlock(&crew->lock);
        hpct_status status = crew->work(crew->argument, m->index);
        pthread_mutex_lock(&crew->lock);
        if (status != HPCT_OK)
            fail(crew, status, m->index);
        if (--crew->running == 0 || status != HPCT_OK)
            pthread_cond_signal(&crew->caller);
    }
    pthread_mutex_unlock(&crew->lock);
    return NULL;
}

/* Waits for an event, or for patience_seconds after an error. Called with the lock held. */
static void wait_for_members(hpct_crew *crew)
{
    struct timespec until;
    if (crew->status == HPCT_OK || crew->options.patience_seconds == 0) {
        hpct_waits before = hpct_headway_enter(HPCT_WAITS_FOR_DEVICE); /* like the members */
        pthread_cond_wait(&crew->caller, &crew->lock);
        hpct_headway_enter(before);
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += crew->options.patience_seconds;
    if (pthread_cond_timedwait(&crew->caller, &crew->lock, &until) != ETIMEDOUT)
        return;
    fprintf(stderr, "hpc-train: %s; other replicas have waited for it for %d s\n", crew->message,
            crew->options.patience_seconds);
    hpct_comm_mpi_end_step((int) crew->status);
    _exit((int) crew->status);
}

hpct_status hpct_crew_run(hpct_crew *crew, hpct_crew_work work, void *argument)
{
    pthread_mutex_lock(&crew->lock);
    crew->work = work;
    crew->argument = argument;
    crew->status = HPCT_OK;
    crew->arrived = 0;
    crew->running = crew->options.members;
    crew->runs++;
    pthread_cond_broadcast(&crew->go);
    while (crew->running > 0) {
        if (crew->options.sum != NULL && crew->arrived == crew->options.members)
            sum_over_processes(crew);
        else
            wait_for_members(crew);
    }
    hpct_status status = crew->status;
    pthread_mutex_unlock(&crew->lock);
    return status == HPCT_OK ? HPCT_OK : hpct_fail(status, "%s", crew->message);
}

int hpct_crew_members(const hpct_crew *crew)
{
    return crew->options.members;
}

/* ---- opening and closing ---- */

static hpct_status start(hpct_crew *crew)
{
    hpct_status status = HPCT_OK;
    while (crew->started < crew->options.members && status == HPCT_OK) {
        member *m = &crew->members[crew->started];
        *m = (member){.crew = crew, .index = crew->started};
        if (hpct_thread_start(&m->thread, serve, m) != 0)
            status = hpct_fail(HPCT_ERR_INTERNAL, "no more than %d of %d threads for replicas",
                               crew->started, crew->options.members);
        else
            crew->started++;
    }
    return status;
}

hpct_status hpct_crew_open(hpct_crew **out, const hpct_crew_options *options)
{
    size_t members = (size_t) options->members;
    hpct_crew *crew = calloc(1, sizeof *crew);
    if (crew == NULL)
        return hpct_fail_memory(sizeof *crew);
    crew->options = *options;
    pthread_mutex_init(&crew->lock, NULL);
    pthread_cond_init(&crew->go, NULL);
    hpct_thread_condition(&crew->caller);
    pthread_cond_init(&crew->summed, NULL);
    crew->members = calloc(members, sizeof *crew->members);
    hpct_status status =
        crew->members != NULL ? start(crew) : hpct_fail_memory(members * sizeof *crew->members);
    if (status == HPCT_OK)
        *out = crew;
    else
        hpct_crew_close(crew);
    return status;
}

void hpct_crew_close(hpct_crew *crew)
{
    if (crew == NULL)
        return;
    pthread_mutex_lock(&crew->lock);
    crew->closing = true;
    pthread_cond_broadcast(&crew->go);
    pthread_mutex_unlock(&crew->lock);
    for (int i = 0; i < crew->started; i++)
        pthread_join(crew->members[i].thread, NULL);
    pthread_cond_destroy(&crew->summed);
    pthread_cond_destroy(&crew->caller);
    pthread_cond_destroy(&crew->go);
    pthread_mutex_destroy(&crew->lock);
    free(crew->members);
    free(crew);
}
