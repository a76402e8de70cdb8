/* nn/replicas.h - sums over the replicas of a model that train together, for layers whose numbers
 * are of all their samples (synchronized BatchNormalization). Who runs the replicas says how to add
 * up: a strategy, over its ranks, or over those that have this part of the model. */
#ifndef HPCT_NN_REPLICAS_H
#define HPCT_NN_REPLICAS_H

#include <hpctrain/status.h>
#include <stddef.h>

typedef struct hpct_replicas {
    /* data[count], in the backend's memory, becomes the sum over all replicas, the same bits on
     * each; all call it in the same order with the same counts. NULL: there are no others. */
    hpct_status (*sum)(void *argument, float *data, size_t count);
    void *argument;
} hpct_replicas;

#endif
