/* agent/train/slow.h - which node computes slowly: its steps, without waiting for others, take 1.3
 * times the median of the other nodes' for a minute. Arithmetic alone, equal on all ranks. */
#ifndef HPCT_AGENT_TRAIN_SLOW_H
#define HPCT_AGENT_TRAIN_SLOW_H

#include <stdbool.h>

#define HPCT_TRAIN_SLOW_RATIO 1.3
#define HPCT_TRAIN_SLOW_SECONDS 60

typedef struct hpct_train_slow_node {
    double since; /* clock; 0: it is not slow */
    bool named;   /* once, until it is fast again */
} hpct_train_slow_node;

/* The node's mean time over the median of the others'; 1 for a single node. NaN: not known.
 * `scratch`: [nodes]. */
double hpct_train_slow_ratio(const double *busy, int nodes, int node, double *scratch);

enum hpct_train_slow_verdict {
    HPCT_TRAIN_SLOW_NO,
    HPCT_TRAIN_SLOW_BEGINS,
    HPCT_TRAIN_SLOW_STAYS,
    HPCT_TRAIN_SLOW_NAMED
};

/* At a time of the clock, above 0: HPCT_TRAIN_SLOW_BEGINS when it has become slow,
 * HPCT_TRAIN_SLOW_NAMED when it has been so for HPCT_TRAIN_SLOW_SECONDS, once. */
enum hpct_train_slow_verdict hpct_train_slow_heed(hpct_train_slow_node *node, double ratio,
                                                  double now);

#endif
