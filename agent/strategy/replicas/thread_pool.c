/* Thread pool with one lock. Runs and sums are counted; threads wait for the counters to change. */
#include "agent/strategy/replicas/thread_pool.h"

#include "agent/comm/comm.h"
#include "agent/rank/threads.h"
#include "base/progress.h"
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
    hpct_replicas_pool *pool;
    pthread_t thread;
    int index;
    float *data; /* the argument of hpct_replicas_pool_sum it waits in */
} member;

struct hpct_replicas_pool {
    hpct_replicas_pool_options options;
    member *members;
    int started;
    pthread_mutex_t lock;         /* protects everything below, and the members' data */
    pthread_cond_t go;            /* signalled when a run begins or the pool closes */
    pthread_cond_t caller;        /* signalled when a run ends, or a sum over processes is due */
    pthread_cond_t summed;        /* signalled when a sum is done, or something failed */
    uint64_t runs, sums;          /* runs begun; sums done */
    hpct_replicas_pool_work work; /* of the current run, with */
    void *argument;               /* its argument */
    int running;                  /* members that have not finished the run */
    int arrived;                  /* members that have called hpct_replicas_pool_sum */
    size_t count;                 /* of the sum */
    hpct_status status;           /* first error of the run, */
    char message[MESSAGE_SIZE];   /* and its message */
    bool closing;
};

/* ---- errors; called with the lock held ---- */

static void fail(hpct_replicas_pool *pool, hpct_status status, int index)
{
    if (pool->status != HPCT_OK)
        return;
    pool->status = status;
    if (index >= 0 && pool->options.members > 1)
        snprintf(pool->message, sizeof pool->message, "replica %d: %s", index, hpct_last_error());
    else
        snprintf(pool->message, sizeof pool->message, "%s", hpct_last_error());
    pthread_cond_broadcast(&pool->summed);
}

/* ---- sums; called with the lock held, while all members wait ---- */

static void add_up(hpct_replicas_pool *pool)
{
    float *total = pool->members[0].data;
    for (int k = 1; k < pool->options.members; k++) {
        const float *data = pool->members[k].data;
        for (size_t i = 0; i < pool->count; i++)
            total[i] += data[i];
    }
}

static void hand_out(hpct_replicas_pool *pool)
{
    const float *total = pool->members[0].data;
    for (int k = 1; k < pool->options.members; k++)
        memcpy(pool->members[k].data, total, pool->count * sizeof *total);
    pool->arrived = 0;
    pool->sums++;
    pthread_cond_broadcast(&pool->summed);
}

/* In the caller's thread: sums over the other processes, with the lock released. All members are
 * waiting for the result, so none can fail meanwhile. */
static void sum_over_processes(hpct_replicas_pool *pool)
{
    add_up(pool);
    pthread_mutex_unlock(&pool->lock);
    hpct_status status =
        pool->options.sum(pool->options.argument, pool->members[0].data, pool->count);
    pthread_mutex_lock(&pool->lock);
    if (status == HPCT_OK) {
        hand_out(pool);
    } else {
        pool->arrived = 0;
        fail(pool, status, -1);
    }
}

hpct_status hpct_replicas_pool_sum(hpct_replicas_pool *pool, int index, float *data, size_t count)
{
    pthread_mutex_lock(&pool->lock);
    uint64_t sum = pool->sums;
    pool->members[index].data = data;
    if (pool->arrived > 0 && pool->count != count)
        fail(pool,
             hpct_fail(HPCT_ERR_INTERNAL, "a sum of %zu where others have %zu", count, pool->count),
             index);
    pool->count = count;
    if (pool->status == HPCT_OK && ++pool->arrived == pool->options.members) {
        if (pool->options.sum != NULL) {
            pthread_cond_signal(&pool->caller);
        } else {
            add_up(pool);
            hand_out(pool);
        }
    }
    while (pool->sums == sum && pool->status == HPCT_OK)
        pthread_cond_wait(&pool->summed, &pool->lock);
    hpct_status status = pool->sums == sum ? pool->status : HPCT_OK;
    pthread_mutex_unlock(&pool->lock);
    return status == HPCT_OK ? HPCT_OK : hpct_fail(status, "another replica failed");
}

/* ---- runs ---- */

