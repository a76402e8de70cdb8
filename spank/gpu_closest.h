/* spank/gpu_closest.h - --hpc-train-bind=closest in a task: what it sees, who asks for all, and
 * what to do without an answer. Knows nothing of SPANK. */
#ifndef HPCT_SPANK_GPU_CLOSEST_H
#define HPCT_SPANK_GPU_CLOSEST_H

#include "spank/gpu_meet.h"

/* How long the tasks wait for each other, and for the helper. The driver of GPUs that nobody uses
 * may take seconds to wake each of them. */
#define HPCT_GPU_MEET_SECONDS 10
#define HPCT_GPU_ASK_SECONDS 30

/* To be called in every task of the node. *place is the place, in `visible`, of the GPU nearest to
 * the CPUs on which this task may run, so that each GPU is given once before any is given twice,
 * among all tasks that see the same devices; -1 when it is left to the caller: there is not more
 * than one to choose from, no task is bound to CPUs, or what is near cannot be told. In the last
 * case HPCT_ERR_CONFIG is returned, to one task only; to all others HPCT_OK. */
hpct_status hpct_gpu_closest_place(hpct_gpu_meet *meet, int task, const char *visible,
                                   const char *helper, const char *node, int *place);

#endif
