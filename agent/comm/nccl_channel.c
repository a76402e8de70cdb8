/* NCCL communicators: opened with a timeout, checked for errors, and closed in order or aborted. */
#include "agent/comm/nccl_comm.h"
#include "base/net/link.h"
#include "base/progress.h"
#include "base/status.h"
#include "base/thread.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define LOOK_MICROSECONDS 500
#define ABORT_MS 2000 /* when leaving a failed group */

/* All channels of this process, for the watch's thread. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static nccl_channel *all;

static void enlist(nccl_channel *channel)
{
    pthread_mutex_lock(&mutex);
    channel->next = all;
    all = channel;
    pthread_mutex_unlock(&mutex);
}

static bool strike(nccl_channel *channel)
{
    bool found = false;
    pthread_mutex_lock(&mutex);
    for (nccl_channel **at = &all; *at != NULL && !found; at = found ? at : &(*at)->next) {
        found = *at == channel;
        if (found)
            *at = channel->next;
    }
    pthread_mutex_unlock(&mutex);
    return found;
}

/* ---- errors ---- */

hpct_status hpct_nccl_check(const nccl_comm *comm, hpct_device_result result, const char *what)
{
    const char *words = comm->calls->error();
    switch (result) {
    case HPCT_DEVICE_OK:
    case HPCT_DEVICE_BUSY:
        return HPCT_OK;
    case HPCT_DEVICE_MEMORY:
        return hpct_fail(HPCT_ERR_INTERNAL, "rank %d: %s: out of memory on the GPU: %s",
                         comm->base.rank, what, words);
    case HPCT_DEVICE_LOST:
        hpct_fail(HPCT_ERR_PEER,
                  "rank %d: %s failed, probably because another rank was lost: %s (NCCL_DEBUG=WARN "
                  "says more)",
                  comm->base.rank, what, words);
        sleep((unsigned) comm->grace_seconds);
        return HPCT_ERR_PEER;
    case HPCT_DEVICE_ABORTED:
        return hpct_fail(HPCT_ERR_PEER,
                         "rank %d: %s: the reductions of this process's GPUs were aborted",
                         comm->base.rank, what);
    default:
        return hpct_fail(HPCT_ERR_INTERNAL, "rank %d: %s: %s", comm->base.rank, what, words);
    }
}

bool hpct_nccl_is_gone(const nccl_channel *channel)
{
    pthread_mutex_lock(&mutex);
    bool gone = channel->gone;
    pthread_mutex_unlock(&mutex);
    return gone;
}

hpct_device_result hpct_nccl_state(nccl_channel *channel)
{
    const nccl_comm *comm = channel->comm;
    if (hpct_nccl_is_gone(channel))
        return HPCT_DEVICE_ABORTED;
    pthread_mutex_lock(comm->calling);
    hpct_device_result result = comm->calls->async_error(channel->nccl);
    pthread_mutex_unlock(comm->calling);
    return result;
}

hpct_status hpct_comm_nccl_check(void)
{
    hpct_status status = HPCT_OK;
    int64_t now = hpct_now_ms();
    pthread_mutex_lock(&mutex);
    for (nccl_channel *c = all; c != NULL && status == HPCT_OK; c = c->next) {
        if (pthread_mutex_trylock(c->comm->calling) != 0)
            continue; /* the thread in the NCCL call gets the error */
        hpct_device_result result = c->comm->calls->async_error(c->nccl);
        pthread_mutex_unlock(c->comm->calling);
        if (result == HPCT_DEVICE_OK || result == HPCT_DEVICE_BUSY)
            continue;
        if (c->failed_ms == 0)
            c->failed_ms = now;
        if (now - c->failed_ms >= 1000 * (int64_t) c->comm->grace_seconds)
            status =
                hpct_fail(HPCT_ERR_PEER, "NCCL failed, probably because another rank was lost: %s",
                          c->comm->calls->error());
    }
    pthread_mutex_unlock(&mutex);
    return status;
}

/* ---- aborting ---- */

/* ncclCommAbort may hang, and aborting one communicator may wait for another: each is aborted by
 * its own thread, which is left behind at the timeout. */
typedef struct abortion {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool left;
    int num, running;
    struct abortion_of_one {
        struct abortion *all;
        const hpct_device_calls *calls;
        void *nccl;
    } one[];
} abortion;

static void *run_abortion(void *argument)
{
    struct abortion_of_one *one = argument;
    abortion *a = one->all;
    one->calls->abort(one->nccl);
    pthread_mutex_lock(&a->mutex);
    a->running--;
    bool last = a->running == 0 && a->left;
    pthread_cond_signal(&a->changed);
    pthread_mutex_unlock(&a->mutex);
    if (last)
        free(a);
    return NULL;
}

static void start_abortions(abortion *a)
{
    pthread_t thread;
    for (int i = 0; i < a->num; i++) {
        a->one[i].all = a;
        if (hpct_thread_start(&thread, run_abortion, &a->one[i]) != 0)
            continue;
        pthread_detach(thread);
        a->running++;
    }
}

