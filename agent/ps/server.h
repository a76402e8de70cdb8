/* agent/ps/server.h - a parameter server: one thread that sleeps in poll. */
#ifndef HPCT_PS_SERVER_H
#define HPCT_PS_SERVER_H

#include "agent/ps/leader.h"
#include "agent/ps/run.h"

/* Serves until the run is over; server 0 leads it (`leader`, else NULL), and then has all
 * parameters in its model. *signal: that ended it, or 0. HPCT_ERR_PEER when another server or all
 * workers are lost. */
hpct_status hpct_ps_serve(hpct_ps_run *run, hpct_ps_leader *leader, int *signal);

#endif
