/* agent/cluster/components.h - which rank is where in a step over several components (`srun … : …`)
 * and in arbitrary layouts, from what else Slurm says of it. Knows nothing of SPANK. */
#ifndef HPCT_CLUSTER_COMPONENTS_H
#define HPCT_CLUSTER_COMPONENTS_H

#include "agent/cluster/config.h"

/* What a step over components gives its tasks, on Slurm 22.05: the nodes of all components in one
 * sorted list, the tasks of each, and SLURM_PROCID and SLURM_NODEID counted through the components.
 * Where one component ends, and how each deals out its tasks, is not said. But Slurm's PMIx plugin
 * leaves the whole map, SLURM_PMIX_MAPPING_SERV: "(vector,(0,2,1),(2,1,3))" are runs of (first node
 * in the list, nodes, ranks on each). */

/* *placed (to be freed) is the node of each rank, or NULL when there is no map, or one that is of
 * another step (inherited). */
hpct_status hpct_map_place(const hpct_environment *environment, const int *tasks, int num_nodes,
                           int **placed);

/* Without a map: the nodes of each component are those of the step that belong to the component of
 * the job, SLURM_JOB_NODELIST_HET_GROUP_i (or ..._PACK_GROUP_i), and each component's ranks are
 * taken to be dealt out in blocks. HPCT_ERR_CONFIG when the job says nothing of components. */
hpct_status hpct_components_place(const hpct_environment *environment, char *const *names,
                                  const int *tasks, int num_nodes, int **placed);

/* Whether the nodes of a step belong to more than one component of its job; false where the job
 * says nothing of components. */
hpct_status hpct_components_spanned(const hpct_environment *environment, char *const *names,
                                    int num_nodes, bool *spanned);

#endif
