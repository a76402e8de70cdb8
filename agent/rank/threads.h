/* agent/rank/threads.h - number of compute threads of a rank. */
#ifndef HPCT_AGENT_RANK_THREADS_H
#define HPCT_AGENT_RANK_THREADS_H

#include "agent/rank/context.h"

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

/* Sets the number of threads: OMP_NUM_THREADS, else one per core of this rank's affinity mask,
 * divided among the ranks of the node with the same mask, at most the CPUs Slurm gave the task.
 * Collective. */
hpct_status hpct_rank_threads_set(hpct_context *context);

/* Core usage of this rank, set by hpct_rank_threads_set. */
typedef struct hpct_rank_threads_owner {
    int cores;    /* in its affinity mask */
    int sharers;  /* ranks of the node with the same mask, this one included */
    int threads;  /* compute threads */
    int alone;    /* threads it would use without the other sharers */
    bool crowded; /* the sharers use more threads than cores */
} hpct_rank_threads_owner;

hpct_rank_threads_owner hpct_rank_threads_of(void);

/* Binds the calling thread and its OpenMP threads to part `part` of `parts` of this rank's cores.
 * No effect before hpct_rank_threads_set, if this rank does not use all of its cores, if there are
 * fewer cores than parts, or if the system refuses. */
void hpct_rank_threads_bind(int part, int parts);

/* Hardware threads of part `part` of `parts` of the cores in `mask`, equal to within a core, cores
 * of one socket together; false, with *out empty, if there are fewer cores than parts. */
bool hpct_rank_threads_part(const cpu_set_t *mask, size_t bytes, int part, int parts,
                            cpu_set_t *out);

/* The process's affinity mask, for CPU_*_S macros, freed with CPU_FREE. */
cpu_set_t *hpct_rank_threads_mask(size_t *bytes);

/* Cores in a mask: hardware threads of one core count once. */
int hpct_rank_threads_cores(const cpu_set_t *mask, size_t bytes);

/* Threads per rank if `sharers` ranks have the same mask and Slurm's limit is given (NULL: none);
 * at least 1. */
int hpct_rank_threads_share(int cores, int sharers, const char *cpus_per_task,
                            const char *cpus_on_node, int local_size);

#endif
