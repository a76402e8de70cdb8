/* agent/memory.h - how much memory this process may still take. The machine's memory, a cgroup's, a
 * Slurm job's are shared by the ranks of a node: each counts on its part. */
#ifndef HPCT_AGENT_MEMORY_H
#define HPCT_AGENT_MEMORY_H

#include "agent/comm/comm.h"

#include <stddef.h>
#include <stdint.h>

#define HPCT_MEMORY_LEVELS 16

/* Something that limits the memory of this process, and perhaps of others. */
typedef struct hpct_memory_level {
    const char *whose; /* "machine", "cgroup", "Slurm job" */
    uint64_t id;       /* not 0; on one node equal ids are the same thing */
    size_t left;       /* bytes; file caches count as free */
    size_t taken;      /* by this process, and to be paid from its part of `left` */
} hpct_memory_level;

/* Returns how many there are: what the machine has available, the cgroups above this process
 * (Slurm's, a container's) that have limits, and what the Slurm job asked for where none has.
 * `proc` and `cgroups` stand for /proc and /sys/fs/cgroup. */
int hpct_memory_levels_in(const char *proc, const char *cgroups,
                          hpct_memory_level levels[HPCT_MEMORY_LEVELS]);

/* What this rank may take. */
typedef struct hpct_memory_share {
    size_t bytes;      /* SIZE_MAX where the system does not say */
    const char *whose; /* memory it is part of, the tightest one */
    int ranks;         /* that share this memory */
} hpct_memory_share;

/* Finds out which ranks of which node share what, from then on and for the whole process. Before
 * it, or where it was never called, the process stands alone. Collective; `node` is the name of
 * this rank's. */
hpct_status hpct_memory_meet(hpct_comm *comm, const char *node);
hpct_status hpct_memory_meet_in(hpct_comm *comm, const char *node, const char *proc,
                                const char *cgroups);

/* Reads anew what is left. */
hpct_memory_share hpct_memory_share_now(void);
hpct_memory_share hpct_memory_share_in(const char *proc, const char *cgroups);

#endif
