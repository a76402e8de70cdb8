/* agent/cluster/layout.h - which rank runs where: Slurm's distributions, computed from the tasks
 * per node. Knows nothing of SPANK; who has Slurm's own numbers for a task compares them with
 * these. */
#ifndef HPCT_CLUSTER_LAYOUT_H
#define HPCT_CLUSTER_LAYOUT_H

#include <hpctrain/status.h>

typedef enum hpct_distribution_kind {
    HPCT_DISTRIBUTION_BLOCK,
    HPCT_DISTRIBUTION_CYCLIC,
    HPCT_DISTRIBUTION_PLANE,
    HPCT_DISTRIBUTION_ARBITRARY,
} hpct_distribution_kind;

typedef struct hpct_distribution {
    hpct_distribution_kind kind;
    int plane; /* tasks dealt to a node at a time; PLANE only */
} hpct_distribution;

typedef struct hpct_layout {
    int num_nodes, size;
    int *tasks; /* [num_nodes] */
    int *node;  /* [size] node of each rank */
    int *local; /* [size] place of each rank among its node's, by rank */
} hpct_layout;

/* Reads srun's --distribution as SLURM_DISTRIBUTION shows it: only its first level matters, so what
 * follows ':' or ',' is skipped. NULL is block. The plane's size is taken from the text ("plane=4")
 * or from `plane_size` (SLURM_DIST_PLANESIZE, may be NULL). HPCT_ERR_CONFIG for anything else. */
hpct_status hpct_distribution_parse(const char *text, const char *plane_size,
                                    hpct_distribution *out);

/* Deals the ranks out as slurmctld does. `tasks` (copied) holds each node's count, all at least 1.
 * `placed` is for ARBITRARY: the node of each of the sum(tasks) ranks; HPCT_ERR_CONFIG when it does
 * not give each node its count, or is NULL. The layout is freed with hpct_layout_free. */
hpct_status hpct_layout_make(const int *tasks, int num_nodes, hpct_distribution distribution,
                             const int *placed, hpct_layout *out);
void hpct_layout_free(hpct_layout *layout);

/* The largest number of tasks on one node. */
int hpct_layout_max_tasks(const hpct_layout *layout);

#endif
