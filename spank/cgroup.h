/* spank/cgroup.h - puts a process that root starts for a step where Slurm finds the step's own, so
 * that it ends with them. Without it a copy that hangs would count as a step that cannot be killed,
 * for which Slurm drains the node. Knows nothing of Slurm. */
#ifndef HPCT_SPANK_CGROUP_H
#define HPCT_SPANK_CGROUP_H

#include <hpctrain/status.h>
#include <sys/types.h>

/* The folder of the control group that process `pid` is in: of the unified hierarchy, or of version
 * 1's freezer, which is what Slurm follows processes with. To be freed; NULL when that is where the
 * caller is itself, or when there are no control groups. */
char *hpct_cgroup_of(pid_t pid);

/* The calling process enters the folder. HPCT_ERR_INTERNAL when it cannot. */
hpct_status hpct_cgroup_enter(const char *folder);

#endif
