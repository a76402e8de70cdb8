/* agent/cluster/tasks.h - tasks per node as Slurm abbreviates them: "2(x3),1" is 2, 2, 2, 1. */
#ifndef HPCT_CLUSTER_TASKS_H
#define HPCT_CLUSTER_TASKS_H

#include <hpctrain/status.h>

#define HPCT_MAX_TASKS 10000000 /* in one step */

/* Expands `text` into a count per node. The array of exactly `num_nodes` ints is the caller's
 * (free). HPCT_ERR_CONFIG when the text is not of that form, a count is 0, the number of nodes
 * differs, or the sum is above HPCT_MAX_TASKS. */
hpct_status hpct_tasks_expand(const char *text, int num_nodes, int **tasks);

#endif
