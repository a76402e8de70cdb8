/* spank/gpu_closest.h - --hpc-train-bind=closest in a task: collects the tasks' views, elects the
 * task that sends the request, and falls back. Independent of SPANK. */
#ifndef HPCT_SPANK_GPU_CLOSEST_H
#define HPCT_SPANK_GPU_CLOSEST_H

#include "spank/gpu_meet.h"

/* Timeout of the tasks for each other and for the helper: the driver may need seconds to wake each
 * idle GPU. */
#define HPCT_SPANK_GPU_MEET_SECONDS 10
#define HPCT_SPANK_GPU_ASK_SECONDS 30

/* Called in every task of the node. *place is the index in `visible` of the GPU nearest to this
 * task's CPUs; each GPU is assigned once before any twice among tasks that see the same devices. -1
 * if left to the caller: one GPU only, no task bound to CPUs, or unknown locality. In the last case
 * HPCT_ERR_CONFIG in one task, HPCT_OK in the others. */
hpct_status hpct_spank_gpu_closest_place(hpct_spank_gpu_meet *meet, int task, const char *visible,
                                         const char *helper, const char *node, int *place);

#endif
