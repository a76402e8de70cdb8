/* Number of threads from the affinity mask and Slurm's environment, and thread binding. */
#include "agent/rank/threads.h"

#include "agent/data/sampler.h"
#include "base/digest.h"
#include "base/status.h"
#include "nn/backend/cpu/backend.h"
#include "nn/run/step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CPUS (1 << 16)

/* Set by hpct_rank_threads_set: this rank's index among those with the same mask, their number, and
 * whether this rank uses all cores of its part. */
static struct {
    int index, sharers;
    bool all_cores;
    int cores, alone;
} own = {0, 1, false, 1, 1};

cpu_set_t *hpct_rank_threads_mask(size_t *bytes)
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

/* Reads a number from the cpu's topology in sysfs; -1 if not available. */
static int topology(int cpu, const char *name)
{
    char path[96];
    int value = -1;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/%s", cpu, name);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return -1;
    if (fscanf(file, "%d", &value) != 1)
        value = -1;
    fclose(file);
    return value;
}

/* The lowest-numbered hardware thread of cpu's core; cpu itself if unknown. */
static int first_sibling(int cpu)
{
    int first = topology(cpu, "thread_siblings_list");
    return first < 0 || first > cpu ? cpu : first;
}

int hpct_rank_threads_cores(const cpu_set_t *mask, size_t bytes)
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

int hpct_rank_threads_share(int cores, int sharers, const char *cpus_per_task,
                            const char *cpus_on_node, int local_size)
{
    int threads = sharers > 1 ? cores / sharers : cores;
    int given = positive(cpus_per_task), here = positive(cpus_on_node);
    /* Slurm up to 23.02 sets the job's SLURM_CPUS_PER_TASK in steps with fewer CPUs, too
     * (--exact). */
    int share = here == 0 ? 0 : local_size > 0 && here > local_size ? here / local_size : 1;
    if (given > 0 && given < threads)
        threads = given;
    if (share > 0 && share < threads)
        threads = share;
    return threads < 1 ? 1 : threads;
}

/* A hardware thread, sorted by socket, then core. */
typedef struct place {
    int socket, core, cpu;
} place;

static int compare_places(const void *a, const void *b)
{
    const place *x = a, *y = b;
    int socket = (x->socket > y->socket) - (x->socket < y->socket);
    int core = (x->core > y->core) - (x->core < y->core);
    return socket != 0 ? socket : core != 0 ? core : (x->cpu > y->cpu) - (x->cpu < y->cpu);
}

bool hpct_rank_threads_part(const cpu_set_t *mask, size_t bytes, int part, int parts,
                            cpu_set_t *out)
{
    int cores = hpct_rank_threads_cores(mask, bytes), num = 0, core = -1;
    int64_t first, count = hpct_data_slice(cores, part, parts, &first);
    place *places = calloc((size_t) CPU_COUNT_S(bytes, mask) + 1, sizeof *places);
    CPU_ZERO_S(bytes, out);
    if (cores < parts || places == NULL) {
        free(places);
        return false;
    }
    for (size_t cpu = 0; cpu < 8 * bytes; cpu++) {
        if (CPU_ISSET_S(cpu, bytes, mask))
            places[num++] = (place){topology((int) cpu, "physical_package_id"),
                                    first_sibling((int) cpu), (int) cpu};
    }
    qsort(places, (size_t) num, sizeof *places, compare_places);
    for (int i = 0; i < num; i++) {
        core += i == 0 || places[i].core != places[i - 1].core;
        if (core >= first && core < first + count)
            CPU_SET_S((size_t) places[i].cpu, bytes, out);
    }
    free(places);
    return true;
}

void hpct_rank_threads_bind(int part, int parts)
{
    size_t bytes = 0;
    cpu_set_t *mask = own.all_cores ? hpct_rank_threads_mask(&bytes) : NULL;
    cpu_set_t *mine = mask != NULL ? CPU_ALLOC(8 * bytes) : NULL;
    if (mine != NULL &&
        hpct_rank_threads_part(mask, bytes, own.index * parts + part, own.sharers * parts, mine)) {
#pragma omp parallel
        sched_setaffinity(0, bytes, mine);
    }
    if (mask != NULL)
        CPU_FREE(mask);
    if (mine != NULL)
        CPU_FREE(mine);
}

/* Number of ranks on this node with this mask, this one included; *index: how many of them have
 * lower ranks. */
static hpct_status count_sharers(hpct_context *context, const cpu_set_t *mask, size_t bytes,
                                 int *sharers, int *index)
{
    struct record {
        uint64_t mask_hash;
        char node[64];
    } mine = {.mask_hash = hpct_digest_64(mask, bytes)}, *all;
    hpct_comm *comm = hpct_context_comm(context);
    strncpy(mine.node, hpct_context_node(context), sizeof mine.node - 1);
    all = malloc((size_t) comm->size * sizeof mine);
    if (all == NULL)
        return hpct_fail_memory((size_t) comm->size * sizeof mine);
    hpct_status status = comm->ops->allgather(comm, &mine, all, sizeof mine);
    *sharers = *index = 0;
    for (int rank = 0; status == HPCT_OK && rank < comm->size; rank++) {
        bool shares = all[rank].mask_hash == mine.mask_hash &&
                      memcmp(all[rank].node, mine.node, sizeof mine.node) == 0;
        *sharers += shares;
        *index += shares && rank < comm->rank;
    }
    free(all);
    return status;
}

hpct_rank_threads_owner hpct_rank_threads_of(void)
{
    int threads = hpct_cpu_threads();
    return (hpct_rank_threads_owner){.cores = own.cores,
                                     .sharers = own.sharers,
                                     .threads = threads,
                                     .alone = own.alone,
                                     .crowded =
                                         own.sharers > 1 && own.sharers * threads > own.cores};
}

hpct_status hpct_rank_threads_set(hpct_context *context)
{
    size_t bytes = 0;
    int sharers = 1, index = 0;
    bool slurm = hpct_context_config(context)->job != NULL;
    const char *wanted = getenv("OMP_NUM_THREADS");
    cpu_set_t *mask = hpct_rank_threads_mask(&bytes);
    hpct_status status = hpct_context_agree(
        context,
        mask == NULL ? hpct_fail(HPCT_ERR_INTERNAL, "the processor affinity is unknown") : HPCT_OK);
    if (status == HPCT_OK)
        status = count_sharers(context, mask, bytes, &sharers, &index);
    int cores = mask != NULL ? hpct_rank_threads_cores(mask, bytes) : 1, alone = hpct_cpu_threads();
    if (status == HPCT_OK && (wanted == NULL || atoi(wanted) < 1)) {
        const char *task = slurm ? getenv("SLURM_CPUS_PER_TASK") : NULL,
                   *node = slurm ? getenv("SLURM_CPUS_ON_NODE") : NULL;
        hpct_cpu_set_threads(hpct_rank_threads_share(cores, sharers, task, node,
                                                     hpct_context_config(context)->local_size));
        alone = hpct_rank_threads_share(cores, 1, task, node, 1);
    }
    if (status == HPCT_OK) {
        own.index = index;
        own.sharers = sharers;
        own.all_cores = hpct_cpu_threads() >= cores / sharers;
        own.cores = cores;
        own.alone = alone;
    }
    if (mask != NULL)
        CPU_FREE(mask);
    return status;
}
