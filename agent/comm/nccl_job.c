/* Jobs in lanes: order of issue, and waits. */
#include "agent/comm/device.h"
#include "agent/comm/nccl_comm.h"
#include "base/progress.h"
#include "base/status.h"

#include <stdio.h>

#define LOOKS_PER_CHECK 64 /* polls of an event per check of the communicator */

hpct_status hpct_nccl_lane_open(nccl_lane *lane, const nccl_comm *comm)
{
    *lane = (nccl_lane){0};
    return hpct_nccl_check(comm, comm->calls->create_stream(&lane->stream), "a stream");
}

void hpct_nccl_lane_close(nccl_lane *lane, const nccl_comm *comm)
{
    if (lane->stream != NULL)
        comm->calls->destroy_stream(lane->stream);
    *lane = (nccl_lane){0};
}

hpct_status hpct_nccl_job_make(nccl_job *job, nccl_comm *comm, nccl_lane *lane, const char *what,
                               nccl_issue *issue, void *argument, int parts)
{
    *job = (nccl_job){.comm = comm,
                      .lane = lane,
                      .what = what,
                      .issue = issue,
                      .argument = argument,
                      .parts = parts,
                      .state = NCCL_IDLE};
    hpct_status status = hpct_nccl_check(comm, comm->calls->create_event(&job->ready), "an event");
    return status != HPCT_OK
               ? status
               : hpct_nccl_check(comm, comm->calls->create_event(&job->done), "an event");
}

void hpct_nccl_forget(nccl_job *job)
{
    nccl_job **at = job->lane != NULL ? &job->lane->first : NULL;
    while (at != NULL && *at != NULL && *at != job)
        at = &(*at)->next;
    if (at != NULL && *at == job)
        *at = job->next;
    job->next = NULL;
}

void hpct_nccl_job_free(nccl_job *job)
{
    if (job->ready != NULL)
        job->comm->calls->destroy_event(job->ready);
    if (job->done != NULL)
        job->comm->calls->destroy_event(job->done);
    *job = (nccl_job){0};
}

hpct_status hpct_nccl_break(nccl_comm *comm, hpct_status status)
{
    nccl_breach *breach = comm->breach;
    if (status != HPCT_OK && breach->status == HPCT_OK && !comm->calls->is_recording()) {
        snprintf(breach->words, sizeof breach->words, "%s", hpct_last_error());
        breach->status = status;
    }
    return status;
}

static hpct_status check(nccl_comm *comm, hpct_device_result result, const char *what)
{
    return hpct_nccl_break(comm, hpct_nccl_check(comm, result, what));
}

static hpct_status check_whole(const nccl_comm *comm)
{
    const nccl_breach *breach = comm->breach;
    return breach->status == HPCT_OK ? HPCT_OK : hpct_fail(breach->status, "%s", breach->words);
}

static hpct_status check_job(const nccl_job *job)
{
    return job->state != NCCL_FAILED ? HPCT_OK
                                     : hpct_fail(HPCT_ERR_INTERNAL, "rank %d: %s has failed",
                                                 job->comm->base.rank, job->what);
}

/* The job's remaining parts are dropped. NULL is allowed. */
static void fail_job(nccl_job *job)
{
    if (job == NULL)
        return;
    hpct_nccl_forget(job);
    job->state = NCCL_FAILED;
}

/* ---- the pump ---- */

/* NCCL must not enqueue work of several communicators into streams of one device concurrently,
 * which it does in its own threads for non-blocking calls. Sums are issued after queued messages: a
 * sum blocks in NCCL until all ranks reach it, and these may need a message first. */
static bool must_wait(const nccl_comm *comm, const nccl_lane *lane)
{
    const nccl_lane *lanes[] = {comm->lane, &comm->up.lane, &comm->down.lane};
    bool sums = lane == comm->lane;
    for (int i = 0; i < 3; i++) {
        if (lanes[i] != lane && (lanes[i]->busy != NULL || (sums && lanes[i]->first != NULL)))
            return true;
    }
    return false;
}

/* Issues the next part of the first job in the lane; *moved: there was one. */
static hpct_status step(nccl_comm *comm, nccl_lane *lane, bool *moved)
{
    const hpct_device_calls *calls = comm->calls;
    hpct_device_result result = HPCT_DEVICE_OK;
    nccl_job *job = lane->first;
    *moved = false;
    if (lane->busy != NULL) {
        result = hpct_nccl_state(lane->busy);
        if (result == HPCT_DEVICE_BUSY)
            return HPCT_OK;
        lane->busy = NULL;
        if (result != HPCT_DEVICE_OK) {
            const char *what = job != NULL ? job->what : "NCCL";
            fail_job(job);
            return check(comm, result, what);
        }
    }
    if (job == NULL || must_wait(comm, lane))
        return HPCT_OK;
    *moved = true;
    if (hpct_nccl_is_gone(job->comm->channel))
        result = HPCT_DEVICE_ABORTED;
    if (result == HPCT_DEVICE_OK && job->at == 0)
        result = calls->wait_event(lane->stream, job->ready);
    if (result == HPCT_DEVICE_OK && job->at < job->parts) {
        job->used = NULL;
        pthread_mutex_lock(job->comm->calling);
        result = job->issue(job->argument, job->at++, &job->used);
        pthread_mutex_unlock(job->comm->calling);
        if (result == HPCT_DEVICE_BUSY)
            lane->busy = job->used;
    } else if (result == HPCT_DEVICE_OK) {
        result = calls->record(job->done, lane->stream);
        lane->first = job->next;
        job->next = NULL;
        job->state = NCCL_ENQUEUED;
    }
    if (result != HPCT_DEVICE_OK && result != HPCT_DEVICE_BUSY)
        fail_job(job);
    return check(comm, result, job->what);
}

