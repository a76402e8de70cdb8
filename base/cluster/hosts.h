/* base/cluster/hosts.h - addresses of a step's nodes. A Slurm node name need not resolve; then the
 * administrator has set NodeAddr, which Slurm's daemons use. All nodes read the same configuration
 * and find the same addresses without communication. Independent of SPANK. */
#ifndef HPCT_BASE_CLUSTER_HOSTS_H
#define HPCT_BASE_CLUSTER_HOSTS_H

#include "base/cluster/config.h"

/* Slurm's address of a node, freed by the caller; NULL if unknown. */
typedef char *(*hpct_cluster_address_lookup)(const char *node);

/* *hosts is an array of `count` strings, freed with hpct_cluster_names_free: each node's address
 * from SLURM_NODE_ALIASES (cloud nodes: "name:address:hostname,…"), else from `lookup` (may be
 * NULL), else its name. Invalid host names are skipped. */
hpct_status hpct_cluster_hosts_find(const hpct_cluster_environment *environment, char *const *names,
                                    int count, hpct_cluster_address_lookup lookup, char ***hosts);

#endif
