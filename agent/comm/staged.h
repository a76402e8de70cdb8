/* agent/comm/staged.h - communicator for device memory on top of one for host memory (MPI without
 * NCCL): device data goes through pinned host memory. */
#ifndef HPCT_AGENT_COMM_STAGED_H
#define HPCT_AGENT_COMM_STAGED_H

#include "agent/comm/comm.h"
#include "base/device_calls.h"

/* Takes ownership of `under`, closed with *out; not on error. Host data is passed to `under`
 * unchanged. Reductions are ordered after the compute stream's work at their start, and the compute
 * stream waits for them in hpct_comm_ops.wait; messages and other operations make the host wait for
 * the compute stream. */
hpct_status hpct_comm_staged_open(hpct_comm **out, hpct_comm *under,
                                  const hpct_device_calls *calls);

#endif
