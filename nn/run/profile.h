/* nn/run/profile.h - times of each operation's forward and backward, the loss and the update, per
 * step. Without a profile the clock is not read. */
#ifndef HPCT_NN_RUN_PROFILE_H
#define HPCT_NN_RUN_PROFILE_H

#include "nn/backend/types.h"

#include <hpctrain/model.h>

typedef struct hpct_run_profile hpct_run_profile;

/* Time of a layer, the loss or the update in one step, and its minimal cost. */
typedef struct hpct_run_profile_row {
    const char *name, *type; /* "conv2d", "Conv2D"; for loss and update the type is "" */
    double forward_seconds, backward_seconds;
    double forward_flops, backward_flops;
    double bytes;      /* forward and backward */
    char kernels[160]; /* of its operations, if they say so */
} hpct_run_profile_row;

/* Records the next `steps` training steps of a built model; allocates everything here. */
hpct_status hpct_run_profile_start(hpct_run_profile **out, hpct_model *model, int steps);

/* Means over the steps num[0..count), numbered from 0. Rows in layer order without empty layers,
 * then loss and update; owned by the profile. */
const hpct_run_profile_row *hpct_run_profile_rows(hpct_run_profile *profile, const int *num,
                                                  int count, int *num_rows);

/* Ends and frees it; NULL is allowed. To be called before the model is rebuilt or freed. */
void hpct_run_profile_stop(hpct_run_profile *profile);

/* HPCT_ERR_USAGE if the backend cannot measure its rates. */
hpct_status hpct_model_measure_rates(const hpct_model *model, hpct_backend_rates *rates);

#endif
