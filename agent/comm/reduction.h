/* agent/comm/reduction.h - prepared reductions (hpct_comm_ops) of communicators over the hosts'
 * memory: in which phases they go, and who adds up what in which order. Their messages are letters
 * (agent/comm/mail.h) where there is such a connection, and otherwise the communicator's own. */
#ifndef HPCT_COMM_REDUCTION_H
#define HPCT_COMM_REDUCTION_H

#include "agent/comm/comm.h"
#include "agent/comm/grid.h"
#include "agent/comm/mail.h"

typedef struct hpct_host_comm hpct_host_comm;

/* One end of a message that is no letter, prepared once as a request and sent many times. */
typedef struct hpct_host_message {
    bool receives;
    int peer, tag;
    float *data;
    size_t floats;
} hpct_host_message;

/* What a communicator does for its reductions. */
typedef struct hpct_carrier {
    /* Before a reduction is planned; `grid` NULL: this rank has failed, and all fail. Collective.
     * NULL: there is nothing to do. */
    hpct_status (*open_mail)(hpct_host_comm *host, const hpct_grid *grid);
    /* Lets letters move, and whatever else is under way; with `sleep` once something can move, or
     * after a millisecond. */
    hpct_status (*move)(hpct_host_comm *host, bool sleep);
    /* Of requests[num], of so many bytes each; 0 where all messages are letters. */
    size_t request_bytes;
    hpct_status (*prepare)(hpct_host_comm *host, void *request, const hpct_host_message *message);
    hpct_status (*start)(void *requests, int num);
    hpct_status (*test)(void *requests, int num, int *through);
    void (*free)(void *requests, int num);
} hpct_carrier;

/* The part that the struct of such a communicator begins with. */
struct hpct_host_comm {
    hpct_comm base;
    const hpct_carrier *carrier;
    hpct_mail *mail;           /* NULL: none is used, or was needed so far */
    bool without_mail;         /* and none will be */
    int tag;                   /* the next free one of reductions */
    hpct_reduction *under_way; /* a list */
};

/* The table's functions. */
hpct_status hpct_reduction_prepare(hpct_comm *comm, hpct_reduction **out,
                                   const hpct_reduction_options *options);
hpct_status hpct_reduction_start(hpct_reduction *reduction);
hpct_status hpct_reduction_progress(hpct_comm *comm);
bool hpct_reduction_is_done(const hpct_reduction *reduction);
hpct_status hpct_reduction_wait(hpct_reduction *reduction);
void hpct_reduction_release(hpct_reduction *reduction);

#endif
