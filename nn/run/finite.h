/* nn/run/finite.h - where in a model values that are not finite first occur. */
#ifndef HPCT_NN_RUN_FINITE_H
#define HPCT_NN_RUN_FINITE_H

#include <hpctrain/model.h>

typedef enum hpct_run_finite_place {
    HPCT_RUN_FINITE, /* nowhere */
    HPCT_RUN_FINITE_NOT_INPUT,
    HPCT_RUN_FINITE_NOT_WEIGHTS,
    HPCT_RUN_FINITE_NOT_OUTPUT,
} hpct_run_finite_place;

#define HPCT_RUN_FINITE_LAYER 128
typedef struct hpct_run_finite_found {
    hpct_run_finite_place place; /* of the first one since the watch began */
    char layer[HPCT_RUN_FINITE_LAYER];
} hpct_run_finite_found;

/* From now on every forward looks at its input, and at weights and output of each layer, until
 * `found` is NULL. For a built model in host memory. */
void hpct_model_watch_finite(hpct_model *model, hpct_run_finite_found *found);

/* Whether the sum of the last loss is finite; true on a device, where it is not known yet. */
bool hpct_model_loss_is_finite(const hpct_model *model);

/* For nn/run/step.c: before and after node `node`, of `n` samples. */
void hpct_run_finite_look_before(const hpct_model *model, int node, int n);
void hpct_run_finite_look_after(const hpct_model *model, int node, int n);

#endif
