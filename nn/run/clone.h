/* nn/run/clone.h - replicas of a model in one process: models of the same layers, each built for
 * its part of a batch, computing in parallel. Calls on different replicas may run concurrently
 * unless said otherwise. Independent of threads. */
#ifndef HPCT_NN_RUN_CLONE_H
#define HPCT_NN_RUN_CLONE_H

#include "nn/run/step.h"

/* A model with the same layers, compilation and step count, without weights, not built; freed with
 * hpct_model_free. */
hpct_status hpct_model_clone(hpct_model **out, const hpct_model *model);

/* Copies weights, states and optimizer slots of `model`; both built with one layout. Shared
 * parameters (hpct_run_build_options.storage) and accumulated gradients are not copied. */
hpct_status hpct_model_copy_from(hpct_model *replica, const hpct_model *model);

/* Sets input, labels and targets of the replica's next step to the samples from `begin` of the
 * batch of `model` (not copied; of a resident data set, the replica's own device copy), and its
 * position and step count. No effect if `replica` is `model`. */
void hpct_model_take_part(hpct_model *replica, const hpct_model *model, int begin);

/* Adds gradients[first, first + count) of `replica` to those of `model`; same layout. */
hpct_status hpct_model_add_gradients(hpct_model *model, const hpct_model *replica, size_t first,
                                     size_t count);

/* Copies an arena of `other`, a built model of the same layers, to `model`, across layouts and
 * devices. */
typedef enum hpct_run_arena {
    HPCT_RUN_ARENA_PARAMETERS,
    HPCT_RUN_ARENA_STATES,
    HPCT_RUN_ARENA_GRADIENTS,
    HPCT_RUN_ARENA_FROZEN /* parameters and states of frozen layers; behind the states */
} hpct_run_arena;
hpct_status hpct_model_translate(hpct_model *model, const hpct_model *other, hpct_run_arena arena);

/* hpct_model_update with another replica's gradients, of the same layout, to which penalties were
 * added (nn/run/penalty.h). */
hpct_status hpct_model_update_by(hpct_model *model, const float *gradients);

#endif
