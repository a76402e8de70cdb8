/* spank/gpu/assign.h - assignment of GPUs to tasks, as a pure function of distances. */
#ifndef HPCT_SPANK_GPU_ASSIGN_H
#define HPCT_SPANK_GPU_ASSIGN_H

#include <hpctrain/status.h>

#define HPCT_GPUS_MAX_TASKS 1024 /* per node; both limits keep sums within 64 bits */
#define HPCT_GPUS_MAX_GPUS 128
#define HPCT_GPUS_MAX_DISTANCE 30000

/* Assigns each of `tasks` tasks one of `gpus` GPUs: chosen[task]. distance[task * gpus + gpu] is 0
 * or more, or negative if not permitted. Minimizes, in this order:
 *   tasks per GPU: each GPU is used once before any is used twice;
 *   the sum of distances;
 *   the offset from the task's number, so that equal GPUs are assigned round robin.
 * Returns HPCT_ERR_CONFIG if a task has no permitted GPU, HPCT_ERR_USAGE above the limits. */
hpct_status hpct_gpus_assign(int tasks, int gpus, const int *distance, int *chosen);

#endif
