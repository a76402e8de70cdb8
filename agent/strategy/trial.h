/* agent/strategy/trial.h - a few steps of a strategy, on made-up pictures, timed: opened as for
 * training, and closed again. Knows nothing of what is compared with what. */
#ifndef HPCT_STRATEGY_TRIAL_H
#define HPCT_STRATEGY_TRIAL_H

#include "agent/strategy/strategy.h"

typedef struct hpct_trial {
    hpct_context *context; /* of the steps: all ranks, or each rank for itself */
    const hpct_strategy_ops *ops;
    hpct_strategy_options options;
    int count, global_count; /* samples of this rank and of all in a step */
    int period;              /* of steps, after which all is as before; >= 1 */
} hpct_trial;

/* *seconds of a step, on the slowest rank: on average over about `duration` seconds, but at least
 * three steps, at most 24, and whole periods, after some that do not count. Where one step takes
 * longer than `limit` seconds it is all that is measured. `all`: where the ranks agree.
 * HPCT_ERR_CONFIG: the strategy cannot train this model here. Collective. */
hpct_status hpct_trial_block(const hpct_trial *trial, hpct_context *all, hpct_model *model,
                             double duration, double limit, double *seconds);

#endif
