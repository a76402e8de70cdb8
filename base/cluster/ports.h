/* base/cluster/ports.h - candidate ports of a step: equal on every node, computed from job and
 * step; spank/ports_check.h checks whether they are free. Independent of SPANK. */
#ifndef HPCT_BASE_CLUSTER_PORTS_H
#define HPCT_BASE_CLUSTER_PORTS_H

#include <hpctrain/status.h>
#include <stdint.h>

/* Block size for steps of at most this many tasks per node. */
#define HPCT_CLUSTER_PORT_BLOCK 64

/* Maximal number of candidate blocks. */
#define HPCT_CLUSTER_PORT_CHOICES 64

#define HPCT_CLUSTER_HIGHEST_PORT 65535

/* low..high, or with `single` the port of local id 0, the next ones following */
typedef struct hpct_cluster_port_range {
    int low, high;
    int single;
} hpct_cluster_port_range;

/* Parses "22000" or "22000-23000", between 1024 and 65535. Returns HPCT_ERR_USAGE. */
hpct_status hpct_cluster_port_range_parse(const char *text, hpct_cluster_port_range *out);

/* 20000-32767: below Linux's default ephemeral ports. Not derived from this machine's
 * ip_local_port_range, which may differ between nodes. */
hpct_cluster_port_range hpct_cluster_port_range_default(void);

/* The port of local id 0. The range is divided into blocks; steps of one job use consecutive ones
 * (and collide only when the range is exhausted, or when steps above HPCT_CLUSTER_PORT_BLOCK tasks
 * per node run beside smaller ones); jobs with similar ids start far apart. `choice`: 0, or a
 * following block up to hpct_cluster_port_choices. Returns HPCT_ERR_CONFIG if the range has fewer
 * than `max_tasks` ports. */
hpct_status hpct_cluster_port_base(hpct_cluster_port_range range, uint32_t job, uint32_t step,
                                   int max_tasks, int choice, int *base);

/* Number of candidate blocks: 1 to HPCT_CLUSTER_PORT_CHOICES; 1 with `single`. */
int hpct_cluster_port_choices(hpct_cluster_port_range range, int max_tasks);

/* Parses SLURM_STEP_RESV_PORTS, "12000-12003,12010", reserved by `srun --resv-ports` on each node.
 * Writes the first `max` to `ports`, their number to *count. Returns HPCT_ERR_CONFIG if malformed.
 */
hpct_status hpct_cluster_ports_reserved(const char *text, int *ports, int max, int *count);

#endif
