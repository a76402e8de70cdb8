/* agent/cluster/cluster.h - one step's cluster as Slurm's variables describe it, and each task's
 * config from it. The plugin and the agent without plugin compute it with these same functions. */
#ifndef HPCT_CLUSTER_CLUSTER_H
#define HPCT_CLUSTER_CLUSTER_H

#include <stdint.h>

#include "agent/cluster/config.h"
#include "agent/cluster/hosts.h"
#include "agent/cluster/layout.h"
#include "agent/cluster/ports.h"
#include "agent/cluster/roles.h"

typedef struct hpct_cluster {
    char **names; /* [layout.num_nodes] */
    char **hosts; /* the same: where each can be reached; NULL: by its name */
    hpct_layout layout;
    bool spans_components;
    int *ports; /* [largest number of tasks on a node], by local id */
} hpct_cluster;

/* Reads SLURM_STEP_NODELIST, SLURM_STEP_TASKS_PER_NODE, SLURM_DISTRIBUTION, SLURM_DIST_PLANESIZE.
 * `slurm_tasks` is the number of tasks that Slurm itself counts in the caller's component of the
 * step, 0 when it is not known: a step that has more is one over several components (`srun … : …`),
 * which is read as agent/cluster/components.h says, its nodes in the order of SLURM_NODEID. For
 * arbitrary layouts that map is read as well, or the file that SLURM_HOSTFILE names.
 * HPCT_ERR_CONFIG, naming the variable. */
hpct_status hpct_cluster_from_slurm(const hpct_environment *environment, long slurm_tasks,
                                    hpct_cluster *out);

/* Finds out by what the nodes can be reached; without it, by their names. */
hpct_status hpct_cluster_set_hosts(hpct_cluster *cluster, const hpct_environment *environment,
                                   hpct_address_lookup lookup);

/* Gives every local id its port: from `range` when not NULL, else the ports that srun reserved
 * (SLURM_STEP_RESV_PORTS) when they suffice, else a block of `otherwise`. In a step over components
 * each reserves its own, which the others do not know: there they are not used. `choice`: which of
 * the blocks (hpct_port_base); *choices, which may be NULL, becomes how many there are. */
hpct_status hpct_cluster_set_ports(hpct_cluster *cluster, const hpct_environment *environment,
                                   const hpct_port_range *range, hpct_port_range otherwise,
                                   uint32_t job, uint32_t step, int choice, int *choices);

/* A port beside those of the tasks, the same on every node, for what happens before the tasks
 * start; where there is none to spare (all that were reserved, or the whole block, belong to
 * tasks), that of local id 0. After hpct_cluster_set_ports, with the same arguments. */
int hpct_cluster_spare_port(const hpct_cluster *cluster, const hpct_environment *environment,
                            const hpct_port_range *range, hpct_port_range otherwise);

/* The nodes, one "HOST:PORT" per line, in their order; to be freed. NULL when out of memory. */
char *hpct_cluster_hosts(const hpct_cluster *cluster, int port);

/* The config of one rank, without gpu, tmpdir and data. `roles` (NULL: all are workers) may be open
 * (hpct_roles_fit). `gpus` (may be NULL) is the number of GPUs per node. *out is to be freed with
 * hpct_config_free. HPCT_ERR_CONFIG when the roles are not as many as the tasks. */
hpct_status hpct_cluster_config(const hpct_cluster *cluster, int rank, uint32_t job, uint32_t step,
                                const hpct_roles *roles, const int *gpus, hpct_config **out);

void hpct_cluster_free(hpct_cluster *cluster);

/* This node's number in the job, by SLURM_JOB_NODELIST, where Slurm says it; else `in_step`, as in
 * a job of several components. */
uint32_t hpct_node_in_job(const hpct_environment *environment, uint32_t in_step);

#endif
