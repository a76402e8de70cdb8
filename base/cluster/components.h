/* base/cluster/components.h - locations of ranks in steps over several components (`srun … : …`)
 * and in arbitrary layouts. Independent of SPANK. */
#ifndef HPCT_BASE_CLUSTER_COMPONENTS_H
#define HPCT_BASE_CLUSTER_COMPONENTS_H

#include "base/cluster/config.h"

/* Slurm 22.05 gives the tasks of a step over components the sorted list of all nodes, the tasks of
 * each, and SLURM_PROCID and SLURM_NODEID counted over all components, but neither the components'
 * borders nor their distributions. Slurm's PMIx plugin has the complete map,
 * SLURM_PMIX_MAPPING_SERV: "(vector,(0,2,1),(2,1,3))" are runs of (first node in the list, nodes,
 * ranks on each). */

/* *placed (freed by the caller) is the node of each rank, or NULL without a map, or with an
 * inherited one of another step. */
hpct_status hpct_cluster_map_place(const hpct_cluster_environment *environment, const int *tasks,
                                   int num_nodes, int **placed);

/* Without a map: a component's nodes are those of the step in SLURM_JOB_NODELIST_HET_GROUP_i (or
 * ..._PACK_GROUP_i); its ranks are assumed to be distributed in blocks. Returns HPCT_ERR_CONFIG if
 * the job has no component variables. */
hpct_status hpct_cluster_components_place(const hpct_cluster_environment *environment,
                                          char *const *names, const int *tasks, int num_nodes,
                                          int **placed);

/* Whether the step's nodes belong to several components of its job; false without component
 * variables. */
hpct_status hpct_cluster_components_spanned(const hpct_cluster_environment *environment,
                                            char *const *names, int num_nodes, bool *spanned);

#endif
