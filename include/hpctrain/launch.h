/* hpctrain/launch.h - runs a program as a job step, and again on the nodes that are left when a
 * task or a node fails. */
#ifndef HPCTRAIN_LAUNCH_H
#define HPCTRAIN_LAUNCH_H

#include <hpctrain/status.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hpct_launch_options {
    int restarts;         /* at most so many; default 10; negative: none */
    int min_nodes;        /* with fewer there is no restart; default 1 */
    bool regrow;          /* use a node that answers again, after a checkpoint */
    char *const *options; /* of srun, NULL-terminated */
    char *const *program; /* and its arguments, NULL-terminated */
} hpct_launch_options;

/* In a batch script or a shell of salloc: runs srun, and prints on standard error why it is run
 * again. HPCT_OK: *exit_status is the last run's, as in a shell. HPCT_ERR_CONFIG,
 * HPCT_ERR_USAGE: nothing was run. HPCT_ERR_NO_INPUT: no node can start the program.
 *
 * The tasks have HPC_TRAIN_RESTART (0 in the first run), HPC_TRAIN_LAUNCH (equal in all runs of one
 * call), and after a restart HPC_TRAIN_LAUNCH_TASKS (number of tasks of the first run). */
HPCT_API hpct_status hpct_launch(const hpct_launch_options *options, int *exit_status);

#ifdef __cplusplus
}
#endif

#endif
