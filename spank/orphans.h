/* spank/orphans.h - ends what a job has left running when the process that watched over it was
 * killed. Knows nothing of Slurm. */
#ifndef HPCT_SPANK_ORPHANS_H
#define HPCT_SPANK_ORPHANS_H

#include <stdint.h>
#include <sys/types.h>

/* Kills the processes of user `uid` that have SLURM_JOB_ID=JOB and SLURMD_NODENAME=NODE in the
 * environment that they were started with, until there are none, for at most `seconds`. Root's are
 * never touched. Returns how many were killed. */
int hpct_orphans_end(uid_t uid, uint32_t job, const char *node, int seconds);

#endif
