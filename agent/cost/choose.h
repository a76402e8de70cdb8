/* agent/cost/choose.h - choice of a strategy by timing a few steps of each candidate on synthetic
 * data, and of one rank alone, for comparison. */
#ifndef HPCT_AGENT_COST_CHOOSE_H
#define HPCT_AGENT_COST_CHOOSE_H

#include "agent/strategy/strategy.h"

typedef struct hpct_cost_strategy_choice {
    const hpct_strategy_ops *ops;
    hpct_strategy_options options; /* the given ones, completed by the choice */
    char line[640];                /* message for the user; "" without a choice */
} hpct_cost_strategy_choice;

/* Finds the strategy of the options. "auto" or none: the fastest exact one, with allow_lossy also
 * others; the simplest within 2 %. On devices only multi-worker-mirrored is timed if it is at most
 * 5 % slower than one rank. With one rank or replicas there is no choice. same_global: the global
 * batch is fixed when predicting other numbers of ranks for the line. Leaves the model unchanged
 * but not built. Collective; equal on all ranks. */
hpct_status hpct_cost_strategy_choose(hpct_cost_strategy_choice *out, hpct_context *context,
                                      hpct_model *model, const hpct_strategy_options *options,
                                      int global_batch, bool same_global);

#endif
