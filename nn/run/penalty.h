/* nn/run/penalty.h - penalties of regularizers (Keras' kernel_regularizer and others): part of the
 * loss, and of the gradients that an update gets. */
#ifndef HPCT_NN_RUN_PENALTY_H
#define HPCT_NN_RUN_PENALTY_H

#include <hpctrain/model.h>
#include <stddef.h>

/* Adds the penalties' gradients to the gradient arena. Once per update, after the sum over ranks:
 * they are neither means over samples nor sums over ranks. Called by hpct_model_update; for
 * hpct_model_update_by by the caller, in one replica. */
hpct_status hpct_model_penalize(hpct_model *model);

/* The penalty of the weights as they are; synchronous. hpct_model_loss adds it to each sample's
 * loss: this is for pipeline stages without one. */
hpct_status hpct_model_penalty(const hpct_model *model, double *penalty);

/* Floats that hpct_model_loss sums over shards. */
size_t hpct_model_penalty_floats(const hpct_model *model);

/* "conv/kernel l1=0.01 l2=0.02", comma-separated, of what counts; "" if nothing does. The caller
 * frees it; NULL if out of memory. */
char *hpct_model_list_penalties(const hpct_model *model);

/* Private to nn/: hpct_model_penalize for the floats [begin, end) of `gradients`; and the call
 * before the backend's loss, which fills arenas.penalty. */
hpct_status hpct_run_penalize(const hpct_model *model, float *gradients, size_t begin, size_t end);
hpct_status hpct_run_weigh(const hpct_model *model);

#endif
