/* agent/threads.h - how many threads a rank computes with. */
#ifndef HPCT_AGENT_THREADS_H
#define HPCT_AGENT_THREADS_H

#include "agent/context.h"

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

/* Sets the number of threads of this rank's computation: OMP_NUM_THREADS where that is set, else
 * one per processor core of this rank's affinity mask, shared among the ranks of the node that have
 * the same mask, and never more than the processors that Slurm gave the task. Collective. */
hpct_status hpct_threads_set(hpct_context *context);

/* Whose the cores are that this rank computes on, since hpct_threads_set. */
typedef struct hpct_threads_owner {
    int cores;    /* in its affinity mask */
    int sharers;  /* ranks of its node with the same mask, this one included */
    int threads;  /* that it computes with */
    int alone;    /* that it would compute with if it were the only one of them */
    bool crowded; /* all of them together compute with more threads than there are cores */
} hpct_threads_owner;

hpct_threads_owner hpct_threads_of(void);

/* Binds the calling thread, and its OpenMP threads, to part `part` of `parts` of this rank's cores,
 * for threads that compute side by side. Nothing where that could be wrong: before
 * hpct_threads_set, where this rank does not compute on all of its cores, where there are fewer
 * cores than parts, or where the system refuses. */
void hpct_threads_bind(int part, int parts);

/* The hardware threads of part `part` of `parts` of the cores in `mask`, parts of one size but for
 * a core, cores of one socket together; false, and *out empty, when there are fewer cores than
 * parts.
 */
bool hpct_threads_part(const cpu_set_t *mask, size_t bytes, int part, int parts, cpu_set_t *out);

/* The calling process's affinity mask, for CPU_…_S macros, to be freed with CPU_FREE. */
cpu_set_t *hpct_threads_mask(size_t *bytes);

/* Cores in a mask: two hardware threads of a core count once. */
int hpct_threads_cores(const cpu_set_t *mask, size_t bytes);

/* What is left of `cores` when `sharers` ranks have the same mask and Slurm says so much (NULL
 * where it says nothing); at least 1. */
int hpct_threads_share(int cores, int sharers, const char *cpus_per_task, const char *cpus_on_node,
                       int local_size);

#endif
