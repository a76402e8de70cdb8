/* nn/run/state.h - a model's training state, value by value, in host memory and Keras' layout:
 * parameters, moving statistics, optimizer slots, step count, loss scale. Independent of files and
 * ranks. */
#ifndef HPCT_NN_RUN_STATE_H
#define HPCT_NN_RUN_STATE_H

#include "nn/graph/shape.h"

#include <hpctrain/model.h>
#include <stdbool.h>
#include <stdint.h>

#define HPCT_RUN_STATE_PARAM (-1) /* a value, not a slot of the optimizer */

typedef struct hpct_run_state_value {
    char *name; /* "weights/NAME", "optimizer/SLOT/NAME" */
    hpct_shape shape;
    size_t count;
    int param, slot;     /* index in the model; HPCT_RUN_STATE_PARAM or the slot */
    bool is_state;       /* a moving statistic: replicas may have their own */
    bool is_frozen;      /* of a frozen layer: there is no gradient */
    bool is_accumulated; /* gradients since the last update */
} hpct_run_state_value;

typedef struct hpct_run_state_list {
    hpct_run_state_value *values;
    int count;
    size_t largest; /* floats of the largest one, at least 1 */
} hpct_run_state_list;

/* The values of a compiled model, in a fixed order. The caller frees *out. */
hpct_status hpct_run_state_list_make(hpct_run_state_list *out, const hpct_model *model);
void hpct_run_state_list_free(hpct_run_state_list *list); /* a zeroed one is allowed */

/* Appends a value for every parameter that is trained, "optimizer/NAME-OF-SLOT/NAME", with a slot
 * number below HPCT_RUN_STATE_PARAM. */
hpct_status hpct_run_state_list_add(hpct_run_state_list *list, const hpct_model *model, int slot,
                                    const char *slot_name);

/* Copies floats[count] of a value from or to a model, built or not, between steps; slots that were
 * never set are zeros, and those that another model has (hpct_run_build_options.no_slots) are not
 * set. Synchronous. */
hpct_status hpct_run_state_get(const hpct_model *model, int param, int slot, float *floats);
hpct_status hpct_run_state_put(hpct_model *model, int param, int slot, const float *floats);

/* The same for a parameter of an array in host memory that lies like the model's gradients; on a
 * device those are lost. */
hpct_status hpct_run_state_get_arena(const hpct_model *model, int param, const float *arena,
                                     float *floats);
hpct_status hpct_run_state_put_arena(const hpct_model *model, int param, float *arena,
                                     const float *floats);

/* Of the values of frozen layers: equal on processes that began with the same; 0 without any. */
hpct_status hpct_run_state_hash_frozen(const hpct_model *model, uint64_t *hash);

/* Of all weights but moving statistics, of which each rank may have its own. */
hpct_status hpct_run_state_hash_weights(const hpct_model *model, uint64_t *hash);

/* Optimizer steps so far, in batches, and the loss scale of fp16 (nn/graph/loss_scaling.h). */
#define HPCT_RUN_STATE_NUMBERS 6
hpct_status hpct_run_state_get_numbers(const hpct_model *model,
                                       double numbers[HPCT_RUN_STATE_NUMBERS]);
hpct_status hpct_run_state_put_numbers(hpct_model *model,
                                       const double numbers[HPCT_RUN_STATE_NUMBERS]);

#endif