static void abort_within(abortion *a, int milliseconds)
{
    struct timespec until;
    int waited = 0;
    pthread_mutex_init(&a->mutex, NULL);
    hpct_thread_condition(&a->changed);
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += milliseconds / 1000;
    until.tv_nsec += milliseconds % 1000 * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;

    pthread_mutex_lock(&a->mutex);
    start_abortions(a);
    while (a->running > 0 && waited == 0)
        waited = pthread_cond_timedwait(&a->changed, &a->mutex, &until);
    bool ended = a->running == 0;
    a->left = !ended;
    pthread_mutex_unlock(&a->mutex);
    if (ended)
        free(a);
}

void hpct_comm_nccl_abort_all(int milliseconds)
{
    int num = 0;
    abortion *a = NULL;
    pthread_mutex_lock(&mutex);
    for (nccl_channel *c = all; c != NULL; c = c->next)
        num++;
    if (num > 0)
        a = calloc(1, sizeof *a + (size_t) num * sizeof *a->one);
    for (nccl_channel *c = all; c != NULL && a != NULL; c = c->next) {
        c->gone = true;
        a->one[a->num].calls = c->comm->calls;
        a->one[a->num++].nccl = c->nccl;
    }
    if (a != NULL)
        all = NULL;
    pthread_mutex_unlock(&mutex);
    if (a != NULL)
        abort_within(a, milliseconds);
}

static void abort_one(const nccl_comm *comm, void *nccl)
{
    abortion *a = calloc(1, sizeof *a + sizeof *a->one);
    if (a == NULL)
        return;
    a->num = 1;
    a->one[0].calls = comm->calls;
    a->one[0].nccl = nccl;
    abort_within(a, ABORT_MS);
}

/* ---- opening and closing ---- */

/* Waits until NCCL's call in progress has completed. */
static hpct_status settle(nccl_channel *channel, const char *what)
{
    const nccl_comm *comm = channel->comm;
    int64_t until_ms = hpct_now_ms() + 1000 * (int64_t) comm->seconds;
    hpct_device_result result;
    hpct_waits before = hpct_enter_wait(HPCT_WAITS_FOR_RANKS);
    while ((result = hpct_nccl_state(channel)) == HPCT_DEVICE_BUSY && hpct_now_ms() < until_ms)
        usleep(LOOK_MICROSECONDS);
    hpct_enter_wait(before);
    if (result == HPCT_DEVICE_BUSY)
        return hpct_fail(HPCT_ERR_PEER,
                         "rank %d: %s: the other %d rank%s did not all come within %d s",
                         comm->base.rank, what, comm->base.size - 1,
                         comm->base.size == 2 ? "" : "s", comm->seconds);
    return hpct_nccl_check(comm, result, what);
}

hpct_status hpct_nccl_channel_open(nccl_channel **out, nccl_comm *comm, const unsigned char *id,
                                   int size, int rank)
{
    const char *what = "NCCL connecting the ranks";
    nccl_channel *channel = calloc(1, sizeof *channel);
    if (channel == NULL)
        return hpct_fail_memory(sizeof *channel);
    channel->comm = comm;
    hpct_status status =
        hpct_nccl_check(comm, comm->calls->init(&channel->nccl, size, id, rank), what);
    if (status == HPCT_OK)
        status = settle(channel, what);
    if (status != HPCT_OK) {
        if (channel->nccl != NULL)
            abort_one(comm, channel->nccl);
        free(channel);
        return status;
    }
    enlist(channel);
    *out = channel;
    return HPCT_OK;
}

hpct_status hpct_nccl_channel_split(nccl_channel **out, nccl_comm *comm, int color, int key)
{
    const char *what = "NCCL splitting the ranks";
    nccl_channel *channel = calloc(1, sizeof *channel);
    *out = NULL;
    if (channel == NULL)
        return hpct_fail_memory(sizeof *channel);
    channel->comm = comm;
    /* The child communicator exists once the parent's call has completed; the child may then be in
     * progress itself. */
    pthread_mutex_lock(comm->calling);
    hpct_device_result asked = comm->calls->split(comm->channel->nccl, color, key, &channel->nccl);
    pthread_mutex_unlock(comm->calling);
    hpct_status status = hpct_nccl_check(comm, asked, what);
    if (status == HPCT_OK)
        status = settle(comm->channel, what);
    if (status != HPCT_OK)
        /* not freed: a thread of NCCL may still write to the channel */
        return hpct_nccl_break(comm, status);
    if (channel->nccl != NULL)
        status = settle(channel, what);
    if (status != HPCT_OK || channel->nccl == NULL) {
        if (channel->nccl != NULL)
            abort_one(comm, channel->nccl);
        free(channel);
        return hpct_nccl_break(comm, status);
    }
    enlist(channel);
    *out = channel;
    return HPCT_OK;
}

void hpct_nccl_channel_close(nccl_channel *channel, bool abandon)
{
    if (channel == NULL)
        return;
    nccl_comm *comm = channel->comm;
    if (!strike(channel)) { /* hpct_comm_nccl_abort_all has taken it */
        free(channel);
        return;
    }
    if (!abandon) {
        pthread_mutex_lock(comm->calling);
        hpct_device_result asked = comm->calls->finalize(channel->nccl);
        pthread_mutex_unlock(comm->calling);
        hpct_status status = hpct_nccl_check(comm, asked, "NCCL leaving");
        abandon = status != HPCT_OK || settle(channel, "NCCL leaving") != HPCT_OK;
    }
    if (abandon)
        abort_one(comm, channel->nccl);
    else
        comm->calls->destroy(channel->nccl);
    free(channel);
}
