/* agent/ps/live.h - what server 0 shows of a run while it goes on: status.json, --metrics-file and
 * pace.jsonl, where the workers are the ranks; and which of their nodes are slow. From what workers
 * say of their steps. */
#ifndef HPCT_AGENT_PS_LIVE_H
#define HPCT_AGENT_PS_LIVE_H

#include "agent/ps/run.h"
#include "agent/results/live.h"

typedef struct hpct_ps_live hpct_ps_live; /* all calls allow NULL */

/* `continues`: the logs of an earlier run go on. `run` outlives *out. */
hpct_status hpct_ps_live_open(hpct_ps_live **out, const hpct_ps_run *run, bool continues);
void hpct_ps_live_end(hpct_ps_live *live, hpct_live_how how);
void hpct_ps_live_free(hpct_ps_live *live); /* an end that was not told was a failure */

/* The log folder's files are this run's from now on (agent/train/pace_file.h). */
void hpct_ps_live_settle(hpct_ps_live *live);

void hpct_ps_live_joined(hpct_ps_live *live, int worker, const char *node);
void hpct_ps_live_left(hpct_ps_live *live, int worker);

/* A worker has computed a gradient: parts[HPCT_PS_PARTS] as its message has them. */
void hpct_ps_live_gradient(hpct_ps_live *live, int worker, const float *parts);

/* After an update, the epoch's last or not; and after an evaluation, with step_loss NaN. `now`: of
 * the process's clock. */
void hpct_ps_live_step(hpct_ps_live *live, const hpct_live_state *state, double now);

/* [workers] names of their nodes, as far as they are known, else NULL: they change until the object
 * is freed. */
const char *const *hpct_ps_live_nodes(const hpct_ps_live *live);

#endif
