/* A ring of blocks: submitted, begun, finished, returned. Whether another thread helps follows from
 * CPU time and context switches of a thread (getrusage). */
#include <config.h>

#include "spank/stage/tree/thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "base/status.h"

/* ---- whether another thread helps ---- */

#define CHECK_SECONDS 0.02 /* longer than a few time slices of the scheduler */
#define BUSY 0.85          /* fraction of the wall time */

static void add(hpct_stage_pace *pace, int sign)
{
    struct timespec wall = {0};
    struct rusage usage = {0};
    clock_gettime(CLOCK_MONOTONIC, &wall);
    getrusage(RUSAGE_THREAD, &usage);
    pace->wall += sign * ((double) wall.tv_sec + (double) wall.tv_nsec * 1e-9);
    pace->cpu += sign * ((double) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                         (double) (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6);
    pace->waits += sign * usage.ru_nvcsw;
    pace->shares += sign * usage.ru_nivcsw;
}

void hpct_stage_pace_begin(hpct_stage_pace *pace)
{
    add(pace, -1);
}

void hpct_stage_pace_end(hpct_stage_pace *pace)
{
    add(pace, 1);
}

hpct_stage_pace_kind hpct_stage_pace_check(hpct_stage_pace *pace)
{
    hpct_stage_pace_kind kind = HPCT_STAGE_PACE_SHARES;
    if (pace->wall < CHECK_SECONDS)
        return HPCT_STAGE_PACE_EARLY;
    if (pace->cpu > pace->wall * BUSY)
        kind = HPCT_STAGE_PACE_BUSY;
    else if (pace->waits > pace->shares)
        kind = HPCT_STAGE_PACE_WAITS;
    *pace = (hpct_stage_pace){0};
    return kind;
}

long hpct_stage_pace_waits(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nvcsw : 0;
}

int hpct_stage_pace_cores(int most)
{
    cpu_set_t cpus;
    int count = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
    return count < most ? count : most;
}

/* ---- the pool ---- */

#define MOST_THREADS 8
#define MOST_BLOCKS 64

typedef struct block {
    const uint8_t *data;
    size_t size;
    bool finished;
} block;

struct hpct_stage_pool {
    hpct_stage_pool_job job;
    int most_threads;
    size_t most;
    pthread_t threads[MOST_THREADS];
    int num_threads;
    pthread_mutex_t mutex; /* protects everything below */
    pthread_cond_t more;   /* signalled for a new block or the end */
    pthread_cond_t less;   /* signalled when blocks are returned */
    block ring[MOST_BLOCKS];
    size_t given, begun, back; /* numbers of blocks; back <= begun <= given */
    bool over;
    hpct_status status; /* of the first failure */
    char message[1024];
};

hpct_stage_pool *hpct_stage_pool_new(const hpct_stage_pool_job *job, int threads, int most)
{
    hpct_stage_pool *c = calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    c->job = *job;
    c->most_threads = threads < MOST_THREADS ? threads : MOST_THREADS;
    c->most = most < MOST_BLOCKS ? (size_t) most : MOST_BLOCKS;
    pthread_mutex_init(&c->mutex, NULL);
    pthread_cond_init(&c->more, NULL);
    pthread_cond_init(&c->less, NULL);
    return c;
}

/* Called with the mutex held. */
static void finish(hpct_stage_pool *c, size_t number)
{
    c->ring[number % MOST_BLOCKS].finished = true;
    for (; c->back < c->given && c->ring[c->back % MOST_BLOCKS].finished; c->back++)
        if (c->job.back != NULL)
            c->job.back(c->job.context);
    pthread_cond_signal(&c->less);
}

/* Called with the mutex held; releases it during the work. */
static void work_off(hpct_stage_pool *c, size_t number, hpct_stage_pace *pace)
{
    const block b = c->ring[number % MOST_BLOCKS];
    if (c->status == HPCT_OK) {
        pthread_mutex_unlock(&c->mutex);
        hpct_stage_pace_begin(pace);
        hpct_status status = c->job.work(c->job.context, b.data, b.size);
        hpct_stage_pace_end(pace);
        pthread_mutex_lock(&c->mutex);
        if (status != HPCT_OK && c->status == HPCT_OK) {
            c->status = status;
            snprintf(c->message, sizeof c->message, "%s", hpct_last_error());
        }
    }
    finish(c, number);
}

static void *run(void *context);

/* Called with the mutex held. On error the existing threads continue without it. */
static void add_thread(hpct_stage_pool *c)
{
    if (!c->over && c->num_threads < c->most_threads &&
        pthread_create(&c->threads[c->num_threads], NULL, run, c) == 0)
        c->num_threads++;
}

static void *run(void *context)
{
    hpct_stage_pool *c = context;
    hpct_stage_pace pace = {0};
    pthread_mutex_lock(&c->mutex);
    for (;;) {
        while (c->begun < c->given && c->ring[c->begun % MOST_BLOCKS].finished)
            c->begun++; /* the caller has processed it itself */
        hpct_stage_pace_kind kind = hpct_stage_pace_check(&pace);
        if (c->begun < c->given && (kind == HPCT_STAGE_PACE_BUSY || kind == HPCT_STAGE_PACE_WAITS))
            add_thread(c);
        if (c->begun < c->given)
            work_off(c, c->begun++, &pace);
        else if (c->over)
            break;
        else
            pthread_cond_wait(&c->more, &c->mutex);
    }
    pthread_mutex_unlock(&c->mutex);
    return NULL;
}

/* Called with the mutex held. */
static hpct_status failure(const hpct_stage_pool *c)
{
    return c->status == HPCT_OK ? HPCT_OK : hpct_fail(c->status, "%s", c->message);
}

/* Called with the mutex held; waits for a free slot. */
static size_t next(hpct_stage_pool *c, const uint8_t *data, size_t size)
{
    while (c->given - c->back >= c->most)
        pthread_cond_wait(&c->less, &c->mutex);
    c->ring[c->given % MOST_BLOCKS] = (block){.data = data, .size = size};
    return c->given++;
}

hpct_status hpct_stage_pool_give(hpct_stage_pool *c, const uint8_t *data, size_t size)
{
    pthread_mutex_lock(&c->mutex);
    size_t number = next(c, data, size);
    if (c->num_threads == 0)
        add_thread(c);
    if (c->num_threads > 0)
        pthread_cond_signal(&c->more);
    else
        work_off(c, number, &(hpct_stage_pace){0}); /* no thread could be started */
    hpct_status status = failure(c);
    pthread_mutex_unlock(&c->mutex);
    return status;
}

void hpct_stage_pool_give_done(hpct_stage_pool *c)
{
    pthread_mutex_lock(&c->mutex);
    finish(c, next(c, NULL, 0));
    pthread_mutex_unlock(&c->mutex);
}

hpct_status hpct_stage_pool_wait(hpct_stage_pool *c)
{
    pthread_mutex_lock(&c->mutex);
    while (c->back < c->given)
        pthread_cond_wait(&c->less, &c->mutex);
    hpct_status status = failure(c);
    pthread_mutex_unlock(&c->mutex);
    return status;
}

void hpct_stage_pool_free(hpct_stage_pool *c)
{
    if (c == NULL)
        return;
    pthread_mutex_lock(&c->mutex);
    c->over = true;
    if (c->status == HPCT_OK) /* blocks that have not begun are dropped */
        c->status = HPCT_ERR_STOPPED;
    pthread_cond_broadcast(&c->more);
    pthread_mutex_unlock(&c->mutex);
    for (int i = 0; i < c->num_threads; i++)
        pthread_join(c->threads[i], NULL);
    pthread_cond_destroy(&c->less);
    pthread_cond_destroy(&c->more);
    pthread_mutex_destroy(&c->mutex);
    free(c);
}
