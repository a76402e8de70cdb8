/* agent/rank/deadline.h - when the job ends. From HPC_TRAIN_END_TIME (seconds since 1970, set by
 * the plugin), and asked again of squeue, as the limit can be moved: by a thread, so that a
 * controller that is slow delays no step. */
#ifndef HPCT_AGENT_RANK_DEADLINE_H
#define HPCT_AGENT_RANK_DEADLINE_H

#include <hpctrain/status.h>

typedef struct hpct_deadline hpct_deadline;

/* Outside of a job *out is NULL. Where squeue cannot be asked, what is known stays. */
hpct_status hpct_deadline_open(hpct_deadline **out);
void hpct_deadline_close(hpct_deadline *deadline); /* NULL is allowed */

/* Seconds left, at least 0; INFINITY if unknown or unlimited, or for NULL. */
double hpct_deadline_left(hpct_deadline *deadline);

#endif
