/* nn/run/slow_ways.h - operations of a built model that take a slower way than others of their
 * kind: where a library has nothing for them (hpct_op.slow). */
#ifndef HPCT_NN_RUN_SLOW_WAYS_H
#define HPCT_NN_RUN_SLOW_WAYS_H

#include <hpctrain/model.h>

#include <stdio.h>

/* A line for each, with its layer; nothing if there is none. */
void hpct_model_print_slow_ways(const hpct_model *model, FILE *stream);

#endif
