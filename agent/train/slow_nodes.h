/* agent/train/slow_nodes.h - the nodes of a run's ranks, and which of them compute slowly, from
 * what is known of the ranks' steps. Arithmetic and names; independent of how they were gathered.
 */
#ifndef HPCT_AGENT_TRAIN_SLOW_NODES_H
#define HPCT_AGENT_TRAIN_SLOW_NODES_H

#include "agent/train/pace_file.h"
#include "agent/train/slow.h"

#include <hpctrain/status.h>

typedef struct hpct_train_slow_nodes {
    const char *const *names; /* [ranks] of each rank's node, the caller's; NULL: not known */
    int ranks;
    double *known; /* [HPCT_TRAIN_PACE_PARTS][ranks] ms of a step, and MB; NaN: not known */
    int *node_of;  /* [ranks] index of the node; -1: not known */
    int num_nodes;
    hpct_train_slow_node *slow;     /* [num_nodes] */
    double *busy, *input, *scratch; /* [num_nodes] */
} hpct_train_slow_nodes;

hpct_status hpct_train_slow_nodes_open(hpct_train_slow_nodes *out, const char *const *names,
                                       int ranks);
void hpct_train_slow_nodes_close(hpct_train_slow_nodes *nodes); /* zeros are allowed */

/* Numbers the nodes; again when a name has changed: then none is slow yet. */
void hpct_train_slow_nodes_number(hpct_train_slow_nodes *nodes);

/* known[part], of all ranks. */
double *hpct_train_slow_nodes_part(const hpct_train_slow_nodes *nodes, hpct_train_pace_part part);

/* Means over the ranks of each node of what is known: of a step without waiting, and of its input;
 * NaN for a node none of whose ranks is known. */
void hpct_train_slow_nodes_fill(hpct_train_slow_nodes *nodes);

/* With those, at a time of the clock; *ratio: to the other nodes. */
enum hpct_train_slow_verdict hpct_train_slow_nodes_heed(hpct_train_slow_nodes *nodes, int node,
                                                        double now, double *ratio);

/* The node's first rank. */
int hpct_train_slow_nodes_first(const hpct_train_slow_nodes *nodes, int node);

/* Names it on standard error, with what is known of the reason ("": nothing). */
void hpct_train_slow_nodes_say(const hpct_train_slow_nodes *nodes, int node, double ratio,
                               const char *why);

#endif
