/* agent/strategy/choose.h - which strategy is the fastest here: a few steps of each that can be, on
 * made-up pictures, timed in turn; and of one rank alone, so that nobody loses by more ranks
 * unawares. */
#ifndef HPCT_STRATEGY_CHOOSE_H
#define HPCT_STRATEGY_CHOOSE_H

#include "agent/strategy/strategy.h"

typedef struct hpct_strategy_choice {
    const hpct_strategy_ops *ops;
    hpct_strategy_options options; /* those given, with what was chosen filled in */
    char line[640];                /* for the user; "" where there was nothing to choose */
} hpct_strategy_choice;

/* The strategy that the options name. "auto" or none: the fastest of those that change nothing but
 * the order of sums, and, with allow_lossy, of those that do; the simplest of those that are within
 * 2 % of it. On devices multi-worker-mirrored alone is timed where it is at most 5 % slower than
 * one rank alone. One rank, or ranks with replicas, have nothing to choose. same_global: with more
 * ranks the global batch would be the same, not each rank's; for what the line says of other
 * numbers of ranks. The model is left as it was, though not built. Collective; the same on all
 * ranks. */
hpct_status hpct_strategy_choose(hpct_strategy_choice *out, hpct_context *context,
                                 hpct_model *model, const hpct_strategy_options *options,
                                 int global_batch, bool same_global);

#endif
