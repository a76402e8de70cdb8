/* agent/ps/leader.h - what server 0 does besides serving: it keeps the schedule and the sums, shows
 * progress, and writes what is to be written. */
#ifndef HPCT_PS_LEADER_H
#define HPCT_PS_LEADER_H

#include "agent/ps/run.h"

typedef struct hpct_ps_leader hpct_ps_leader;

/* process: when it began, for the summary. */
hpct_status hpct_ps_leader_new(hpct_ps_leader **out, hpct_ps_run *run);
void hpct_ps_leader_free(hpct_ps_leader *leader);

hpct_ps_schedule *hpct_ps_leader_schedule(hpct_ps_leader *leader);

/* A worker has come, or is gone: in order or not. */
void hpct_ps_leader_joined(hpct_ps_leader *leader, int worker);
void hpct_ps_leader_left(hpct_ps_leader *leader, int worker, bool lost);

/* A worker's item is done, with these sums. */
hpct_status hpct_ps_leader_done(hpct_ps_leader *leader, int worker, const hpct_ps_message *sums);

/* SIGINT or SIGTERM has come: no more is given out. */
void hpct_ps_leader_stop(hpct_ps_leader *leader, int signal);

/* After the run, with all parameters in the model: weights, summary and logs. */
hpct_status hpct_ps_leader_finish(hpct_ps_leader *leader, hpct_fit_result *result);

#endif
