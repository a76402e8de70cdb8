/* agent/comm/nccl_comm.h - shared by the files of the NCCL communicator.
 *
 * NCCL accepts calls on a communicator only while none is in progress (each runs in a thread of
 * NCCL, and the first one connects the ranks), and an event recorded before it completes would
 * precede the work in the stream. So jobs are queued in a lane, in program order, which is equal on
 * all ranks; hpct_nccl_pump issues the next one once the previous one has been enqueued in the
 * lane's CUDA stream. Every call of this transport pumps. Communicators made by split share their
 * parent's lane, so that two of them cannot deadlock. */
#ifndef HPCT_AGENT_COMM_NCCL_COMM_H
#define HPCT_AGENT_COMM_NCCL_COMM_H

#include "agent/comm/grid.h"
#include "agent/comm/nccl.h"

#include <pthread.h>
#include <stdint.h>

typedef struct nccl_comm nccl_comm;
typedef struct nccl_channel nccl_channel;
typedef struct nccl_job nccl_job;

typedef struct nccl_lane {
    void *stream;
    nccl_channel *busy; /* channel with a call in progress; NULL: none */
    nccl_job *first;
} nccl_lane;

/* One NCCL communicator. */
struct nccl_channel {
    nccl_comm *comm;
    void *nccl;
    nccl_channel *next; /* list of all channels of this process */
    int64_t failed_ms;  /* time of NCCL's first error; 0: none */
    bool gone;          /* aborted with all others; NCCL may have freed it */
};

/* Issues one part of a job: work for the lane's stream, and last of all calls on at most one
 * communicator, returned in *used. */
typedef hpct_device_result nccl_issue(void *argument, int part, nccl_channel **used);

struct nccl_job {
    nccl_comm *comm;
    nccl_lane *lane;
    const char *what; /* for messages */
    nccl_issue *issue;
    void *argument;
    int parts;
    void *ready;        /* event on the compute stream, recorded when the job was queued */
    void *done;         /* event on the lane's stream after all parts */
    int at;             /* next part to issue */
    nccl_channel *used; /* channel of the previous part, or NULL */
    enum { NCCL_IDLE, NCCL_QUEUED, NCCL_ENQUEUED, NCCL_FAILED } state;
    nccl_job *next;
};

/* Communicators for grouped reductions, created on first use. */
typedef struct nccl_groups {
    int *of; /* [size] groups passed to prepare; NULL: not created */
    hpct_comm_grid grid;
    nccl_channel *members, *column; /* column: NULL if this rank owns no slice */
} nccl_groups;

/* Streams to higher or to lower ranks: messages of one direction never wait for those of the
 * other. */
typedef struct nccl_direction {
    nccl_channel *channel; /* NULL until a stream is opened */
    nccl_lane lane;
} nccl_direction;

/* The first error outside of recordings. The other ranks wait for this rank within the failed
 * operation, so it must not take part in later ones. HPCT_OK: none. */
typedef struct nccl_breach {
    hpct_status status;
    char words[512];
} nccl_breach;

struct nccl_comm {
    hpct_comm base;
    const hpct_device_calls *calls;
    int seconds, grace_seconds;
    hpct_status (*meet)(void *argument); /* of hpct_nccl_options */
    void *argument;
    hpct_comm *under;
    nccl_channel *channel;
    nccl_lane *lane; /* own_lane, or the lane of the communicator it was split from */
    nccl_lane own_lane;
    nccl_direction up, down;
    nccl_groups groups;
    /* Held during calls on its communicators and on those split from them, except abort: NCCL
     * allows one thread at a time, and the watch's thread checks them (if the mutex is free). */
    pthread_mutex_t *calling, own_calling;
    nccl_job once;                   /* for operations that are not prepared */
    struct nccl_once *ask;           /* its arguments */
    char *stage, *host_stage;        /* [HPCT_NCCL_STAGE_BYTES], device and pinned */
    nccl_breach *breach, own_breach; /* shared like the lane */
};

