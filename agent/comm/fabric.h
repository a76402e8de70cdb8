/* agent/comm/fabric.h - which way sums of gradients and within a step go: by MPI, where it has a
 * fast fabric or shared memory to use, or over connections of our own (agent/comm/circulant.h,
 * mail.h), where it would use TCP itself and keep a core busy with looking for messages. */
#ifndef HPCT_COMM_FABRIC_H
#define HPCT_COMM_FABRIC_H

#include "agent/comm/comm.h"

/* Whether this node has an adapter for InfiniBand, Omni-Path, RoCE, EFA (/sys/class/infiniband) or
 * Slingshot (/sys/class/cxi). */
bool hpct_fabric_has_adapter(void);

/* HPC_TRAIN_SUMS: "mpi", "tcp", or "auto" (the default): *own where the ranks are on several nodes
 * and none of these has such an adapter. The same on all ranks, own if all say so; collective.
 * HPCT_ERR_CONFIG for another value. */
hpct_status hpct_fabric_choose(bool *own, hpct_comm *comm, int num_nodes);

/* Whether "tcp" was asked for: then between ranks of one node, too. */
bool hpct_fabric_tcp_everywhere(void);

#endif
