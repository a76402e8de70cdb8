/* Combines topology and devices: distances of CPUs from GPUs, averaged over each task's CPUs. */
#include "spank/gpu/closest.h"

#include <stdlib.h>

#include "base/status.h"
#include "spank/gpu/assign.h"
#include "spank/gpu/gres.h"
#include "spank/gpu/nvml.h"
#include "spank/gpu/topology.h"

#define SCALE 100 /* scales distances so that integer averages keep differences */

/* Fills from_cpu[gpu * cpus + cpu] for every GPU of the request. */
static hpct_status measure_nvml(const hpct_gpus_request *request, hpct_gpus_topology *topology,
                                hpct_gpus_nvml *nvml, int *from_cpu)
{
    hpct_status status = HPCT_OK;
    for (int gpu = 0; gpu < request->num_gpus && status == HPCT_OK; gpu++) {
        hpct_gpus_pci pci;
        status = hpct_gpus_nvml_locate(nvml, request->gpus[gpu], &pci);
        if (status == HPCT_OK)
            status = hpct_gpus_topology_from_pci(
                topology, pci, from_cpu + gpu * hpct_gpus_topology_cpus(topology));
    }
    return status;
}

static hpct_status measure_gres(const hpct_gpus_request *request, hpct_gpus_topology *topology,
                                const char *gres_conf, const char *node, int *from_cpu)
{
    hpct_gpus_gres gres = {0};
    hpct_status status = hpct_gpus_gres_read(gres_conf, node, &gres);
    for (int gpu = 0; gpu < request->num_gpus && status == HPCT_OK; gpu++) {
        const char *cores = NULL;
        status = hpct_gpus_gres_locate(&gres, request->gpus[gpu], &cores);
        if (status == HPCT_OK)
            status = hpct_gpus_topology_from_cores(
                topology, cores, from_cpu + gpu * hpct_gpus_topology_cpus(topology));
    }
    hpct_gpus_gres_free(&gres);
    return status;
}

/* Mean distance over the task's CPUs. */
static int mean(const hpct_gpus_request_task *task, const int *from_cpu, int cpus)
{
    long sum = 0, count = 0;
    for (int cpu = 0; cpu < cpus && cpu < HPCT_GPUS_REQUEST_CPUS; cpu++) {
        if (!hpct_gpus_request_runs_on(task, cpu) || from_cpu[cpu] == 0)
            continue;
        sum += from_cpu[cpu];
        count++;
    }
    return count == 0 ? 0 : (int) (sum * SCALE / count);
}

hpct_status hpct_gpus_closest(const hpct_gpus_request *request, const char *gres_conf,
                              const char *node, int *places)
{
    int tasks = request->num_tasks, gpus = request->num_gpus;
    int *from_cpu = NULL, *distance = NULL, *chosen = NULL, cpus;
    hpct_gpus_topology *topology = NULL;
    hpct_gpus_nvml *nvml = NULL;
    hpct_status status = hpct_gpus_nvml_open(&nvml);
    if (status != HPCT_OK && gres_conf == NULL)
        return status;
    status = hpct_gpus_topology_open(nvml != NULL, &topology);
    if (status != HPCT_OK)
        goto end;
    cpus = hpct_gpus_topology_cpus(topology);
    from_cpu = calloc((size_t) gpus * (size_t) cpus, sizeof *from_cpu);
    distance = malloc((size_t) tasks * (size_t) gpus * sizeof *distance);
    chosen = calloc((size_t) tasks, sizeof *chosen);
    if (from_cpu == NULL || distance == NULL || chosen == NULL) {
        status = hpct_fail_memory(0);
        goto end;
    }
    status = nvml != NULL ? measure_nvml(request, topology, nvml, from_cpu)
                          : measure_gres(request, topology, gres_conf, node, from_cpu);
    if (status != HPCT_OK)
        goto end;
    for (int i = 0; i < tasks * gpus; i++)
        distance[i] = -1;
    for (int task = 0; task < tasks; task++) {
        const hpct_gpus_request_task *one = &request->tasks[task];
        for (int i = 0; i < one->num_gpus; i++)
            distance[task * gpus + one->gpus[i]] = mean(one, from_cpu + one->gpus[i] * cpus, cpus);
    }
    status = hpct_gpus_assign(tasks, gpus, distance, chosen);
    for (int task = 0; task < tasks && status == HPCT_OK; task++) {
        const hpct_gpus_request_task *one = &request->tasks[task];
        for (places[task] = 0; one->gpus[places[task]] != chosen[task]; places[task]++)
            ;
    }
end:
    free(from_cpu);
    free(distance);
    free(chosen);
    hpct_gpus_topology_close(topology);
    hpct_gpus_nvml_close(nvml);
    return status;
}
