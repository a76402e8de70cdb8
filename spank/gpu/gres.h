/* spank/gpu/gres.h - what the administrator wrote in Slurm's gres.conf of this node's GPUs: their
 * device files, and the cores near them. For nodes without NVML. */
#ifndef HPCT_GPU_GRES_H
#define HPCT_GPU_GRES_H

#include <hpctrain/status.h>

typedef struct hpct_gres_gpu {
    char *file;  /* "/dev/nvidia0"; NULL when gres.conf gives none */
    char *cores; /* "0-15"; NULL when gres.conf gives none */
    int number;  /* the number at the end of its file's name, else its place; as Slurm counts */
} hpct_gres_gpu;

typedef struct hpct_gres {
    hpct_gres_gpu *gpus; /* [count] */
    int count;
} hpct_gres;

/* Reads the GPUs that `path` gives to `node` (NULL: to any): Name=gpu lines with NodeName=, File=,
 * Cores= or CPUs= and Count= (include lines are not followed). HPCT_ERR_NO_INPUT when it cannot be
 * read, HPCT_ERR_CONFIG when it has no GPU of that node. *out is freed with hpct_gres_free. */
hpct_status hpct_gres_read(const char *path, const char *node, hpct_gres *out);
void hpct_gres_free(hpct_gres *gres);

/* The cores near the GPU that CUDA_VISIBLE_DEVICES calls `name`: its number, or, where this process
 * may not open all of the device files (ConstrainDevices), its place among those that it may. The
 * text belongs to *gres. HPCT_ERR_CONFIG when there is none, or its cores are not given. */
hpct_status hpct_gres_locate(const hpct_gres *gres, const char *name, const char **cores);

#endif
