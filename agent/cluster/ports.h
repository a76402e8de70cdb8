/* agent/cluster/ports.h - where the tasks of a step may listen: the same numbers on every node,
 * computed from job and step alone: which of them are free is another matter. Knows nothing of
 * SPANK. */
#ifndef HPCT_CLUSTER_PORTS_H
#define HPCT_CLUSTER_PORTS_H

#include <hpctrain/status.h>
#include <stdint.h>

/* Steps of at most this many tasks per node get a block of this many ports each. */
#define HPCT_PORT_BLOCK 64

/* Of at most this many blocks a step may take one. */
#define HPCT_PORT_CHOICES 64

#define HPCT_HIGHEST_PORT 65535

/* low..high, or with `single` the port of local id 0, the next ones following. */
typedef struct hpct_port_range {
    int low, high;
    int single;
} hpct_port_range;

/* "22000" or "22000-23000", between 1024 and 65535. HPCT_ERR_USAGE saying what is wrong. */
hpct_status hpct_port_range_parse(const char *text, hpct_port_range *out);

/* 20000-32767: below the ports that Linux gives to outgoing connections, which could be taken at
 * any moment. Never what this machine says of them (ip_local_port_range): the nodes of a step must
 * come to the same numbers, and that setting need not be the same on all of them. */
hpct_port_range hpct_port_range_default(void);

/* The port of local id 0. A range is cut into blocks; the steps of one job take one after the other
 * (they meet only when the range is used up, or when steps above HPCT_PORT_BLOCK tasks per node run
 * beside smaller ones), and jobs with near numbers start far apart. `choice` is 0 for that block,
 * and counts those that follow it, up to hpct_port_choices.
 * HPCT_ERR_CONFIG when the range holds fewer than `max_tasks` ports. */
hpct_status hpct_port_base(hpct_port_range range, uint32_t job, uint32_t step, int max_tasks,
                           int choice, int *base);

/* How many blocks there are to choose from: 1 to HPCT_PORT_CHOICES; with `single` it is 1. */
int hpct_port_choices(hpct_port_range range, int max_tasks);

/* SLURM_STEP_RESV_PORTS: "12000-12003,12010", the ports that `srun --resv-ports` reserved on each
 * node. Writes the first `max` of them to `ports` and their number to *count.
 * HPCT_ERR_CONFIG when the text is not of that form. */
hpct_status hpct_ports_reserved(const char *text, int *ports, int max, int *count);

#endif
