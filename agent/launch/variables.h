/* agent/launch/variables.h - the variables that srun reads as options (srun(1), INPUT ENVIRONMENT
 * VARIABLES). Most hold for each run, and options made for a restart win over them; here are those
 * that a restart on fewer nodes needs otherwise. */
#ifndef HPCT_AGENT_LAUNCH_VARIABLES_H
#define HPCT_AGENT_LAUNCH_VARIABLES_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stddef.h>

/* Before the first run; `options` are srun's. HPCT_ERR_CONFIG: a step cannot be started again with
 * them. */
hpct_status hpct_launch_set_variables(char *const *options, const char *job);

/* Before a run with an arbitrary layout: `list` has a node for each task. */
hpct_status hpct_launch_set_hosts(const char *list, int nodes);

/* From a job's GPUs, as in SLURM_GPUS ("6", "a100:6"), and the text of `scontrol --oneliner
 * --details show job`: those of each node ("2", "a100:2"). HPCT_ERR_CONFIG: nodes have not the same
 * number of them. */
hpct_status hpct_launch_gpus_per_node(const char *gpus, const char *job, const char *text,
                                      char *out, size_t size);

#endif
