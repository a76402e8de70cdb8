/* agent/cost/made_up.h - synthetic batches for timing. */
#ifndef HPCT_AGENT_COST_MADE_UP_H
#define HPCT_AGENT_COST_MADE_UP_H

#include <hpctrain/model.h>

/* Fills input and labels of a built model with `count` samples: multiples of 1/255 drawn from
 * `seed`; labels cycle. */
hpct_status hpct_cost_made_up_batch(hpct_model *model, int count, int seed);

#endif
