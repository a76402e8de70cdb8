/* agent/ps/pace.h - how long the parts of a step take on each worker, from what the workers say of
 * their steps: for pace.jsonl and status.json, where the workers are the ranks, and to name a node
 * that is slow. Of server 0. */
#ifndef HPCT_AGENT_PS_PACE_H
#define HPCT_AGENT_PS_PACE_H

#include "agent/train/pace_file.h"

#include <stdbool.h>

typedef struct hpct_ps_pace hpct_ps_pace; /* all calls allow NULL */

hpct_status hpct_ps_pace_open(hpct_ps_pace **out, int workers);
void hpct_ps_pace_close(hpct_ps_pace *pace);

/* `live`, which may be NULL, learns the worker's node. */
void hpct_ps_pace_joined(hpct_ps_pace *pace, int worker, const char *node, hpct_results_live *live);
void hpct_ps_pace_left(hpct_ps_pace *pace, int worker);

/* A worker has computed a gradient: parts[HPCT_PS_PARTS] as its message has them. */
void hpct_ps_pace_gradient(hpct_ps_pace *pace, int worker, const float *parts);

/* After an update: so many steps of the epoch are done, both from 1. `now`: of the process's clock.
 * Every few seconds, and at the end of an epoch, `file` and `live` learn what is known; both may be
 * NULL. */
void hpct_ps_pace_step(hpct_ps_pace *pace, int epoch, int64_t steps, bool epoch_ended, double now,
                       hpct_train_pace_file *file, hpct_results_live *live);

/* [workers] names of their nodes, as far as they are known, else NULL: they change until the object
 * is freed. */
const char *const *hpct_ps_pace_nodes(const hpct_ps_pace *pace);

#endif
