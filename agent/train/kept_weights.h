/* agent/train/kept_weights.h - weights and moving statistics of an epoch, kept in rank 0's memory
 * and in a file, and given back to all ranks: early stopping's restore_best. */
#ifndef HPCT_AGENT_TRAIN_KEPT_WEIGHTS_H
#define HPCT_AGENT_TRAIN_KEPT_WEIGHTS_H

#include "agent/train/training.h"

#include <stdbool.h>

typedef struct hpct_train_kept_weights {
    float *floats; /* rank 0 */
    bool has;
} hpct_train_kept_weights;

/* Of the gathered model, on rank 0; no effect elsewhere. */
hpct_status hpct_train_kept_weights_take(hpct_train_kept_weights *kept, const hpct_context *context,
                                         const hpct_model *model);

/* Into the model of each rank. Collective; kept->has is equal on all ranks. */
hpct_status hpct_train_kept_weights_give(const hpct_train_kept_weights *kept, hpct_context *context,
                                         hpct_model *model);

void hpct_train_kept_weights_free(hpct_train_kept_weights *kept); /* zeros are allowed */

/* Rank 0: in the folder of checkpoints, if there is one, for the run that continues them. Whether
 * that has gone well; an error is printed, as this run needs only what is in memory. */
bool hpct_train_kept_weights_save(const hpct_train_training *training);

/* Rank 0: the file that the run that is continued has noted, into the model. */
hpct_status hpct_train_kept_weights_load(const hpct_train_training *training,
                                         const hpct_train_watch_notes *notes);

#endif
