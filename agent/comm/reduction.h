/* agent/comm/reduction.h - persistent reductions (hpct_comm_ops) in host memory: phases and order
 * of summation. Messages are letters (agent/comm/mail.h) on our own connections, otherwise the
 * communicator's. */
#ifndef HPCT_AGENT_COMM_REDUCTION_H
#define HPCT_AGENT_COMM_REDUCTION_H

#include "agent/comm/comm.h"
#include "agent/comm/grid.h"
#include "agent/comm/mail.h"

typedef struct hpct_comm_host_comm hpct_comm_host_comm;

/* One end of a message that is not a letter: a persistent request. */
typedef struct hpct_comm_host_message {
    bool receives;
    int peer, tag;
    float *data;
    size_t floats;
} hpct_comm_host_message;

/* What a communicator provides for its reductions. */
typedef struct hpct_comm_carrier {
    /* Called before a reduction is prepared; `grid` NULL: this rank has failed, and all fail.
     * Collective. NULL: nothing to do. */
    hpct_status (*open_mail)(hpct_comm_host_comm *host, const hpct_comm_grid *grid);
    /* Progresses letters and everything in flight; with `sleep` waits for progress, at most a
     * millisecond. */
    hpct_status (*move)(hpct_comm_host_comm *host, bool sleep);
    /* Size of one of requests[num]; 0 if all messages are letters. */
    size_t request_bytes;
    hpct_status (*prepare)(hpct_comm_host_comm *host, void *request,
                           const hpct_comm_host_message *message);
    hpct_status (*start)(void *requests, int num);
    hpct_status (*test)(void *requests, int num, int *through);
    void (*free)(void *requests, int num);
} hpct_comm_carrier;

/* First member of such a communicator's struct. */
struct hpct_comm_host_comm {
    hpct_comm base;
    const hpct_comm_carrier *carrier;
    hpct_comm_mail *mail;           /* NULL: not used, or not opened yet */
    bool without_mail;              /* it will not be opened */
    int tag;                        /* next free tag of reductions */
    hpct_comm_reduction *under_way; /* list of those in flight */
};

/* The table's functions. */
hpct_status hpct_comm_reduction_prepare(hpct_comm *comm, hpct_comm_reduction **out,
                                        const hpct_comm_reduction_options *options);
hpct_status hpct_comm_reduction_start(hpct_comm_reduction *reduction);
hpct_status hpct_comm_reduction_progress(hpct_comm *comm);
bool hpct_comm_reduction_is_done(const hpct_comm_reduction *reduction);
hpct_status hpct_comm_reduction_wait(hpct_comm_reduction *reduction);
void hpct_comm_reduction_release(hpct_comm_reduction *reduction);

#endif
