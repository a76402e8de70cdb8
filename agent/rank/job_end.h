/* agent/rank/job_end.h - when the job ends. From HPC_TRAIN_END_TIME (seconds since 1970, set by
 * the plugin), and asked again of squeue, as the limit can be moved: by a thread, so that a
 * controller that is slow delays no step. */
#ifndef HPCT_AGENT_RANK_JOB_END_H
#define HPCT_AGENT_RANK_JOB_END_H

#include <hpctrain/status.h>

typedef struct hpct_rank_job_end hpct_rank_job_end;

/* Outside of a job *out is NULL. Where squeue cannot be asked, what is known stays. */
hpct_status hpct_rank_job_end_open(hpct_rank_job_end **out);
void hpct_rank_job_end_close(hpct_rank_job_end *end); /* NULL is allowed */

/* Seconds left, at least 0; INFINITY if unknown or unlimited, or for NULL. */
double hpct_rank_job_end_left(hpct_rank_job_end *end);

#endif