#define HPCT_NCCL_STAGE_BYTES ((size_t) 4 << 20)

/* HPCT_OK, also for BUSY, or an error with NCCL's message. If a peer may be lost, waits
 * grace_seconds, so that the watch names the rank first. */
hpct_status hpct_nccl_check(const nccl_comm *comm, hpct_device_result result, const char *what);

/* Returns the status; unless HPCT_OK, records it as the error of comm and of all communicators that
 * share its lane. */
hpct_status hpct_nccl_break(nccl_comm *comm, hpct_status status);

/* State of a communicator from NCCL; not queried for an aborted one. */
hpct_device_result hpct_nccl_state(nccl_channel *channel);
bool hpct_nccl_is_gone(const nccl_channel *channel);

/* ---- nccl_channel.c ---- */

/* Creates a communicator of `size` ranks with rank 0's id: collective, within comm->seconds. */
hpct_status hpct_nccl_channel_open(nccl_channel **out, nccl_comm *comm, const unsigned char *id,
                                   int size, int rank);
/* The same by splitting comm's channel, which must have nothing queued. color < 0: *out is NULL. */
hpct_status hpct_nccl_channel_split(nccl_channel **out, nccl_comm *comm, int color, int key);
/* In order and collective, or (abandon) by aborting; NULL is allowed. */
void hpct_nccl_channel_close(nccl_channel *channel, bool abandon);

/* ---- nccl_job.c ---- */

hpct_status hpct_nccl_lane_open(nccl_lane *lane, const nccl_comm *comm);
void hpct_nccl_lane_close(nccl_lane *lane, const nccl_comm *comm); /* may be zeroed */

hpct_status hpct_nccl_job_make(nccl_job *job, nccl_comm *comm, nccl_lane *lane, const char *what,
                               nccl_issue *issue, void *argument, int parts);
void hpct_nccl_forget(nccl_job *job);   /* removes it from its lane's queue */
void hpct_nccl_job_free(nccl_job *job); /* completed, or the group failed; may be zeroed */

/* Queues the job after the compute stream's current work. */
hpct_status hpct_nccl_queue(nccl_job *job);
/* Issues as many jobs as possible without waiting. */
hpct_status hpct_nccl_pump(nccl_comm *comm);
/* Waits until the job is enqueued in its stream; makes the compute stream wait for its end. */
hpct_status hpct_nccl_follow(nccl_job *job);
/* Makes the host wait for its end. */
hpct_status hpct_nccl_finish(nccl_job *job);
bool hpct_nccl_ended(const nccl_job *job);
/* Waits until nothing is queued in comm's lanes. */
hpct_status hpct_nccl_settle(nccl_comm *comm);
/* Waits until all work of its lane has completed: NCCL splits only idle communicators. Not in a
 * recording. */
hpct_status hpct_nccl_rest(nccl_comm *comm);

/* ---- the table's functions ---- */

hpct_status hpct_nccl_prepare(hpct_comm *comm, hpct_comm_reduction **out,
                              const hpct_comm_reduction_options *options);
hpct_status hpct_nccl_start(hpct_comm_reduction *reduction);
hpct_status hpct_nccl_progress(hpct_comm *comm);
bool hpct_nccl_is_done(const hpct_comm_reduction *reduction);
hpct_status hpct_nccl_wait(hpct_comm_reduction *reduction);
void hpct_nccl_release(hpct_comm_reduction *reduction);
void hpct_nccl_groups_close(nccl_groups *groups, bool abandon);

hpct_status hpct_nccl_open_stream(hpct_comm *comm, hpct_comm_stream **out,
                                  const hpct_comm_stream_options *options);
hpct_status hpct_nccl_next(hpct_comm_stream *stream, float **data);
hpct_status hpct_nccl_pass(hpct_comm_stream *stream, size_t count);
hpct_status hpct_nccl_push(hpct_comm_stream *stream);
hpct_status hpct_nccl_drain(hpct_comm_stream *stream);
void hpct_nccl_close_stream(hpct_comm_stream *stream);

#endif
