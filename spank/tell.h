/* spank/tell.h - ends a step on all other nodes after a task failed before its program started. */
#ifndef HPCT_SPANK_TELL_H
#define HPCT_SPANK_TELL_H

#include <stdint.h>

#include "spank/slurm_api.h"

/* slurmstepd, as root, once per step and node: makes slurmctld end this step after 2 to 5 seconds.
 * Otherwise tasks of other nodes would wait for those that never started. If components of a
 * heterogeneous job are separate jobs, a process running as the user also kills their tasks: the
 * ids are from the user's environment and might be those of other users' jobs. */
void hpct_spank_tell(hpct_slurm *slurm, uint32_t job, uint32_t step);

#endif