static void *serve(void *argument)
{
    member *m = argument;
    hpct_replicas_pool *pool = m->pool;
    uint64_t done = 0;
    hpct_cpu_set_threads(pool->options.threads);
    hpct_rank_threads_bind(m->index, pool->options.members);
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        while (pool->runs == done && !pool->closing)
            pthread_cond_wait(&pool->go, &pool->lock);
        if (pool->closing)
            break;
        done = pool->runs;
        pthread_mutex_unlock(&pool->lock);
        hpct_status status = pool->work(pool->argument, m->index);
        pthread_mutex_lock(&pool->lock);
        if (status != HPCT_OK)
            fail(pool, status, m->index);
        if (--pool->running == 0 || status != HPCT_OK)
            pthread_cond_signal(&pool->caller);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* Waits for an event, or for patience_seconds after an error. Called with the lock held. */
static void wait_for_members(hpct_replicas_pool *pool)
{
    struct timespec until;
    if (pool->status == HPCT_OK || pool->options.patience_seconds == 0) {
        hpct_waits before = hpct_enter_wait(HPCT_WAITS_FOR_DEVICE); /* like the members */
        pthread_cond_wait(&pool->caller, &pool->lock);
        hpct_enter_wait(before);
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += pool->options.patience_seconds;
    if (pthread_cond_timedwait(&pool->caller, &pool->lock, &until) != ETIMEDOUT)
        return;
    fprintf(stderr, "hpc-train: %s; other replicas have waited for it for %d s\n", pool->message,
            pool->options.patience_seconds);
    hpct_comm_mpi_end_step((int) pool->status);
    _exit((int) pool->status);
}

hpct_status hpct_replicas_pool_run(hpct_replicas_pool *pool, hpct_replicas_pool_work work,
                                   void *argument)
{
    pthread_mutex_lock(&pool->lock);
    pool->work = work;
    pool->argument = argument;
    pool->status = HPCT_OK;
    pool->arrived = 0;
    pool->running = pool->options.members;
    pool->runs++;
    pthread_cond_broadcast(&pool->go);
    while (pool->running > 0) {
        if (pool->options.sum != NULL && pool->arrived == pool->options.members)
            sum_over_processes(pool);
        else
            wait_for_members(pool);
    }
    hpct_status status = pool->status;
    pthread_mutex_unlock(&pool->lock);
    return status == HPCT_OK ? HPCT_OK : hpct_fail(status, "%s", pool->message);
}

/* ---- opening and closing ---- */

static hpct_status start(hpct_replicas_pool *pool)
{
    hpct_status status = HPCT_OK;
    while (pool->started < pool->options.members && status == HPCT_OK) {
        member *m = &pool->members[pool->started];
        *m = (member){.pool = pool, .index = pool->started};
        if (hpct_thread_start(&m->thread, serve, m) != 0)
            status = hpct_fail(HPCT_ERR_INTERNAL, "no more than %d of %d threads for replicas",
                               pool->started, pool->options.members);
        else
            pool->started++;
    }
    return status;
}

hpct_status hpct_replicas_pool_open(hpct_replicas_pool **out,
                                    const hpct_replicas_pool_options *options)
{
    size_t members = (size_t) options->members;
    hpct_replicas_pool *pool = calloc(1, sizeof *pool);
    if (pool == NULL)
        return hpct_fail_memory(sizeof *pool);
    pool->options = *options;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->go, NULL);
    hpct_thread_condition(&pool->caller);
    pthread_cond_init(&pool->summed, NULL);
    pool->members = calloc(members, sizeof *pool->members);
    hpct_status status =
        pool->members != NULL ? start(pool) : hpct_fail_memory(members * sizeof *pool->members);
    if (status == HPCT_OK)
        *out = pool;
    else
        hpct_replicas_pool_close(pool);
    return status;
}

void hpct_replicas_pool_close(hpct_replicas_pool *pool)
{
    if (pool == NULL)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->closing = true;
    pthread_cond_broadcast(&pool->go);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < pool->started; i++)
        pthread_join(pool->members[i].thread, NULL);
    pthread_cond_destroy(&pool->summed);
    pthread_cond_destroy(&pool->caller);
    pthread_cond_destroy(&pool->go);
    pthread_mutex_destroy(&pool->lock);
    free(pool->members);
    free(pool);
}
