/* spank/ports_agree.h - how the nodes of a step come to the same block of ports: through srun, the
 * one place that all of them reach. Each tells it which blocks are free there; it names one that is
 * free on all, and when each has said that it holds it, that is it; otherwise another one.
 * Connections prove the step's key (agent/comm/session.h). Knows nothing of SPANK, and of ports
 * only their blocks' numbers. */
#ifndef HPCT_SPANK_PORTS_AGREE_H
#define HPCT_SPANK_PORTS_AGREE_H

#include <hpctrain/status.h>
#include <pthread.h>

#include "base/auth/key.h"

/* How long who has come waits for those who have not: the prolog of a node may take its time. */
#define HPCT_PORTS_SECONDS 300

/* How often each block that is free on all nodes is tried, while one of them cannot hold it. */
#define HPCT_PORTS_ROUNDS 16

typedef struct hpct_ports_host hpct_ports_host;

/* srun: listens at a port from `low` to `high` (0, 0: any), which *port then is, and serves in a
 * thread, which ends with the agreement. HPCT_ERR_CONFIG when none is free. */
hpct_status hpct_ports_serve(hpct_ports_host **out, const hpct_key *key, int low, int high,
                             int seconds, int *port);
void hpct_ports_serve_end(hpct_ports_host *host); /* allows NULL */

/* What else listens in srun needs these, too: a socket at a free port of those, and a thread that
 * gets none of srun's signals (an error number). */
hpct_status hpct_ports_listen(int low, int high, int *fd, int *port);
int hpct_ports_thread(pthread_t *thread, void *(*work)(void *context), void *context);

/* A node. */
typedef struct hpct_ports_ask {
    const char *address; /* where srun is, "host:port" */
    const hpct_key *key;
    int node, num_nodes;
    const char *const *names; /* [num_nodes] */
    uint64_t free;            /* a bit for each block that is free here */
    int seconds;              /* for an srun that does not say anything: more than it has itself */
    /* Whether the block, which was free, now is this node's alone; the one before it no more. */
    bool (*hold)(void *context, int choice);
    void *context;
} hpct_ports_ask;

/* *choice becomes the block of all. HPCT_ERR_CONFIG when there is none, HPCT_ERR_PEER when srun or
 * a node has not come or is gone. Of the nodes that fail together one `speaks`, in the first case
 * that on which most blocks are taken. */
hpct_status hpct_ports_agree(const hpct_ports_ask *ask, int *choice, bool *speaks);

#endif
