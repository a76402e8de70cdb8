/* agent/made_up.h - a batch of made-up pictures in a model's own input, to time steps with. */
#ifndef HPCT_MADE_UP_H
#define HPCT_MADE_UP_H

#include <hpctrain/model.h>

/* Fills the input and labels of a built model with `count` samples: pixels as pictures have them,
 * multiples of 1/255, drawn from `seed`; labels in turn. */
hpct_status hpct_made_up_batch(hpct_model *model, int count, int seed);

#endif
