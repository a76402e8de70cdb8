/* agent/strategy/forecast.h - what a step should take by each strategy, from the times that a
 * model's operations take here and the network between the ranks (doc/performance-model.md). */
#ifndef HPCT_STRATEGY_FORECAST_H
#define HPCT_STRATEGY_FORECAST_H

#include "agent/predict.h"

#include <hpctrain/context.h>
#include <hpctrain/model.h>
#include <hpctrain/strategy.h>

typedef struct hpct_forecast {
    double seconds[HPCT_SCHEMES]; /* of a step of these ranks; NAN where it is not possible */
    int payoff;                   /* as of hpct_payoff */
} hpct_forecast;

/* Every rank times its operations, those of rank 0 count; about 0.2 s, or twelve steps. allowed:
 * among which `payoff` takes the fastest. same_global: as of hpct_strategy_choose. The weights
 * change, and the model is not built for training afterwards. Collective; the same on all ranks. */
hpct_status hpct_forecast_make(hpct_forecast *out, hpct_context *context, hpct_model *model,
                               const hpct_strategy_options *options,
                               const bool allowed[HPCT_SCHEMES], int global_batch,
                               bool same_global);

#endif
