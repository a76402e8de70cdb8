/* agent/ps/leader.h - additional tasks of server 0: keeps the schedule and the sums, shows
 * progress, and writes the results. */
#ifndef HPCT_AGENT_PS_LEADER_H
#define HPCT_AGENT_PS_LEADER_H

#include "agent/ps/run.h"

#include <stdbool.h>

typedef struct hpct_ps_leader hpct_ps_leader;

/* `run` must outlive the leader. */
hpct_status hpct_ps_leader_new(hpct_ps_leader **out, hpct_ps_run *run);
void hpct_ps_leader_free(hpct_ps_leader *leader);

hpct_ps_schedule *hpct_ps_leader_schedule(hpct_ps_leader *leader);

/* A worker of that node has connected, or left: in order or lost. */
void hpct_ps_leader_joined(hpct_ps_leader *leader, int worker, const char *node);
void hpct_ps_leader_left(hpct_ps_leader *leader, int worker, bool lost);

/* A worker has completed its item, with these sums. */
hpct_status hpct_ps_leader_done(hpct_ps_leader *leader, int worker, const hpct_ps_message *sums);

/* Learning rate of the steps that are given out now; 0: the schedule's. */
double hpct_ps_leader_rate(const hpct_ps_leader *leader);

/* After SIGINT or SIGTERM: the step under way is the last. */
void hpct_ps_leader_stop(hpct_ps_leader *leader, int signal);

/* Whether the run continues a checkpoint, whose state is in the model. */
bool hpct_ps_leader_continues(const hpct_ps_leader *leader);

/* Whether a checkpoint is due now, between two steps; it is saved once the model has all parameters
 * and slots, which took `waited` seconds. */
bool hpct_ps_leader_saves(const hpct_ps_leader *leader);
hpct_status hpct_ps_leader_save(hpct_ps_leader *leader, double waited);

/* After the run, with all parameters in the model: writes weights, summary and logs. */
hpct_status hpct_ps_leader_finish(hpct_ps_leader *leader, hpct_fit_result *result);

#endif
