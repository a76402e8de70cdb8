/* agent/comm/fabric.h - transport of sums: MPI if it has a fast fabric or shared memory, else our
 * own TCP connections (agent/comm/circulant.h, mail.h), where MPI would use TCP itself and spin. */
#ifndef HPCT_AGENT_COMM_FABRIC_H
#define HPCT_AGENT_COMM_FABRIC_H

#include "agent/comm/comm.h"

/* Whether this node has an adapter for InfiniBand, Omni-Path, RoCE, EFA (/sys/class/infiniband) or
 * Slingshot (/sys/class/cxi). */
bool hpct_comm_fabric_has_adapter(void);

/* HPC_TRAIN_SUMS: "mpi", "tcp", or "auto" (default): *own if ranks are on several nodes and none
 * has such an adapter. Equal on all ranks; collective. Returns HPCT_ERR_CONFIG for another value.
 */
hpct_status hpct_comm_fabric_choose(bool *own, hpct_comm *comm, int num_nodes);

/* Whether "tcp" was given: also used within a node. */
bool hpct_comm_fabric_tcp_everywhere(void);

#endif
