/* agent/cluster/roles.h - who is parameter server, chief, evaluator or worker: a list such as
 * "ps:2,worker:6,chief,evaluator", given out by rank in the order written. Knows nothing of SPANK.
 */
#ifndef HPCT_CLUSTER_ROLES_H
#define HPCT_CLUSTER_ROLES_H

#include <hpctrain/status.h>
#include <stdbool.h>

#define HPCT_MAX_ROLES 4

typedef struct hpct_role {
    const char *name; /* "worker"; static */
    int count;        /* 0: whatever the others leave; "worker" only */
} hpct_role;

typedef struct hpct_roles {
    hpct_role list[HPCT_MAX_ROLES];
    int count; /* 0: every task is a worker */
} hpct_roles;

/* Reads the list: ps, worker, chief and evaluator, each at most once, with a number of tasks behind
 * a colon. Without one a role has one task, and workers are what the others leave. TensorFlow knows
 * at most one chief and one evaluator. HPCT_ERR_USAGE saying what is wrong. */
hpct_status hpct_roles_parse(const char *text, hpct_roles *out);

/* The roles of a step of `size` tasks: *out has no open count and sums to size. HPCT_ERR_CONFIG,
 * naming the option and both numbers, when that cannot be. */
hpct_status hpct_roles_fit(const hpct_roles *roles, int size, hpct_roles *out);

/* The role of a rank, as a place in the list of roles that fit, and its number among those of that
 * role. */
int hpct_roles_of(const hpct_roles *roles, int rank, int *index);

#endif
