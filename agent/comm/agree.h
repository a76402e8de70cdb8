/* agent/comm/agree.h - agreement on one status by all ranks of a communicator. */
#ifndef HPCT_AGENT_COMM_AGREE_H
#define HPCT_AGENT_COMM_AGREE_H

#include "agent/comm/comm.h"

/* HPCT_OK if all ranks pass it; otherwise an error on all: a rank's own, or HPCT_ERR_PEER with the
 * number of other ranks that could not do `what`. Collective; acts as a barrier. */
hpct_status hpct_comm_agree(hpct_comm *comm, hpct_status status, const char *what);

#endif
