/* nn/run/state.h - a model's training state in host memory, in Keras' layout: parameters, states,
 * optimizer slots, step count, loss scale. Independent of files and ranks. */
#ifndef HPCT_NN_RUN_STATE_H
#define HPCT_NN_RUN_STATE_H

#include "nn/graph/shape.h"

#include <hpctrain/model.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct hpct_state_tensor {
    char *name; /* "weights/NAME", "optimizer/SLOT/NAME" */
    hpct_shape shape;
    size_t count;
    bool is_state;       /* a moving statistic: replicas may have their own */
    bool is_accumulated; /* gradients of the samples of this rank */
    float *values;       /* [count] */
} hpct_state_tensor;

/* The loss scale of fp16 (nn/graph/loss_scaling.h). */
typedef struct hpct_state_scaling {
    double scale, undo_1, undo_2;
    int64_t good, left_out;
} hpct_state_scaling;

typedef struct hpct_state {
    hpct_state_tensor *tensors;
    int num_tensors;
    bool states_only;
    int64_t steps; /* optimizer steps so far, in batches */
    hpct_state_scaling scaling;
} hpct_state;

/* Allocates the state of a compiled model. `states_only`: the moving statistics alone. */
hpct_status hpct_state_new(hpct_state **out, const hpct_model *model, bool states_only);
void hpct_state_free(hpct_state *state); /* NULL is allowed */

/* Copies from or to a model of the same layers, built or not, between steps. Synchronous. With
 * `states_only` step count and loss scale stay as they are. */
hpct_status hpct_state_take(hpct_state *state, const hpct_model *model);
hpct_status hpct_state_put(hpct_state *state, hpct_model *model);

#endif
