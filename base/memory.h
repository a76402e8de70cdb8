/* base/memory.h - how much more memory this process may use. Memory of the machine, a cgroup or a
 * Slurm job is shared by the ranks of a node; each counts on its share. */
#ifndef HPCT_BASE_MEMORY_H
#define HPCT_BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#define HPCT_PROC "/proc"
#define HPCT_CGROUPS "/sys/fs/cgroup"
#define HPCT_MEMORY_LEVELS 16

/* A memory limit of this process, possibly shared with others. */
typedef struct hpct_memory_level {
    const char *whose; /* "machine", "cgroup", "Slurm job" */
    uint64_t id;       /* not 0; equal ids on one node are the same limit */
    size_t left;       /* bytes; file caches count as free */
    size_t active;     /* file caches in use, which do not count as free, but can be dropped */
    size_t taken;      /* used by this process, and charged to its share of `left` */
} hpct_memory_level;

/* Returns the number of limits: the machine's available memory, limited cgroups above this process,
 * and the Slurm job's request if no cgroup enforces it. `proc` and `cgroups` replace /proc and
 * /sys/fs/cgroup. */
int hpct_memory_levels_in(const char *proc, const char *cgroups,
                          hpct_memory_level levels[HPCT_MEMORY_LEVELS]);

/* What this rank may use. */
typedef struct hpct_memory_share {
    size_t bytes;      /* SIZE_MAX if unknown */
    const char *whose; /* the tightest limit */
    int ranks;         /* ranks that share it */
} hpct_memory_share;

/* Sets for the whole process how many ranks share each of these limits; default 1, also for limits
 * not in ids. */
void hpct_memory_set_sharers(const uint64_t ids[HPCT_MEMORY_LEVELS],
                             const int ranks[HPCT_MEMORY_LEVELS]);

/* Reads the current values. */
hpct_memory_share hpct_memory_share_now(void);
hpct_memory_share hpct_memory_share_in(const char *proc, const char *cgroups);

#endif
