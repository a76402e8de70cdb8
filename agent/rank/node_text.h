/* agent/rank/node_text.h - files of /proc and cgroups as texts, which end with a zero. They may be
 * cut, or of a kernel with other fields: what is not understood is left out. */
#ifndef HPCT_AGENT_RANK_NODE_TEXT_H
#define HPCT_AGENT_RANK_NODE_TEXT_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* /proc/stat: clock ticks of some CPUs. */
typedef struct hpct_rank_cpu_ticks {
    uint64_t all, stolen; /* idle time included */
} hpct_rank_cpu_ticks;

/* Sums the complete lines of CPUs in `mask` (of `bytes`); false if there is none. */
bool hpct_rank_node_text_cpus(const char *text, const cpu_set_t *mask, size_t bytes,
                              hpct_rank_cpu_ticks *out);

/* /proc/PID/stat */
typedef struct hpct_rank_process_text {
    int pid, parent, cpu; /* cpu: where it ran last */
    char name[16];        /* what is not printable ASCII is '?' */
    uint64_t ticks;       /* of CPU time, its threads included */
    uint64_t started;
} hpct_rank_process_text;

bool hpct_rank_node_text_process(const char *text, hpct_rank_process_text *out);

/* cpu.stat of a cgroup: enforcement periods so far, and those in which its processes had to
 * wait. */
typedef struct hpct_rank_quota_text {
    uint64_t periods, throttled;
} hpct_rank_quota_text;

bool hpct_rank_node_text_quota(const char *text, hpct_rank_quota_text *out);

/* A line of /proc/PID/cgroup without its newline: the path, if it is that of the CPU controller
 * (*unified: of version 2); else NULL. */
const char *hpct_rank_node_text_cgroup(const char *line, bool *unified);

/* A file of one number, which is not negative. */
bool hpct_rank_node_text_number(const char *text, uint64_t *out);

/* /proc/PID/environ: the value of a variable, or NULL. The block ends with a zero, at
 * block[size]. */
const char *hpct_rank_node_text_variable(const char *block, size_t size, const char *name);

#endif
