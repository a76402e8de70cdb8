/* spank/agree/ports_agree.h - agreement of the nodes of a step on one block of ports, through srun,
 * which all of them can reach. Each node reports its free blocks; srun proposes one that is free on
 * all; when every node has confirmed that it holds it, it is chosen, else another is proposed.
 * Connections are authenticated by the step's key (base/net/session.h). Independent of SPANK; of
 * ports it knows only block numbers. */
#ifndef HPCT_SPANK_AGREE_PORTS_AGREE_H
#define HPCT_SPANK_AGREE_PORTS_AGREE_H

#include <hpctrain/status.h>
#include <pthread.h>

#include "base/auth/key.h"

/* Timeout for late nodes, e.g. with a long prolog. */
#define HPCT_PORTS_SECONDS 300

/* Attempts per block that is free on all nodes, while one of them fails to hold it. */
#define HPCT_PORTS_ROUNDS 16

typedef struct hpct_ports_host hpct_ports_host;

/* srun: listens on a port from `low` to `high` (0, 0: any), returned in *port, and serves in a
 * thread that ends with the agreement. Returns HPCT_ERR_CONFIG if no port is free. */
hpct_status hpct_ports_serve(hpct_ports_host **out, const hpct_key *key, int low, int high,
                             int seconds, int *port);
void hpct_ports_serve_end(hpct_ports_host *host); /* NULL is allowed */

/* Helpers for other listeners in srun: a socket on a free port of the range; a thread without
 * srun's signals (returns an error number). */
hpct_status hpct_ports_listen(int low, int high, int *fd, int *port);
int hpct_ports_thread(pthread_t *thread, void *(*work)(void *context), void *context);

/* A node's side. */
typedef struct hpct_ports_ask {
    const char *address; /* address of srun, "host:port" */
    const hpct_key *key;
    int node, num_nodes;
    const char *const *names; /* [num_nodes] */
    uint64_t free;            /* bitmap of blocks that are free here */
    int seconds;              /* timeout for a silent srun: longer than srun's own */
    /* Tries to hold the block and releases the previous one. Returns whether this node holds it. */
    bool (*hold)(void *context, int choice);
    void *context;
} hpct_ports_ask;

/* *choice is the block that all nodes hold. Returns HPCT_ERR_CONFIG if none is left, HPCT_ERR_PEER
 * if srun or a node is missing or gone. *speaks is true on one of the nodes that fail together: if
 * no block is left, on the one with most blocks in use. */
hpct_status hpct_ports_agree(const hpct_ports_ask *ask, int *choice, bool *speaks);

#endif
