/* agent/cost/forecast.h - predicted step times of all strategies, from operation times measured
 * here and the network (doc/performance-model.md). */
#ifndef HPCT_AGENT_COST_FORECAST_H
#define HPCT_AGENT_COST_FORECAST_H

#include "agent/cost/predict.h"

#include <hpctrain/context.h>
#include <hpctrain/model.h>
#include <hpctrain/strategy.h>

typedef struct hpct_cost_forecast {
    double seconds[HPCT_COST_SCHEMES]; /* step time; NAN if not possible */
    int payoff;                        /* as hpct_cost_payoff */
} hpct_cost_forecast;

/* Every rank times its operations, rank 0's times are used; about 0.2 s or twelve steps. allowed:
 * candidates for `payoff`. same_global: as in hpct_cost_strategy_choose. Changes weights; the model
 * must be built again afterwards. Collective; equal on all ranks. */
hpct_status hpct_cost_forecast_make(hpct_cost_forecast *out, hpct_context *context,
                                    hpct_model *model, const hpct_strategy_options *options,
                                    const bool allowed[HPCT_COST_SCHEMES], int global_batch,
                                    bool same_global);

#endif
