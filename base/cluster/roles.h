/* base/cluster/roles.h - roles by rank, from a list such as "ps:2,worker:6,chief,evaluator".
 * Independent of SPANK. */
#ifndef HPCT_BASE_CLUSTER_ROLES_H
#define HPCT_BASE_CLUSTER_ROLES_H

#include <hpctrain/status.h>
#include <stdbool.h>

#define HPCT_CLUSTER_MAX_ROLES 4

typedef struct hpct_cluster_role {
    const char *name; /* "worker"; static */
    int count;        /* 0: all remaining tasks; "worker" only */
} hpct_cluster_role;

typedef struct hpct_cluster_roles {
    hpct_cluster_role list[HPCT_CLUSTER_MAX_ROLES];
    int count; /* 0: all workers */
} hpct_cluster_roles;

/* Parses the list: ps, worker, chief and evaluator, each at most once, with an optional number of
 * tasks after a colon (default 1; worker: all remaining). TensorFlow allows one chief and one
 * evaluator. Returns HPCT_ERR_USAGE. */
hpct_status hpct_cluster_roles_parse(const char *text, hpct_cluster_roles *out);

/* The roles of a step of `size` tasks: *out has no open count and sums to size. Returns
 * HPCT_ERR_CONFIG, naming the option and both numbers, if impossible. */
hpct_status hpct_cluster_roles_fit(const hpct_cluster_roles *roles, int size,
                                   hpct_cluster_roles *out);

/* The role of a rank, as an index in the fitted list, and its number within that role. */
int hpct_cluster_roles_of(const hpct_cluster_roles *roles, int rank, int *index);

#endif
