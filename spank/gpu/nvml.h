/* spank/gpu/nvml.h - where an NVIDIA GPU, or the GPU of a MIG slice, sits on PCI, by NVIDIA's
 * management library (NVML), which comes with the driver and is loaded when it is needed. */
#ifndef HPCT_GPU_NVML_H
#define HPCT_GPU_NVML_H

#include "spank/gpu/topology.h"

typedef struct hpct_nvml hpct_nvml;

/* HPCT_ERR_CONFIG when there is no driver, or it finds no fault-free GPU. */
hpct_status hpct_nvml_open(hpct_nvml **out);
void hpct_nvml_close(hpct_nvml *nvml);

/* `name` is an entry of CUDA_VISIBLE_DEVICES: an index, as this process counts (so it is right also
 * where Slurm's ConstrainDevices hides GPUs from it); "GPU-UUID", or its beginning when no other
 * GPU's is the same; "MIG-UUID"; or the older "MIG-GPU-UUID/INSTANCE/INSTANCE".
 * HPCT_ERR_CONFIG when there is none of that name. */
hpct_status hpct_nvml_locate(hpct_nvml *nvml, const char *name, hpct_pci *pci);

#endif
