/* spank/gpu/nvml.h - PCI location of an NVIDIA GPU, or of a MIG slice's GPU, by NVML, which comes
 * with the driver and is loaded on demand. */
#ifndef HPCT_SPANK_GPU_NVML_H
#define HPCT_SPANK_GPU_NVML_H

#include "spank/gpu/topology.h"

typedef struct hpct_gpus_nvml hpct_gpus_nvml;

/* Returns HPCT_ERR_CONFIG without a driver or a usable GPU. */
hpct_status hpct_gpus_nvml_open(hpct_gpus_nvml **out);
void hpct_gpus_nvml_close(hpct_gpus_nvml *nvml);

/* `name` is an entry of CUDA_VISIBLE_DEVICES: an index as this process counts (also correct with
 * Slurm's ConstrainDevices); "GPU-UUID" or a unique prefix; "MIG-UUID"; or the older
 * "MIG-GPU-UUID/INSTANCE/INSTANCE". Returns HPCT_ERR_CONFIG if there is none of that name. */
hpct_status hpct_gpus_nvml_locate(hpct_gpus_nvml *nvml, const char *name, hpct_gpus_pci *pci);

#endif
