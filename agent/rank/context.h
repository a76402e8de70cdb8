/* agent/rank/context.h - internals of a context. */
#ifndef HPCT_AGENT_RANK_CONTEXT_H
#define HPCT_AGENT_RANK_CONTEXT_H

#include "agent/comm/comm.h"
#include "agent/comm/network.h"
#include "base/cluster/config.h"

#include <hpctrain/context.h>
#include <stdbool.h>

hpct_comm *hpct_context_comm(hpct_context *context);
const hpct_cluster_config *hpct_context_config(const hpct_context *context);

/* Authentication of the connections of a context with more than one task (base/auth/proof.h). */
const hpct_auth *hpct_context_auth(const hpct_context *context);
const char *hpct_context_node(const hpct_context *context); /* this rank's node */

/* Connection timeout: HPC_TRAIN_JOIN_SECONDS. */
hpct_status hpct_context_join_seconds(int *seconds);

bool hpct_context_is_apart(const hpct_context *context);
bool hpct_context_serves(
    const hpct_context *context); /* parameter-server context: whether this is a server */

/* The network between the ranks, measured in the first call: collective, equal on all. */
hpct_status hpct_context_network(hpct_context *context, hpct_comm_network *network);

/* A context on `comm`, which it closes, in a process that another context has connected: without
 * heartbeats. */
hpct_status hpct_context_open_over(hpct_context **out, hpct_comm *comm, const char *node);

/* Memory for so many bytes, zeros, that the caller frees; NULL if a rank has none, and *status is
 * then the error. Collective. */
void *hpct_context_allocate(hpct_context *context, size_t bytes, hpct_status *status);

/* Whether all ranks have this error from hpct_context_agree and can continue together. */
bool hpct_context_all_know(const hpct_context *context, hpct_status status);

/* The context of a single process, independent of its environment; for tests. */
hpct_status hpct_context_open_alone(hpct_context **out);

#endif
