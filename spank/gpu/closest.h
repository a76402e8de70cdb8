/* spank/gpu/closest.h - answers a request: each task's nearest GPU, by topology and NVML, or by
 * gres.conf without NVML. */
#ifndef HPCT_SPANK_GPU_CLOSEST_H
#define HPCT_SPANK_GPU_CLOSEST_H

#include "spank/gpu/request.h"

/* places[task] is the index of its GPU in the task's list. `node` is this machine's name in
 * gres.conf (NULL: any); `gres_conf` is used without NVML (NULL: not). Returns HPCT_ERR_CONFIG,
 * with the reason, if locality is unknown. */
hpct_status hpct_gpus_closest(const hpct_gpus_request *request, const char *gres_conf,
                              const char *node, int *places);

#endif
