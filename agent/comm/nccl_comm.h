/* agent/comm/nccl_comm.h - what the files of the communicator over NCCL share.
 *
 * NCCL takes calls on a communicator only while none before is in progress (each goes through a
 * thread of NCCL's, and a first one connects the ranks there), and an event recorded earlier would
 * lie before the work. So jobs queue up in a lane, in the program's order, which is the same on all
 * ranks; a pump issues the next one as soon as the one before lies in the lane's stream. It is
 * looked after whenever this transport is called. Communicators made by split share their parent's
 * lane: two of them never wait for one another crosswise. */
#ifndef HPCT_COMM_NCCL_COMM_H
#define HPCT_COMM_NCCL_COMM_H

#include "agent/comm/grid.h"
#include "agent/comm/nccl.h"

#include <pthread.h>
#include <stdint.h>

typedef struct nccl_comm nccl_comm;
typedef struct nccl_channel nccl_channel;
typedef struct nccl_job nccl_job;

typedef struct nccl_lane {
    void *stream;
    nccl_channel *busy; /* whose last call is in progress; NULL: none */
    nccl_job *first;
} nccl_lane;

/* One NCCL communicator. */
struct nccl_channel {
    nccl_comm *comm;
    void *nccl;
    nccl_channel *next; /* of all of this process */
    int64_t failed_ms;  /* when NCCL first told of a failure; 0: it has not */
    bool gone;          /* aborted with all others: NCCL may have released it */
};

/* Issues one part of a job: work for the lane's stream, and in the end calls on one communicator at
 * most, *used then. */
typedef hpct_device_result nccl_issue(void *argument, int part, nccl_channel **used);

struct nccl_job {
    nccl_comm *comm;
    nccl_lane *lane;
    const char *what; /* for messages */
    nccl_issue *issue;
    void *argument;
    int parts;
    void *ready;        /* event on the compute stream, when it was queued */
    void *done;         /* event on the lane's stream, behind all parts */
    int at;             /* the part to be issued next */
    nccl_channel *used; /* by the part before, or NULL */
    enum { NCCL_IDLE, NCCL_QUEUED, NCCL_ENQUEUED, NCCL_FAILED } state;
    nccl_job *next;
};

/* Communicators for reductions in groups, made when they are first wanted. */
typedef struct nccl_groups {
    int *of; /* [size] as prepare was given; NULL: none made */
    hpct_grid grid;
    nccl_channel *members, *column; /* column: NULL for who owns nothing */
} nccl_groups;

/* Streams in one direction, to higher or to lower ranks: messages in one never wait for those in
 * the other. */
typedef struct nccl_direction {
    nccl_channel *channel; /* NULL until a stream is opened */
    nccl_lane lane;
} nccl_direction;

/* What failed first, but in a recording: the others wait for this rank in the midst of it, which
 * must not take part then in what they have not come to. HPCT_OK: nothing has. */
typedef struct nccl_breach {
    hpct_status status;
    char words[512];
} nccl_breach;

struct nccl_comm {
    hpct_comm base;
    const hpct_device_calls *calls;
    int seconds, grace_seconds;
    hpct_status (*meet)(void *argument); /* hpct_nccl_options */
    void *argument;
    hpct_comm *under;
    nccl_channel *channel;
    nccl_lane *lane; /* own_lane, or that of the one it was split from */
    nccl_lane own_lane;
    nccl_direction up, down;
    nccl_groups groups;
    /* Around calls on its communicators, and on those split from them, but aborting: NCCL's are for
     * one thread at a time, and the watch looks at them, too (when nobody is there). */
    pthread_mutex_t *calling, own_calling;
    nccl_job once;                   /* of operations that are not prepared */
    struct nccl_once *ask;           /* which one */
    char *stage, *host_stage;        /* [HPCT_NCCL_STAGE_BYTES], device and pinned */
    nccl_breach *breach, own_breach; /* that of the one it was split from, as its lane */
};

