/* spank/gpu/topology.h - how far each CPU of this machine is from a device, by hwloc, which is
 * loaded when it is needed. HWLOC_XMLFILE describes another machine, as for all of hwloc's users.
 * Knows nothing of GPUs. */
#ifndef HPCT_GPU_TOPOLOGY_H
#define HPCT_GPU_TOPOLOGY_H

#include <hpctrain/status.h>
#include <stdbool.h>

typedef struct hpct_topology hpct_topology;

/* Where a device sits on PCI. */
typedef struct hpct_pci {
    unsigned domain, bus, device, function;
} hpct_pci;

/* The distance to what is local, in the unit of firmware's tables (SLIT). */
#define HPCT_DISTANCE_LOCAL 10

/* Reads the whole machine, CPUs that this process may not use included; with its PCI devices when
 * `devices` (which takes a large machine tens of milliseconds). HPCT_ERR_CONFIG when there is no
 * hwloc 2, or it cannot read the machine. *out is freed with hpct_topology_close. */
hpct_status hpct_topology_open(bool devices, hpct_topology **out);
void hpct_topology_close(hpct_topology *topology);

/* CPUs are numbered from 0 to this, as the kernel numbers them; some numbers may be unused. */
int hpct_topology_cpus(const hpct_topology *topology);

/* distance[cpu] for every CPU: HPCT_DISTANCE_LOCAL where the device is attached (its NUMA node,
 * or the package when no more is known), else by the firmware's table of distances, else 15 within
 * the package and 21 outside of it. 0 for numbers without a CPU. HPCT_ERR_CONFIG when there is no
 * such device. */
hpct_status hpct_topology_from_pci(hpct_topology *topology, hpct_pci pci, int *distance);

/* The same from a list of cores ("0-15,32"), numbered from 0 in the machine's order, as gres.conf
 * does. HPCT_ERR_CONFIG when it is no list, or names no core that there is. */
hpct_status hpct_topology_from_cores(hpct_topology *topology, const char *cores, int *distance);

#endif
