/* base/cluster/tasks.h - Slurm's tasks per node, "2(x3),1" is 2, 2, 2, 1; and the signal by which
 * the plugin informs a step's tasks that rank 0's task has failed or, with roles, ended. */
#ifndef HPCT_BASE_CLUSTER_TASKS_H
#define HPCT_BASE_CLUSTER_TASKS_H

#include <hpctrain/status.h>
#include <signal.h>

#define HPCT_CLUSTER_MAX_TASKS 10000000 /* limit of a step */

/* Sent to all processes of the step; most ignore it. Tasks except rank 0's start with it blocked,
 * so that it remains pending until they check it. The variable is "1" for tasks whose program
 * started later. Avoids waiting for rank 0 to listen. */
#define HPCT_CLUSTER_GONE_SIGNAL SIGWINCH
#define HPCT_CLUSTER_GONE_VARIABLE "HPC_TRAIN_RANK_0_ENDED"

/* Expands `text` into a count per node; the caller frees the array of `num_nodes` ints. Returns
 * HPCT_ERR_CONFIG if malformed, a count is 0, the number of nodes differs, or the sum exceeds
 * HPCT_CLUSTER_MAX_TASKS. */
hpct_status hpct_cluster_tasks_expand(const char *text, int num_nodes, int **tasks);

#endif
