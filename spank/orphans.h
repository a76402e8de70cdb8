/* spank/orphans.h - kills processes that a job left running when their slurmstepd was killed.
 * Independent of Slurm. */
#ifndef HPCT_SPANK_ORPHANS_H
#define HPCT_SPANK_ORPHANS_H

#include <stdint.h>
#include <sys/types.h>

/* Kills the processes of user `uid` with SLURM_JOB_ID=JOB and SLURMD_NODENAME=NODE in their initial
 * environment, until none is left, for at most `seconds`. Never root's. Returns the number killed.
 */
int hpct_spank_orphans_end(uid_t uid, uint32_t job, const char *node, int seconds);

#endif
