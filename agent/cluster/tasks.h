/* agent/cluster/tasks.h - tasks per node as Slurm abbreviates them: "2(x3),1" is 2, 2, 2, 1; and
 * how the plugin tells a step's tasks that rank 0's has ended, with an error or, where tasks have
 * roles, at all. */
#ifndef HPCT_CLUSTER_TASKS_H
#define HPCT_CLUSTER_TASKS_H

#include <hpctrain/status.h>
#include <signal.h>

#define HPCT_MAX_TASKS 10000000 /* in one step */

/* Sent to all processes of the step, most of which do not notice it: tasks but rank 0's start with
 * it blocked, so that it waits until it is asked for. Set, to "1", for a task whose program had not
 * been started then. Who waits for rank 0 to listen need not wait for long. */
#define HPCT_GONE_SIGNAL SIGWINCH
#define HPCT_GONE_VARIABLE "HPC_TRAIN_RANK_0_ENDED"

/* Expands `text` into a count per node. The array of exactly `num_nodes` ints is the caller's
 * (free). HPCT_ERR_CONFIG when the text is not of that form, a count is 0, the number of nodes
 * differs, or the sum is above HPCT_MAX_TASKS. */
hpct_status hpct_tasks_expand(const char *text, int num_nodes, int **tasks);

#endif
