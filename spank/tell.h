/* spank/tell.h - a step whose task failed before its program started is ended everywhere else. */
#ifndef HPCT_SPANK_TELL_H
#define HPCT_SPANK_TELL_H

#include <stdint.h>

#include "spank/slurm_api.h"

/* slurmstepd, as root, once per step and node: has slurmctld end this step, after 2 to 5 seconds.
 * Without it the tasks of other nodes would wait for those that never started. Where components of
 * a heterogeneous job are jobs of their own, the others' tasks are killed, too: by a process that
 * becomes the user, who might name other jobs than his components. */
void hpct_tell(hpct_slurm *slurm, uint32_t job, uint32_t step);

#endif
