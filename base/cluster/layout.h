/* base/cluster/layout.h - the node of each rank: Slurm's distributions, computed from tasks per
 * node. Independent of SPANK; callers compare with Slurm's own numbers. */
#ifndef HPCT_BASE_CLUSTER_LAYOUT_H
#define HPCT_BASE_CLUSTER_LAYOUT_H

#include <hpctrain/status.h>

typedef enum hpct_cluster_distribution_kind {
    HPCT_CLUSTER_DISTRIBUTION_BLOCK,
    HPCT_CLUSTER_DISTRIBUTION_CYCLIC,
    HPCT_CLUSTER_DISTRIBUTION_PLANE,
    HPCT_CLUSTER_DISTRIBUTION_ARBITRARY,
} hpct_cluster_distribution_kind;

typedef struct hpct_cluster_distribution {
    hpct_cluster_distribution_kind kind;
    int plane; /* tasks per node and turn; PLANE only */
} hpct_cluster_distribution;

typedef struct hpct_cluster_layout {
    int num_nodes, size;
    int *tasks; /* [num_nodes] */
    int *node;  /* [size] node of each rank */
    int *local; /* [size] index of each rank among its node's */
} hpct_cluster_layout;

/* Parses srun's --distribution as in SLURM_DISTRIBUTION: only the first level, up to ':' or ','.
 * NULL is block. The plane size is in the text ("plane=4") or `plane_size` (SLURM_DIST_PLANESIZE,
 * may be NULL). Returns HPCT_ERR_CONFIG if malformed. */
hpct_status hpct_cluster_distribution_parse(const char *text, const char *plane_size,
                                            hpct_cluster_distribution *out);

/* Distributes ranks as slurmctld does. `tasks` (copied): tasks of each node, at least 1. `placed`,
 * for ARBITRARY: the node of each rank; HPCT_ERR_CONFIG if it contradicts `tasks` or is NULL. Freed
 * with hpct_cluster_layout_free. */
hpct_status hpct_cluster_layout_make(const int *tasks, int num_nodes,
                                     hpct_cluster_distribution distribution, const int *placed,
                                     hpct_cluster_layout *out);
void hpct_cluster_layout_free(hpct_cluster_layout *layout);

/* Maximal tasks per node. */
int hpct_cluster_layout_max_tasks(const hpct_cluster_layout *layout);

#endif
