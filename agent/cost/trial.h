/* agent/cost/trial.h - times a few steps of a strategy on synthetic data: opens it as for training,
 * and closes it. */
#ifndef HPCT_AGENT_COST_TRIAL_H
#define HPCT_AGENT_COST_TRIAL_H

#include "agent/strategy/strategy.h"

typedef struct hpct_cost_trial {
    hpct_context *context; /* of the steps: all ranks, or this rank alone */
    const hpct_strategy_ops *ops;
    hpct_strategy_options options;
    int count, global_count; /* samples of this rank and of all in a step */
    int period;              /* steps per period, >= 1 */
} hpct_cost_trial;

/* *seconds per step on the slowest rank: mean over about `duration` seconds, at least three steps,
 * at most 24, in whole periods, after warm-up. If the last warm-up step takes longer than `limit`
 * seconds, its time is the result. `all`: the ranks that agree. Returns HPCT_ERR_CONFIG if the
 * strategy cannot train this model here. Collective. */
hpct_status hpct_cost_trial_block(const hpct_cost_trial *trial, hpct_context *all,
                                  hpct_model *model, double duration, double limit,
                                  double *seconds);

#endif
