/* spank/gpu/assign.h - which task gets which GPU, as a pure function of distances. */
#ifndef HPCT_GPU_ASSIGN_H
#define HPCT_GPU_ASSIGN_H

#include <hpctrain/status.h>

#define HPCT_GPU_MAX_TASKS 1024 /* of one node; both bounds keep the sums within 64 bits */
#define HPCT_GPU_MAX_GPUS 128
#define HPCT_GPU_MAX_DISTANCE 30000

/* Gives each of `tasks` tasks one of `gpus` GPUs: chosen[task]. distance[task * gpus + gpu] is 0 or
 * more, or negative where the task may not have the GPU. Of all ways, it takes one in which
 *   first, no GPU has more tasks than need be: each once before any twice;
 *   then, the sum of the distances is least;
 *   then, GPUs lie near the place that the task's number has, so that equals are given out in turn.
 * HPCT_ERR_CONFIG when a task may have none, HPCT_ERR_USAGE above the bounds. */
hpct_status hpct_gpu_assign(int tasks, int gpus, const int *distance, int *chosen);

#endif
