/* agent/cost/scratch.h - write rate of the node's scratch folder. Local. */
#ifndef HPCT_AGENT_COST_SCRATCH_H
#define HPCT_AGENT_COST_SCRATCH_H

#include <stddef.h>

/* $SLURM_TMPDIR, else $TMPDIR, else /tmp. */
const char *hpct_cost_scratch_folder(void);

/* Bytes per second of writing and syncing a file of at most 64 MiB in at most about a second; the
 * file has no name. 0 with the reason in `why` if it cannot be written. */
double hpct_cost_scratch_measure(const char *folder, char *why, size_t bytes);

#endif
