/* spank/cgroup.h - moves a process that root starts for a step into the step's cgroup, so that
 * Slurm kills it with the step. Otherwise a hung copy would be an unkillable step, for which Slurm
 * drains the node. Independent of Slurm. */
#ifndef HPCT_SPANK_CGROUP_H
#define HPCT_SPANK_CGROUP_H

#include <hpctrain/status.h>
#include <sys/types.h>

/* The cgroup folder of process `pid`: of the unified hierarchy, or of v1's freezer, which Slurm
 * tracks processes with. To be freed; NULL if it is the caller's, or without cgroups. */
char *hpct_spank_cgroup_of(pid_t pid);

/* Moves the calling process there. Returns HPCT_ERR_INTERNAL on error. */
hpct_status hpct_spank_cgroup_enter(const char *folder);

#endif
