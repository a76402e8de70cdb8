/* agent/made_up.h - a batch to train on where only the time matters. */
#ifndef HPCT_AGENT_MADE_UP_H
#define HPCT_AGENT_MADE_UP_H

#include <hpctrain/model.h>
#include <stdint.h>

/* Fills the first n samples of a built model's own input: numbers as pictures have, multiples of
 * 1/255, that follow from the seed; labels in turn. */
hpct_status hpct_make_up_batch(hpct_model *model, int n, uint64_t seed);

#endif