#define HPCT_NCCL_STAGE_BYTES ((size_t) 4 << 20)

/* HPCT_OK, also for BUSY, or an error with the library's words; a peer that may be lost is waited
 * for, that the watch may name it. */
hpct_status hpct_nccl_check(const nccl_comm *comm, hpct_device_result result, const char *what);

/* The status, which breaks comm and all that it shares its lane with, unless it is HPCT_OK. */
hpct_status hpct_nccl_break(nccl_comm *comm, hpct_status status);

/* What NCCL says of a communicator now; it is not asked of one that is gone. */
hpct_device_result hpct_nccl_state(nccl_channel *channel);
bool hpct_nccl_is_gone(const nccl_channel *channel);

/* Between two looks. */
void hpct_nccl_nap(int looks);

/* ---- nccl_channel.c ---- */

/* Of `size` ranks with rank 0's id: collective, and within comm->seconds. */
hpct_status hpct_nccl_channel_open(nccl_channel **out, nccl_comm *comm, const unsigned char *id,
                                   int size, int rank);
/* The same by a split of comm's own, which has nothing queued. color < 0: *out is NULL. */
hpct_status hpct_nccl_channel_split(nccl_channel **out, nccl_comm *comm, int color, int key);
/* In order, and collective, or (abandon) at once; allows NULL. */
void hpct_nccl_channel_close(nccl_channel *channel, bool abandon);

/* ---- nccl_job.c ---- */

hpct_status hpct_nccl_lane_open(nccl_lane *lane, const nccl_comm *comm);
void hpct_nccl_lane_close(nccl_lane *lane, const nccl_comm *comm); /* allows a zeroed one */

hpct_status hpct_nccl_job_make(nccl_job *job, nccl_comm *comm, nccl_lane *lane, const char *what,
                               nccl_issue *issue, void *argument, int parts);
void hpct_nccl_forget(nccl_job *job);   /* out of its lane, if it is queued there still */
void hpct_nccl_job_free(nccl_job *job); /* ended, or the group is broken; allows a zeroed one */

/* Behind all that the compute stream holds now. */
hpct_status hpct_nccl_queue(nccl_job *job);
/* Issues what can be issued now; does not wait. */
hpct_status hpct_nccl_pump(nccl_comm *comm);
/* Until it lies in its stream; from here on the compute stream waits for its end. */
hpct_status hpct_nccl_follow(nccl_job *job);
/* The host waits for its end. */
hpct_status hpct_nccl_finish(nccl_job *job);
bool hpct_nccl_ended(const nccl_job *job);
/* Until nothing is queued in comm's lanes. */
hpct_status hpct_nccl_settle(nccl_comm *comm);
/* Until all of its own lane has ended: NCCL splits who has nothing to do. Not in a recording. */
hpct_status hpct_nccl_rest(nccl_comm *comm);

/* ---- the table's functions ---- */

hpct_status hpct_nccl_prepare(hpct_comm *comm, hpct_reduction **out,
                              const hpct_reduction_options *options);
hpct_status hpct_nccl_start(hpct_reduction *reduction);
hpct_status hpct_nccl_progress(hpct_comm *comm);
bool hpct_nccl_is_done(const hpct_reduction *reduction);
hpct_status hpct_nccl_wait(hpct_reduction *reduction);
void hpct_nccl_release(hpct_reduction *reduction);
void hpct_nccl_groups_close(nccl_groups *groups, bool abandon);

hpct_status hpct_nccl_open_stream(hpct_comm *comm, hpct_stream **out,
                                  const hpct_stream_options *options);
hpct_status hpct_nccl_next(hpct_stream *stream, float **data);
hpct_status hpct_nccl_pass(hpct_stream *stream, size_t count);
hpct_status hpct_nccl_push(hpct_stream *stream);
hpct_status hpct_nccl_drain(hpct_stream *stream);
void hpct_nccl_close_stream(hpct_stream *stream);

#endif
