/* agent/top/find.h - the status.json of a run. */
#ifndef HPCT_AGENT_TOP_FIND_H
#define HPCT_AGENT_TOP_FIND_H

#include <hpctrain/status.h>

/* Where it is: in a log folder, or the file itself. `run` NULL: the working folder. The caller
 * frees *path. HPCT_ERR_NO_INPUT if there is none. */
hpct_status hpct_top_find_run(char **path, const char *run);

/* The same for a Slurm job, whose working folder squeue knows: the newest in it or up to two levels
 * below that names this job. Also HPCT_ERR_IO: squeue does not answer. */
hpct_status hpct_top_find_job(char **path, const char *job);

/* The newest of this job in `folder`, or up to two levels below. */
hpct_status hpct_top_find_below(char **path, const char *folder, const char *job);

#endif
