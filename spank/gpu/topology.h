/* spank/gpu/topology.h - distances of CPUs from a device, by hwloc, loaded on demand. HWLOC_XMLFILE
 * describes another machine. Independent of GPUs. */
#ifndef HPCT_SPANK_GPU_TOPOLOGY_H
#define HPCT_SPANK_GPU_TOPOLOGY_H

#include <hpctrain/status.h>
#include <stdbool.h>

typedef struct hpct_gpus_topology hpct_gpus_topology;

/* PCI location of a device. */
typedef struct hpct_gpus_pci {
    unsigned domain, bus, device, function;
} hpct_gpus_pci;

/* Distance of local memory, in units of the firmware's table (SLIT). */
#define HPCT_GPUS_DISTANCE_LOCAL 10

/* Reads the whole machine, including CPUs this process may not use; with PCI devices if `devices`
 * (tens of milliseconds on a large machine). Returns HPCT_ERR_CONFIG without hwloc 2, or if it
 * fails. *out is freed with hpct_gpus_topology_close. */
hpct_status hpct_gpus_topology_open(bool devices, hpct_gpus_topology **out);
void hpct_gpus_topology_close(hpct_gpus_topology *topology);

/* CPUs are numbered from 0 to below this as in the kernel; numbers may be unused. */
int hpct_gpus_topology_cpus(const hpct_gpus_topology *topology);

/* distance[cpu] for every CPU: HPCT_GPUS_DISTANCE_LOCAL in the device's NUMA node (or package if
 * unknown), else by the firmware's table, else 15 within the package and 21 outside. 0 for unused
 * numbers. Returns HPCT_ERR_CONFIG if there is no such device. */
hpct_status hpct_gpus_topology_from_pci(hpct_gpus_topology *topology, hpct_gpus_pci pci,
                                        int *distance);

/* The same from a list of cores ("0-15,32"), numbered from 0 in the machine's order as in
 * gres.conf. Returns HPCT_ERR_CONFIG if malformed or without an existing core. */
hpct_status hpct_gpus_topology_from_cores(hpct_gpus_topology *topology, const char *cores,
                                          int *distance);

#endif
