/* base/cluster/hostfile.h - the node of each rank of an arbitrary layout: SLURM_HOSTFILE, or
 * SLURM_ARBITRARY_NODELIST. */
#ifndef HPCT_BASE_CLUSTER_HOSTFILE_H
#define HPCT_BASE_CLUSTER_HOSTFILE_H

#include <hpctrain/status.h>

/* Reads `path`: host lists, one or more per line, optionally with a factor ("node0*2"), comments
 * after '#'. *placed (freed by the caller) is the index in names[num_nodes] of the host of each of
 * the first `size` ranks. Returns HPCT_ERR_CONFIG, naming the file, if it cannot be read, names
 * another host, or has fewer than `size` entries. */
hpct_status hpct_cluster_hostfile_read(const char *path, char *const *names, int num_nodes,
                                       int size, int **placed);

/* The same from a list, which `what` names in errors. */
hpct_status hpct_cluster_hostlist_read(const char *list, const char *what, char *const *names,
                                       int num_nodes, int size, int **placed);

#endif
