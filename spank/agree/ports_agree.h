/* spank/agree/ports_agree.h - agreement of the nodes of a step on one block of ports and on a
 * network (spank/agree/network.h), through srun, which all of them can reach. Each node reports its
 * free blocks; srun proposes one that is free on all; when every node has confirmed that it holds
 * it, it is chosen, else another is proposed.
 * Connections are authenticated by the step's key (base/net/session.h). Independent of SPANK; of
 * ports it knows only block numbers. */
#ifndef HPCT_SPANK_AGREE_PORTS_AGREE_H
#define HPCT_SPANK_AGREE_PORTS_AGREE_H

#include <hpctrain/status.h>

#include "base/auth/key.h"
#include "spank/agree/network.h"

/* Attempts per block that is free on all nodes, while one of them fails to hold it. */
#define HPCT_AGREE_PORTS_ROUNDS 16

typedef struct hpct_agree_ports_host hpct_agree_ports_host;

/* After so many seconds srun names the nodes that it waits for; in half the time limit, if that is
 * less. */
#define HPCT_AGREE_PORTS_NOTICE 30

/* Nodes that have not reported. */
typedef struct hpct_agree_ports_late {
    uint32_t first, count; /* its number in the step, and how many there are */
    int waited, left;      /* seconds; left 0: time is over, the others have been told */
} hpct_agree_ports_late;

typedef struct hpct_agree_ports_serving {
    const hpct_auth_key *key;
    int low, high; /* range of the port; 0, 0: any */
    /* Nodes of the step; 0: not known. If they are, time also runs while none has reported, twice
     * as long: then Slurm itself would have given up, had it not started the tasks. */
    uint32_t nodes;
    int seconds; /* timeout for late nodes, e.g. with a long prolog */
    hpct_spec_network network;
    /* Called in srun's thread, once as a notice and once when time is over. NULL: neither. */
    void (*late)(void *context, const hpct_agree_ports_late *late);
    void *context;
} hpct_agree_ports_serving;

typedef enum hpct_agree_ports_outcome {
    HPCT_AGREE_PORTS_PENDING, /* a node has not reported */
    HPCT_AGREE_PORTS_DONE,    /* all have, and have been answered */
    HPCT_AGREE_PORTS_LATE,    /* one has not in time */
} hpct_agree_ports_outcome;

/* srun: listens on a port, returned in *port, and serves in a thread that ends with the agreement.
 * Returns HPCT_ERR_CONFIG if no port is free. */
hpct_status hpct_agree_ports_serve(hpct_agree_ports_host **out,
                                   const hpct_agree_ports_serving *serving, int *port);
hpct_agree_ports_outcome hpct_agree_ports_serve_end(hpct_agree_ports_host *host);

/* For other listeners in srun: a socket on a free port of the range. */
hpct_status hpct_agree_ports_listen(int low, int high, int *fd, int *port);

/* A node's side. */
typedef struct hpct_agree_ports_ask {
    const char *address; /* address of srun, "host:port" */
    const hpct_auth_key *key;
    int node, num_nodes;
    const char *const *names; /* [num_nodes] */
    uint64_t free;            /* bitmap of blocks that are free here */
    int seconds;              /* timeout for a silent srun: longer than srun's own */
    /* Tries to hold the block and releases the previous one. Returns whether this node holds it. */
    bool (*hold)(void *context, int choice);
    void *context;
    hpct_agree_network *network; /* zeroed; receives the network */
} hpct_agree_ports_ask;

/* *choice is the block that all nodes hold. Returns HPCT_ERR_CONFIG if none is left, or a node
 * lacks the network that was named, HPCT_ERR_PEER if srun or a node is missing or gone. *speaks is
 * true on one of the nodes that fail together: if no block is left, on the one with most blocks in
 * use. */
hpct_status hpct_agree_ports(const hpct_agree_ports_ask *ask, int *choice, bool *speaks);

#endif
