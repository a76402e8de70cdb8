/* agent/train/deadline.h - the job's time limit: said in time, and stopped for, with a checkpoint.
 * The rank that leads the run watches it alone; the others stop as for a signal of its. */
#ifndef HPCT_AGENT_TRAIN_DEADLINE_H
#define HPCT_AGENT_TRAIN_DEADLINE_H

#include "agent/rank/job_end.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct hpct_deadline {
    hpct_job_end *job_end; /* NULL: not watched */
    bool speaks, saves;    /* saves: there are checkpoints */
    int epochs;
    int64_t steps_per_epoch;
    bool said;
} hpct_deadline;

/* Where a run is, after a step. */
typedef struct hpct_deadline_place {
    int epoch;                       /* under way, and */
    int64_t step;                    /* the last one of it, both from 0 on */
    int64_t timed;                   /* steps from which `seconds` is known */
    bool epoch_ended;                /* by this step */
    double seconds;                  /* of a step */
    double evaluation, save_seconds; /* of the last ones; 0: none yet */
} hpct_deadline_place;

/* Watches it, if the run is in a job, and speaks or saves. */
hpct_status hpct_deadline_open(hpct_deadline *deadline);
void hpct_deadline_close(hpct_deadline *deadline); /* zeros are allowed */

/* Says once if not all of the run fits into the job; if the end is near, and there are checkpoints,
 * raises HPCT_STOP_DEADLINE. */
void hpct_deadline_heed(hpct_deadline *deadline, const hpct_deadline_place *now);

#endif
