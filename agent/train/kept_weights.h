/* agent/train/kept_weights.h - weights and moving statistics of an epoch, kept in rank 0's memory
 * and given back to all ranks: early stopping's restore_best. */
#ifndef HPCT_AGENT_TRAIN_KEPT_WEIGHTS_H
#define HPCT_AGENT_TRAIN_KEPT_WEIGHTS_H

#include "agent/rank/context.h"

#include <hpctrain/model.h>
#include <stdbool.h>

typedef struct hpct_kept_weights {
    float *floats; /* rank 0 */
    bool has;
} hpct_kept_weights;

/* Of the gathered model, on rank 0; no effect elsewhere. */
hpct_status hpct_kept_weights_take(hpct_kept_weights *kept, const hpct_context *context,
                                   const hpct_model *model);

/* Into the model of each rank. Collective; kept->has is equal on all ranks. */
hpct_status hpct_kept_weights_give(const hpct_kept_weights *kept, hpct_context *context,
                                   hpct_model *model);

void hpct_kept_weights_free(hpct_kept_weights *kept); /* zeros are allowed */

#endif
