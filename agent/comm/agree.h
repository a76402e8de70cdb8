/* agent/comm/agree.h - one answer on all ranks of a communicator. */
#ifndef HPCT_COMM_AGREE_H
#define HPCT_COMM_AGREE_H

#include "agent/comm/comm.h"

/* HPCT_OK if all ranks bring it; else a failure on all: a rank's own, or HPCT_ERR_PEER saying that
 * so many others "could not" do what `what` says. Collective; nobody goes on before all have come.
 */
hpct_status hpct_comm_agree(hpct_comm *comm, hpct_status status, const char *what);

#endif
