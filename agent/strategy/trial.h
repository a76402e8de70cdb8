/* agent/strategy/trial.h - a few steps of a strategy, on made-up pictures, timed: opened as for
 * training, and closed again. Knows nothing of what is compared with what. */
#ifndef HPCT_STRATEGY_TRIAL_H
#define HPCT_STRATEGY_TRIAL_H

#include "agent/strategy/strategy.h"

#define HPCT_TRIAL_BLOCKS 7

typedef struct hpct_trial {
    hpct_context *context; /* of the steps: all ranks, or each rank for itself */
    const hpct_strategy_ops *ops;
    hpct_strategy_options options;
    int count, global_count; /* samples of this rank and of all in a step */
    int multiple;            /* of steps, that a block has: a period of the strategy; >= 1 */
    double
        seconds[HPCT_TRIAL_BLOCKS]; /* of a step, on average over each block; the slowest rank's */
    int num_blocks;
} hpct_trial;

/* Builds the model, takes a step or two that do not count, then a block that takes about
 * `duration` seconds, but at least three steps and at most 24, and notes it; but no more than the
 * first steps where a step takes longer than `hopeless` seconds: it is noted then. `all`: where the
 * ranks agree. HPCT_ERR_CONFIG: the strategy cannot train this model here. Collective. */
hpct_status hpct_trial_block(hpct_trial *trial, hpct_context *all, hpct_model *model,
                             double duration, double hopeless);

/* Of the blocks; NAN without any. */
double hpct_trial_median(const hpct_trial *trial);
double hpct_trial_fastest(const hpct_trial *trial);
double hpct_trial_slowest(const hpct_trial *trial);

#endif
