/* spank/tell.h - a step whose task failed before its program started is ended everywhere else. */
#ifndef HPCT_SPANK_TELL_H
#define HPCT_SPANK_TELL_H

#include <stdint.h>
#include <sys/types.h>

#include "spank/slurm_api.h"

/* The failing task, as the user: where components of a heterogeneous job are jobs of their own, the
 * others' tasks are killed, after 2 to 4 seconds. */
void hpct_tell_components(hpct_slurm *slurm, uint32_t job, uint32_t step);

/* The same for tasks that were killed and cannot: slurmstepd, as root, has a child do it that
 * becomes the user, who might name other jobs than his components. -1: there is nothing to do; else
 * to be waited for, up to 5 seconds. */
pid_t hpct_tell_components_as_user(hpct_slurm *slurm, uint32_t job, uint32_t step);

/* slurmstepd, as root, once per step and node: has slurmctld end this step, after 2 to 4 seconds.
 * Without it the tasks of other nodes would wait for those that never started. */
void hpct_tell_step_failed(hpct_slurm *slurm, uint32_t job, uint32_t step);

#endif
