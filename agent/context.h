/* agent/context.h - what the trainer knows of a context beyond the public header. */
#ifndef HPCT_CONTEXT_INTERNAL_H
#define HPCT_CONTEXT_INTERNAL_H

#include "agent/cluster/config.h"
#include "agent/comm/comm.h"
#include "agent/comm/network.h"

#include <hpctrain/context.h>
#include <stdbool.h>

hpct_comm *hpct_context_comm(hpct_context *context);
const hpct_config *hpct_context_config(const hpct_context *context);

/* What the connections of a context with more than one task prove (base/auth/proof.h). */
const hpct_auth *hpct_context_auth(const hpct_context *context);
const char *hpct_context_node(const hpct_context *context); /* this rank's node */

/* HPC_TRAIN_JOIN_SECONDS: how long to wait for others. */
hpct_status hpct_context_join_seconds(int *seconds);

bool hpct_context_is_apart(const hpct_context *context);
bool hpct_context_serves(const hpct_context *context); /* apart: a parameter server */

/* The network between the ranks, measured by the first call: collective, and the same on all. */
hpct_status hpct_context_network(hpct_context *context, hpct_network *network);

/* Of who speaks over `comm`, which closes with it, in a process that another context has joined to
 * the others: without a watch. */
hpct_status hpct_context_open_over(hpct_context **out, hpct_comm *comm, const char *node);

/* Whether all ranks have this failure from hpct_context_agree, and can go on together after it. */
bool hpct_context_all_know(const hpct_context *context, hpct_status status);

/* The context of a process that stands alone, whatever its environment says; for tests. */
hpct_status hpct_context_open_alone(hpct_context **out);

#endif
