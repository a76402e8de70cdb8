/* base/cluster/cluster.h - a step's cluster as described by Slurm's variables, and each task's
 * config. Used by the plugin, and by the agent without plugin. */
#ifndef HPCT_BASE_CLUSTER_CLUSTER_H
#define HPCT_BASE_CLUSTER_CLUSTER_H

#include <stdint.h>

#include "base/cluster/config.h"
#include "base/cluster/hosts.h"
#include "base/cluster/layout.h"
#include "base/cluster/ports.h"
#include "base/cluster/roles.h"

typedef struct hpct_cluster {
    char **names; /* [layout.num_nodes] */
    char **hosts; /* addresses of the nodes; NULL: their names */
    hpct_cluster_layout layout;
    bool spans_components;
    int *ports; /* [maximal tasks per node], by local id */
} hpct_cluster;

/* Reads SLURM_STEP_NODELIST, SLURM_STEP_TASKS_PER_NODE, SLURM_DISTRIBUTION, SLURM_DIST_PLANESIZE.
 * `slurm_tasks` is Slurm's number of tasks in the caller's component, 0 if unknown: a step with
 * more tasks has several components (`srun … : …`), see base/cluster/components.h, with nodes in
 * the order of SLURM_NODEID. For arbitrary layouts also reads the map, the file named by
 * SLURM_HOSTFILE or SLURM_ARBITRARY_NODELIST. Returns HPCT_ERR_CONFIG, naming the variable. */
hpct_status hpct_cluster_from_slurm(const hpct_cluster_environment *environment, long slurm_tasks,
                                    hpct_cluster *out);

/* Sets the addresses of the nodes; otherwise their names are used. */
hpct_status hpct_cluster_set_hosts(hpct_cluster *cluster,
                                   const hpct_cluster_environment *environment,
                                   hpct_cluster_address_lookup lookup);

/* Sets the port of every local id: from `range` unless NULL, else the ports reserved by srun
 * (SLURM_STEP_RESV_PORTS) if they suffice, else a block of `otherwise`. Reserved ports are not used
 * in a step over components, where the others do not know them. `choice`: the block
 * (hpct_cluster_port_base); *choices (may be NULL): number of blocks. */
hpct_status hpct_cluster_set_ports(hpct_cluster *cluster,
                                   const hpct_cluster_environment *environment,
                                   const hpct_cluster_port_range *range,
                                   hpct_cluster_port_range otherwise, uint32_t job, uint32_t step,
                                   int choice, int *choices);

/* A port besides the tasks', equal on every node, for use before the tasks start; if none is left,
 * that of local id 0. Call after hpct_cluster_set_ports with the same arguments. */
int hpct_cluster_spare_port(const hpct_cluster *cluster,
                            const hpct_cluster_environment *environment,
                            const hpct_cluster_port_range *range,
                            hpct_cluster_port_range otherwise);

/* The nodes as "HOST:PORT" lines, in order, freed by the caller. NULL if out of memory. */
char *hpct_cluster_hosts(const hpct_cluster *cluster, int port);

/* The config of one rank, without gpu, tmpdir and data. `roles` (NULL: all workers) may be open
 * (hpct_cluster_roles_fit). `gpus` (may be NULL): GPUs per node. *out is freed with
 * hpct_cluster_config_free. Returns HPCT_ERR_CONFIG if roles and tasks differ in number. */
hpct_status hpct_cluster_config_of(const hpct_cluster *cluster, int rank, uint32_t job,
                                   uint32_t step, const hpct_cluster_roles *roles, const int *gpus,
                                   hpct_cluster_config **out);

void hpct_cluster_free(hpct_cluster *cluster);

/* This node's index in the job, if Slurm provides it; in a heterogeneous job, of which `job` is one
 * component, counted over all components. Else `in_step`. */
uint32_t hpct_cluster_node_in_job(const hpct_cluster_environment *environment, uint32_t job,
                                  uint32_t in_step);

#endif
