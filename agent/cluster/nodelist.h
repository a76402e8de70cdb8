/* agent/cluster/nodelist.h - Slurm's host lists, expanded in the order Slurm gives them.
 * Knows nothing of tasks or of SPANK. */
#ifndef HPCT_CLUSTER_NODELIST_H
#define HPCT_CLUSTER_NODELIST_H

#include <hpctrain/status.h>

/* More hosts than this are taken for a mistake. */
#ifndef HPCT_MAX_NODES /* fuzzing is built with fewer: a million names take half a second */
#define HPCT_MAX_NODES 1000000
#endif
/* Longest name of one host, as in DNS. */
#define HPCT_MAX_NODE_NAME 255

/* Expands "n[009-011,3]-ib,login" to its hosts: commas at the top level, any number of bracket
 * groups with comma-separated numbers and ranges, zero padding kept, text behind a bracket allowed.
 * With several groups the last turns fastest, then the first, the second and so on, which is the
 * order of `scontrol show hostnames`.
 * *names is an array of *count strings, to be freed with hpct_names_free. HPCT_ERR_CONFIG, saying
 * what is wrong and where, for anything else, for an empty list, and above HPCT_MAX_NODES. */
hpct_status hpct_nodelist_expand(const char *text, char ***names, int *count);

/* Frees `count` strings and their array. NULL is allowed. */
void hpct_names_free(char **names, int count);

#endif
