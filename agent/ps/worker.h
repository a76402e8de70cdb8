/* agent/ps/worker.h - a worker of a run with parameter servers. */
#ifndef HPCT_PS_WORKER_H
#define HPCT_PS_WORKER_H

#include "agent/ps/run.h"

/* Does what server 0 gives it to do until the run is over. *signal: that ended it, or 0.
 * HPCT_ERR_PEER naming a server that was lost. */
hpct_status hpct_ps_work(hpct_ps_run *run, int *signal);

#endif
