/* nn/clone.h - replicas of a model in one process: models of the same layers, each built for its
 * part of a batch, that compute side by side. Between a strategy (agent/) and nn; knows nothing of
 * threads. Calls on one replica may run beside calls on another, but where they say otherwise. */
#ifndef HPCT_NN_CLONE_H
#define HPCT_NN_CLONE_H

#include "nn/step.h"

/* A model with the same layers, compilation and number of steps done, without weights and not
 * built; the caller frees it with hpct_model_free. */
hpct_status hpct_model_clone(hpct_model **out, const hpct_model *model);

/* Weights, states and the optimizer's slots become those of `model`; both are built, in one layout.
 * Parameters that `replica` borrows stay. Gradients that `model` has accumulated stay its own. */
hpct_status hpct_model_copy_from(hpct_model *replica, const hpct_model *model);

/* The next step of `replica` is of the samples from `begin` on in the batch that `model` was given:
 * its input and labels (no copy; or those of the pictures on its own device), its position, its
 * number of steps. `model` itself, with begin 0, is left as it is. */
void hpct_model_take_part(hpct_model *replica, const hpct_model *model, int begin);

/* gradients[first, first + count) of `model` += those of `replica`; both in one layout. */
hpct_status hpct_model_add_gradients(hpct_model *model, const hpct_model *replica, size_t first,
                                     size_t count);

/* An arena of `model` becomes that of `other`, a model of the same layers, whatever the layouts and
 * the devices of both, which are built. */
typedef enum hpct_arena {
    HPCT_ARENA_PARAMETERS,
    HPCT_ARENA_STATES,
    HPCT_ARENA_GRADIENTS
} hpct_arena;
hpct_status hpct_model_translate(hpct_model *model, const hpct_model *other, hpct_arena arena);

/* hpct_model_update with another replica's gradients, of the same layout. */
hpct_status hpct_model_update_by(hpct_model *model, const float *gradients);

#endif
