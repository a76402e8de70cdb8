/* agent/memory.h - how much memory this process may still take. */
#ifndef HPCT_AGENT_MEMORY_H
#define HPCT_AGENT_MEMORY_H

#include <stddef.h>

/* Bytes: what the machine has available, or less where a cgroup of this process (Slurm's, a
 * container's) leaves less; file caches count as free. SIZE_MAX where the system does not say. */
size_t hpct_memory_available(void);

/* The same, reading below these folders instead of /proc and /sys/fs/cgroup; for tests. */
size_t hpct_memory_available_in(const char *proc, const char *cgroups);

#endif