static hpct_status pump_lane(nccl_comm *comm, nccl_lane *lane)
{
    bool moved = lane->stream != NULL;
    while (moved)
        HPCT_TRY(step(comm, lane, &moved));
    return HPCT_OK;
}

hpct_status hpct_nccl_pump(nccl_comm *comm)
{
    HPCT_TRY(check_whole(comm));
    HPCT_TRY(pump_lane(comm, &comm->up.lane));
    HPCT_TRY(pump_lane(comm, &comm->down.lane));
    return pump_lane(comm, comm->lane);
}

/* ---- waiting ---- */

static hpct_status enqueue(nccl_job *job)
{
    hpct_waits before = hpct_enter_wait(HPCT_WAITS_FOR_RANKS);
    hpct_status status = HPCT_OK;
    for (int looks = 0; job->state == NCCL_QUEUED && status == HPCT_OK; looks++) {
        if (looks > 0)
            hpct_comm_nap(looks);
        status = hpct_nccl_pump(job->comm);
    }
    hpct_enter_wait(before);
    return status == HPCT_OK ? check_job(job) : status;
}

hpct_status hpct_nccl_queue(nccl_job *job)
{
    const hpct_device_calls *calls = job->comm->calls;
    nccl_job **last = &job->lane->first;
    HPCT_TRY(check_whole(job->comm));
    HPCT_TRY(check(job->comm, calls->record(job->ready, calls->compute_stream()), job->what));
    while (*last != NULL)
        last = &(*last)->next;
    *last = job;
    job->next = NULL;
    job->at = 0;
    job->state = NCCL_QUEUED;
    /* a recording must contain the job before any later work */
    return calls->is_recording() ? enqueue(job) : hpct_nccl_pump(job->comm);
}

hpct_status hpct_nccl_follow(nccl_job *job)
{
    const hpct_device_calls *calls = job->comm->calls;
    HPCT_TRY(enqueue(job));
    if (job->state == NCCL_ENQUEUED)
        HPCT_TRY(
            check(job->comm, calls->wait_event(calls->compute_stream(), job->done), job->what));
    job->state = NCCL_IDLE;
    return HPCT_OK;
}

hpct_status hpct_nccl_finish(nccl_job *job)
{
    hpct_waits before = hpct_enter_wait(HPCT_WAITS_FOR_RANKS);
    const hpct_device_calls *calls = job->comm->calls;
    hpct_status status = enqueue(job);
    for (int looks = 0; status == HPCT_OK && job->state == NCCL_ENQUEUED; looks++) {
        hpct_device_result result = calls->query(job->done);
        if (result == HPCT_DEVICE_OK)
            job->state = NCCL_IDLE;
        else if (result == HPCT_DEVICE_BUSY && looks % LOOKS_PER_CHECK == LOOKS_PER_CHECK - 1)
            result = hpct_nccl_state(job->used != NULL ? job->used : job->comm->channel);
        status = check(job->comm, result, job->what);
        if (status == HPCT_OK && job->state == NCCL_ENQUEUED) {
            hpct_comm_nap(looks);
            status = hpct_nccl_pump(job->comm);
        }
    }
    hpct_enter_wait(before);
    return status;
}

bool hpct_nccl_ended(const nccl_job *job)
{
    return job->state == NCCL_IDLE ||
           (job->state == NCCL_ENQUEUED && job->comm->calls->query(job->done) == HPCT_DEVICE_OK);
}

static bool is_settled(const nccl_lane *lane)
{
    return lane->first == NULL && lane->busy == NULL;
}

hpct_status hpct_nccl_settle(nccl_comm *comm)
{
    hpct_waits before = hpct_enter_wait(HPCT_WAITS_FOR_RANKS);
    hpct_status status = hpct_nccl_pump(comm);
    for (int looks = 0;
         status == HPCT_OK &&
         !(is_settled(comm->lane) && is_settled(&comm->up.lane) && is_settled(&comm->down.lane));
         looks++) {
        hpct_comm_nap(looks);
        status = hpct_nccl_pump(comm);
    }
    hpct_enter_wait(before);
    return status;
}

hpct_status hpct_nccl_rest(nccl_comm *comm)
{
    hpct_waits before = hpct_enter_wait(HPCT_WAITS_FOR_RANKS);
    const hpct_device_calls *calls = comm->calls;
    const nccl_job *once = &comm->once; /* only its event is used */
    hpct_status status = hpct_nccl_settle(comm);
    if (status == HPCT_OK)
        status = check(comm, calls->record(once->done, comm->lane->stream), "waiting for NCCL");
    hpct_device_result result = HPCT_DEVICE_BUSY;
    for (int looks = 0; status == HPCT_OK && result == HPCT_DEVICE_BUSY; looks++) {
        hpct_comm_nap(looks);
        result = calls->query(once->done);
        if (result == HPCT_DEVICE_BUSY && looks % LOOKS_PER_CHECK == LOOKS_PER_CHECK - 1)
            status = check(comm, hpct_nccl_state(comm->channel), "waiting for NCCL");
        if (status == HPCT_OK)
            status = check(comm, result, "waiting for NCCL");
    }
    hpct_enter_wait(before);
    return status;
}
