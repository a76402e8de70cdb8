/* spank/gpu/gres.h - GPUs of this node in Slurm's gres.conf: device files and cores. For nodes
 * without NVML. */
#ifndef HPCT_SPANK_GPU_GRES_H
#define HPCT_SPANK_GPU_GRES_H

#include <hpctrain/status.h>

typedef struct hpct_gpus_gres_gpu {
    char *file;  /* "/dev/nvidia0"; NULL if not given */
    char *cores; /* "0-15"; NULL if not given */
    int number;  /* number at the end of the file name, else position, as Slurm numbers devices */
} hpct_gpus_gres_gpu;

typedef struct hpct_gpus_gres {
    hpct_gpus_gres_gpu *gpus; /* [count] */
    int count;
} hpct_gpus_gres;

/* Reads the GPUs `path` gives to `node` (NULL: to any): Name=gpu lines with NodeName=, File=,
 * Cores= or CPUs= and Count= (include lines are not followed). Returns HPCT_ERR_NO_INPUT if
 * unreadable, HPCT_ERR_CONFIG if it has no GPU of that node. *out is freed with
 * hpct_gpus_gres_free. */
hpct_status hpct_gpus_gres_read(const char *path, const char *node, hpct_gpus_gres *out);
void hpct_gpus_gres_free(hpct_gpus_gres *gres);

/* Cores near the GPU called `name` in CUDA_VISIBLE_DEVICES: its number, or, if this process may not
 * open all device files (ConstrainDevices), its position among those it may open. Owned by *gres.
 * Returns HPCT_ERR_CONFIG if there is no such GPU, or its cores are not given. */
hpct_status hpct_gpus_gres_locate(const hpct_gpus_gres *gres, const char *name, const char **cores);

#endif
