/* spank/gpu/closest.h - the answer to a request: each task's nearest GPU, from the machine's
 * topology and NVML, or gres.conf where there is no NVML. */
#ifndef HPCT_GPU_CLOSEST_H
#define HPCT_GPU_CLOSEST_H

#include "spank/gpu/request.h"

/* places[task] is the place, in that task's own list, of the GPU that it gets. `node` names this
 * machine in gres.conf (NULL: any); `gres_conf` is tried where NVML is not there (NULL: nothing
 * is). HPCT_ERR_CONFIG, with the reason, when it cannot be told what is near. */
hpct_status hpct_gpu_closest(const hpct_request *request, const char *gres_conf, const char *node,
                             int *places);

#endif
