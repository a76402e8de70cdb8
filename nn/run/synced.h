/* nn/run/synced.h - synchronized BatchNormalization when some replicas have no samples in a
 * step. */
#ifndef HPCT_NN_RUN_SYNCED_H
#define HPCT_NN_RUN_SYNCED_H

#include <hpctrain/model.h>
#include <stdbool.h>
#include <stddef.h>

/* Forward (training) and backward of a replica without samples in this step: only communication.
 * Its gradients are zeros. backward_absent calls peers.advance as backward does, so that all
 * replicas make the same calls in the same order. */
hpct_status hpct_model_forward_absent(hpct_model *model);
hpct_status hpct_model_backward_absent(hpct_model *model);
/* Whether a BatchNormalization uses local statistics, so that results depend on how a batch is
 * divided. */
bool hpct_model_has_own_statistics(const hpct_model *model);
/* Floats summed over replicas per step. */
size_t hpct_model_synced_floats(const hpct_model *model);

/* Private to nn/: the same for one node; no effect unless it is synchronized BatchNormalization.
 * Forward calls the operation with n = 0. */
hpct_status hpct_run_norm_forward_absent(const hpct_model *model, int node);
hpct_status hpct_run_norm_backward_absent(const hpct_model *model, int node);

#endif
