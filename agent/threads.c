/* Threads from the affinity mask, and what else tells whose the processors are. */
#include "agent/threads.h"

#include "base/status.h"
#include "nn/step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CPUS (1 << 16)

cpu_set_t *hpct_threads_mask(size_t *bytes)
{
    for (size_t cpus = 1024; cpus <= MAX_CPUS; cpus *= 2) {
        cpu_set_t *mask = CPU_ALLOC(cpus);
        *bytes = CPU_ALLOC_SIZE(cpus);
        if (mask == NULL)
            return NULL;
        CPU_ZERO_S(*bytes, mask);
        if (sched_getaffinity(0, *bytes, mask) == 0)
            return mask;
        CPU_FREE(mask); /* too small for this kernel */
    }
    return NULL;
}

/* The lowest-numbered hardware thread of cpu's core; cpu itself where the system does not say. */
static int first_sibling(int cpu)
{
    char path[96];
    int first = cpu;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return cpu;
    if (fscanf(file, "%d", &first) != 1 || first < 0 || first > cpu)
        first = cpu;
    fclose(file);
    return first;
}

int hpct_threads_cores(const cpu_set_t *mask, size_t bytes)
{
    int cores = 0;
    size_t seen_bytes = bytes;
    cpu_set_t *seen = CPU_ALLOC(8 * bytes);
    if (seen == NULL)
        return CPU_COUNT_S(bytes, mask);
    CPU_ZERO_S(seen_bytes, seen);
    for (size_t cpu = 0; cpu < 8 * bytes; cpu++) {
        if (!CPU_ISSET_S(cpu, bytes, mask))
            continue;
        size_t first = (size_t) first_sibling((int) cpu);
        if (!CPU_ISSET_S(first, seen_bytes, seen))
            cores++;
        CPU_SET_S(first, seen_bytes, seen);
    }
    CPU_FREE(seen);
    return cores;
}

static int positive(const char *text)
{
    return text == NULL ? 0 : atoi(text);
}

int hpct_threads_share(int cores, int sharers, const char *cpus_per_task, const char *cpus_on_node,
                       int local_size)
{
    int threads = sharers > 1 ? cores / sharers : cores;
    int given = positive(cpus_per_task);
    if (given == 0 && local_size > 0)
        given = positive(cpus_on_node) / local_size;
    if (positive(cpus_on_node) > 0 && given == 0)
        given = 1;
    if (given > 0 && given < threads)
        threads = given;
    return threads < 1 ? 1 : threads;
}

/* How many ranks of this node have this very mask, this one included. */
static hpct_status count_sharers(hpct_context *context, const cpu_set_t *mask, size_t bytes,
                                 int *sharers)
{
    struct record {
        uint64_t mask_hash;
        char node[64];
    } mine = {.mask_hash = 0xcbf29ce484222325u}, *all;
    hpct_comm *comm = hpct_context_comm(context);
    for (size_t cpu = 0; cpu < 8 * bytes; cpu++) {
        if (CPU_ISSET_S(cpu, bytes, mask))
            mine.mask_hash = (mine.mask_hash ^ cpu) * 0x100000001b3u;
    }
    strncpy(mine.node, hpct_context_node(context), sizeof mine.node - 1);
    all = malloc((size_t) comm->size * sizeof mine);
    if (all == NULL)
        return hpct_fail_memory((size_t) comm->size * sizeof mine);
    hpct_status status = comm->ops->allgather(comm, &mine, all, sizeof mine);
    *sharers = 0;
    for (int rank = 0; status == HPCT_OK && rank < comm->size; rank++) {
        if (all[rank].mask_hash == mine.mask_hash &&
            memcmp(all[rank].node, mine.node, sizeof mine.node) == 0)
            ++*sharers;
    }
    free(all);
    return status;
}

hpct_status hpct_threads_set(hpct_context *context)
{
    size_t bytes = 0;
    int sharers = 1;
    bool slurm = hpct_context_config(context)->job != NULL;
    const char *wanted = getenv("OMP_NUM_THREADS");
    cpu_set_t *mask = hpct_threads_mask(&bytes);
    hpct_status status = hpct_context_agree(
        context,
        mask == NULL ? hpct_fail(HPCT_ERR_INTERNAL, "the processor affinity is unknown") : HPCT_OK);
    if (status == HPCT_OK)
        status = count_sharers(context, mask, bytes, &sharers);
    if (status == HPCT_OK && (wanted == NULL || atoi(wanted) < 1))
        hpct_cpu_set_threads(hpct_threads_share(
            hpct_threads_cores(mask, bytes), sharers, slurm ? getenv("SLURM_CPUS_PER_TASK") : NULL,
            slurm ? getenv("SLURM_CPUS_ON_NODE") : NULL, hpct_context_config(context)->local_size));
    if (mask != NULL)
        CPU_FREE(mask);
    return status;
}
