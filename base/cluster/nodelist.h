/* base/cluster/nodelist.h - expansion of Slurm's host lists, in Slurm's order. Independent of
 * tasks and SPANK. */
#ifndef HPCT_BASE_CLUSTER_NODELIST_H
#define HPCT_BASE_CLUSTER_NODELIST_H

#include <hpctrain/status.h>

/* limit of hosts, to catch mistakes */
#ifndef HPCT_CLUSTER_MAX_NODES /* smaller in fuzzing: a million names take half a second */
#define HPCT_CLUSTER_MAX_NODES 1000000
#endif
/* Longest name of one host, as in DNS. */
#define HPCT_CLUSTER_MAX_NODE_NAME 255

/* Expands "n[009-011,3]-ib,login": top-level commas, any number of bracket groups with numbers and
 * ranges, zero padding kept, text after a bracket allowed. With several groups the last varies
 * fastest, then the first, the second and so on, as in `scontrol show hostnames`. *names is an
 * array of *count strings, freed with hpct_cluster_names_free. Returns HPCT_ERR_CONFIG, with
 * position and reason, if malformed, empty, or above HPCT_CLUSTER_MAX_NODES. */
hpct_status hpct_cluster_nodelist_expand(const char *text, char ***names, int *count);

/* Frees `count` strings and their array. NULL is allowed. */
void hpct_cluster_names_free(char **names, int count);

#endif
