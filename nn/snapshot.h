/* nn/snapshot.h - a model's weights, states, optimizer slots and step count as they were, for steps
 * that are to leave no trace. */
#ifndef HPCT_NN_SNAPSHOT_H
#define HPCT_NN_SNAPSHOT_H

#include <hpctrain/model.h>

typedef struct hpct_snapshot hpct_snapshot;

/* Bytes that a snapshot has at most. */
size_t hpct_snapshot_bytes(const hpct_model *model);

/* Copies them; the model is not built afterwards. The caller frees *out. */
hpct_status hpct_snapshot_take(hpct_snapshot **out, hpct_model *model);

/* Puts them back into the model that they were taken of, which is not built afterwards. Once. */
hpct_status hpct_snapshot_restore(hpct_snapshot *snapshot, hpct_model *model);

void hpct_snapshot_free(hpct_snapshot *snapshot);

#endif
