/* Ratios and minutes. */
#include "agent/train/slow.h"

#include "base/sort.h"

#include <math.h>

double hpct_train_slow_ratio(const double *busy, int nodes, int node, double *scratch)
{
    int others = 0;
    for (int i = 0; i < nodes; i++) {
        if (i != node && !isnan(busy[i]))
            scratch[others++] = busy[i];
    }
    if (others == 0)
        return 1;
    hpct_sort_numbers(scratch, (size_t) others);
    double median = (scratch[(others - 1) / 2] + scratch[others / 2]) / 2;
    return median > 0 ? busy[node] / median : 1;
}

enum hpct_train_slow_verdict hpct_train_slow_heed(hpct_train_slow_node *node, double ratio,
                                                  double now)
{
    if (!(ratio > HPCT_TRAIN_SLOW_RATIO)) {
        *node = (hpct_train_slow_node){0};
        return HPCT_TRAIN_SLOW_NO;
    }
    if (node->since == 0) {
        node->since = now;
        return HPCT_TRAIN_SLOW_BEGINS;
    }
    if (node->named || now - node->since < HPCT_TRAIN_SLOW_SECONDS)
        return HPCT_TRAIN_SLOW_STAYS;
    node->named = true;
    return HPCT_TRAIN_SLOW_NAMED;
}
