/* nn/profile.h - where the time of a training step goes: each operation's forward and backward, the
 * loss, the update, step by step. Between the trainer (agent/) and nn, as nn/step.h is. A step
 * without a profile asks no clock. */
#ifndef HPCT_NN_PROFILE_H
#define HPCT_NN_PROFILE_H

#include <hpctrain/model.h>

typedef struct hpct_profile hpct_profile;

/* What a layer, the loss or the update took of one step, and what that cost at least. */
typedef struct hpct_profile_row {
    const char *name, *type; /* "conv2d", "Conv2D"; for loss and update the type is "" */
    double forward_seconds, backward_seconds;
    double forward_flops, backward_flops;
    double bytes; /* of both */
} hpct_profile_row;

/* Notes the times of the next `steps` training steps of a built model, each beginning with its
 * forward; all memory is taken here. */
hpct_status hpct_profile_start(hpct_profile **out, hpct_model *model, int steps);

/* Means over the steps num[0..count), numbered from 0. The rows are in the order of the layers,
 * those without operations left out, then loss and update; they belong to the profile. */
const hpct_profile_row *hpct_profile_rows(hpct_profile *profile, const int *num, int count,
                                          int *num_rows);

/* Ends it; NULL is allowed. Before the model is built anew or freed. */
void hpct_profile_stop(hpct_profile *profile);

/* What the backend can do at best: the rate of a large matrix product in the model's precision, and
 * of copying memory that no cache holds (bytes read and bytes written). HPCT_ERR_USAGE where it
 * cannot say. */
typedef struct hpct_rates {
    double flops, bytes; /* a second */
} hpct_rates;
hpct_status hpct_model_measure_rates(const hpct_model *model, hpct_rates *rates);

#endif
