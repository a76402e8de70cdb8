/* agent/cost/pairs.h - latency and rate between nodes: one rank of each measures with a few others
 * in turn, all pairs of a round at the same time. */
#ifndef HPCT_AGENT_COST_PAIRS_H
#define HPCT_AGENT_COST_PAIRS_H

#include "agent/comm/comm.h"

#define HPCT_COST_PAIRS_MOST 4 /* others that a node measures with */

typedef struct hpct_cost_pair {
    int node;                                 /* the other one; -1: none in this round */
    double latency_seconds, bytes_per_second; /* of a message of 8 bytes, and of large ones */
} hpct_cost_pair;

/* Number of rounds among so many nodes: each meets all others, or HPCT_COST_PAIRS_MOST of them. */
int hpct_cost_pairs_rounds(int nodes);

/* The node that `node` meets in a round; -1: none. The same from both sides, and another one in
 * each round. */
int hpct_cost_pairs_partner(int nodes, int round, int node);

/* pairs[hpct_cost_pairs_rounds(nodes)] of this rank's node; leaders[nodes] are the ranks that
 * measure, `node` is this rank's if it is one of them, else -1, and nothing is measured. Takes
 * about a second; slow links take that of some messages. Collective. */
hpct_status hpct_cost_pairs_measure(hpct_comm *comm, const int *leaders, int nodes, int node,
                                    hpct_cost_pair *pairs);

#endif
