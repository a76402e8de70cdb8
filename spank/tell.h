/* spank/tell.h - a step whose task failed before its program started is ended on its other nodes. */
#ifndef HPCT_SPANK_TELL_H
#define HPCT_SPANK_TELL_H

#include <stdint.h>

#include "spank/slurm_api.h"

/* slurmstepd, as root, once per step and node: has slurmctld end the step, after 2 to 4 seconds.
 * Without it the tasks of other nodes would wait for those that never started. */
void hpct_tell_step_failed(uint32_t job, uint32_t step, hpct_slurm *slurm);

#endif
