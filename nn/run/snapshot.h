/* nn/run/snapshot.h - saves and restores a model's weights, states, optimizer slots and step count,
 * for trial steps. */
#ifndef HPCT_NN_RUN_SNAPSHOT_H
#define HPCT_NN_RUN_SNAPSHOT_H

#include <hpctrain/model.h>

typedef struct hpct_run_snapshot hpct_run_snapshot;

/* Maximal bytes of a snapshot. */
size_t hpct_run_snapshot_bytes(const hpct_model *model);

/* Saves, and unbuilds the model. The caller frees *out. */
hpct_status hpct_run_snapshot_take(hpct_run_snapshot **out, hpct_model *model);

/* Restores into the same model, and unbuilds it. At most once. */
hpct_status hpct_run_snapshot_restore(hpct_run_snapshot *snapshot, hpct_model *model);

void hpct_run_snapshot_free(hpct_run_snapshot *snapshot);

#endif
