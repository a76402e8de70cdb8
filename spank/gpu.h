/* spank/gpu.h - selects a task's GPU among the visible ones. Independent of SPANK and CUDA. */
#ifndef HPCT_SPANK_GPU_H
#define HPCT_SPANK_GPU_H

#include <hpctrain/status.h>
#include <stdbool.h>

typedef enum hpct_spank_gpu_bind_kind {
    HPCT_SPANK_GPU_BIND_CLOSEST, /* nearest to the task's CPUs (default) */
    HPCT_SPANK_GPU_BIND_RANK,    /* round robin by local rank */
    HPCT_SPANK_GPU_BIND_MAP,
    HPCT_SPANK_GPU_BIND_NONE,
} hpct_spank_gpu_bind_kind;

typedef struct hpct_spank_gpu_bind {
    hpct_spank_gpu_bind_kind kind;
    int *map; /* [map_size], by local rank: index in the list of visible GPUs; MAP only */
    int map_size;
    bool asked; /* given by the user: errors are reported */
} hpct_spank_gpu_bind;

/* Parses "closest", "rank", "map:0,2,1" or "none"; else HPCT_ERR_USAGE. Freed with
 * hpct_spank_gpu_bind_free. */
hpct_status hpct_spank_gpu_bind_parse(const char *text, hpct_spank_gpu_bind *out);
void hpct_spank_gpu_bind_free(hpct_spank_gpu_bind *bind);

/* Number of entries in CUDA_VISIBLE_DEVICES ("0,1", UUIDs, MIG names); 0 for NULL and "". */
int hpct_spank_gpu_count(const char *visible);

/* Entry of `visible` by index, to be freed; NULL if out of memory. */
char *hpct_spank_gpu_entry(const char *visible, int place);

/* The task's entry of `visible`, which the caller frees; NULL without GPUs or with "none". More
 * tasks than GPUs share them round robin. "closest" gives the same as "rank", its fallback (see
 * gpu_closest.h). Returns HPCT_ERR_CONFIG if the map names a missing GPU. */
hpct_status hpct_spank_gpu_choose(const hpct_spank_gpu_bind *bind, const char *visible,
                                  int local_rank, char **gpu);

#endif
