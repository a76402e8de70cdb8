/* agent/rank/context_state.h - state of a context, for those that open it (context.c) and connect
 * it to the other ranks (context_join.c). */
#ifndef HPCT_AGENT_RANK_CONTEXT_STATE_H
#define HPCT_AGENT_RANK_CONTEXT_STATE_H

#include "agent/comm/watch.h"
#include "agent/rank/context.h"
#include "base/net/frame.h"

struct hpct_context {
    hpct_cluster_config *config;
    hpct_comm *comm;
    hpct_comm_watch *watch; /* NULL for one rank */
    hpct_auth_key *key;     /* NULL for one rank, and until it is read */
    hpct_auth auth;         /* with that key */
    int standstill_seconds;
    char node[HPCT_NET_FRAME_NODE];
    bool apart;         /* not connected to other tasks (parameter-server) */
    int workers;        /* apart: number of training ranks */
    bool leads;         /* apart: this is parameter server 0 */
    hpct_status agreed; /* the last error that all ranks know of */
    hpct_comm_network network;
    bool measured;       /* `network` is set */
    char connected[160]; /* how the ranks are connected, if not by MPI; or "" */
};

/* Connects a context to all other ranks, on a device; wish: "mpi", "tcp" or "auto". Collective. */
hpct_status hpct_context_join(hpct_context *context, const char *device, const char *wish);

/* Sets the authentication of this run's connections by context->key. */
void hpct_context_set_auth(hpct_context *context);

#endif
