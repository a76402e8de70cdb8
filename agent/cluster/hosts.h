/* agent/cluster/hosts.h - by what each node of a step can be reached from the others. Slurm's name
 * for a node need not resolve anywhere; then the administrator has told Slurm another address
 * (NodeAddr), and it is by that one that Slurm's own daemons reach the node from everywhere. All
 * nodes read the same configuration, so all come to the same addresses, without asking anybody.
 * Knows nothing of SPANK. */
#ifndef HPCT_CLUSTER_HOSTS_H
#define HPCT_CLUSTER_HOSTS_H

#include "agent/cluster/config.h"

/* Slurm's address of a node, to be freed; NULL when it is not known. */
typedef char *(*hpct_address_lookup)(const char *node);

/* *hosts is an array of `count` strings, to be freed with hpct_names_free: the address of each node
 * from SLURM_NODE_ALIASES (nodes of a cloud: "name:address:hostname,…"), else from `lookup` (may be
 * NULL), else its name. What can be no host's name or address is passed over. */
hpct_status hpct_hosts_find(const hpct_environment *environment, char *const *names, int count,
                            hpct_address_lookup lookup, char ***hosts);

#endif
