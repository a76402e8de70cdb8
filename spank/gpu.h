/* spank/gpu.h - which of the GPUs that a task may see is its own. Knows nothing of SPANK or CUDA.
 */
#ifndef HPCT_SPANK_GPU_H
#define HPCT_SPANK_GPU_H

#include <hpctrain/status.h>
#include <stdbool.h>

typedef enum hpct_gpu_bind_kind {
    HPCT_GPU_BIND_CLOSEST, /* the nearest to the task's CPUs; the default */
    HPCT_GPU_BIND_RANK,    /* one after the other by local rank */
    HPCT_GPU_BIND_MAP,
    HPCT_GPU_BIND_NONE,
} hpct_gpu_bind_kind;

typedef struct hpct_gpu_bind {
    hpct_gpu_bind_kind kind;
    int *map; /* [map_size], by local rank: place in the list of visible GPUs; MAP only */
    int map_size;
    bool asked; /* the user said so, and wants to know when it cannot be done */
} hpct_gpu_bind;

/* "closest", "rank", "map:0,2,1" or "none". HPCT_ERR_USAGE otherwise. Freed with
 * hpct_gpu_bind_free. */
hpct_status hpct_gpu_bind_parse(const char *text, hpct_gpu_bind *out);
void hpct_gpu_bind_free(hpct_gpu_bind *bind);

/* The number of entries in CUDA_VISIBLE_DEVICES ("0,1", UUIDs, MIG names); 0 for NULL and "". */
int hpct_gpu_count(const char *visible);

/* The entry of `visible` at a place (from 0), to be freed; NULL when out of memory. */
char *hpct_gpu_entry(const char *visible, int place);

/* The task's own entry of `visible`, to be freed; NULL when there is no GPU or bind is "none". More
 * tasks than GPUs share them in turn. "closest" gives what "rank" does: what it falls back to where
 * nothing better is known (see gpu_closest.h). HPCT_ERR_CONFIG when the map names one that is not
 * there. */
hpct_status hpct_gpu_choose(const hpct_gpu_bind *bind, const char *visible, int local_rank,
                            char **gpu);

#endif
