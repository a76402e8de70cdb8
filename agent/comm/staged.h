/* agent/comm/staged.h - a communicator for data in device memory over one that knows host memory
 * alone (MPI without NCCL): what lies on the device goes through pinned memory of the host. */
#ifndef HPCT_COMM_STAGED_H
#define HPCT_COMM_STAGED_H

#include "agent/comm/comm.h"
#include "agent/comm/device_calls.h"

/* `under` belongs to *out from here on, and is closed with it; not on failure. Data in host memory
 * goes to `under` as it is. Reductions are put behind what the compute stream holds when they
 * start, and the compute stream waits for them where hpct_comm_ops.wait is called; messages and
 * other operations make the host wait for the compute stream. */
hpct_status hpct_comm_staged_open(hpct_comm **out, hpct_comm *under,
                                  const hpct_device_calls *calls);

#endif
