/* agent/checkpoint/prune.h - removes checkpoints; for the run with the lock only. */
#ifndef HPCT_AGENT_CHECKPOINT_PRUNE_H
#define HPCT_AGENT_CHECKPOINT_PRUNE_H

#include "agent/checkpoint/contents.h"

#include <hpctrain/status.h>
#include <stdint.h>

/* Before a run writes: removes folders without a manifest, files that no manifest names, and
 * temporary files in `dir` that are older than ten minutes. */
hpct_status hpct_ckpt_prune_leftovers(const char *dir);

/* After the commit of `step`: keeps the `keep` newest complete checkpoints whose files all exist,
 * and the best one. If there are as many, the others are removed; folders without a manifest only
 * if they are of smaller steps, as parts of a later one may be on their way. */
hpct_status hpct_ckpt_prune(const char *dir, int64_t step, int keep);

#endif
