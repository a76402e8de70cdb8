/* agent/strategies/strategies.h - the strategies by name. */
#ifndef HPCT_AGENT_STRATEGIES_STRATEGIES_H
#define HPCT_AGENT_STRATEGIES_STRATEGIES_H

#include "agent/strategy/strategy.h"

/* Finds the strategy by options ("auto" or none: hpct_replicas_mirrored with replicas, else a
 * default until hpct_cost_strategy_choose has chosen). Returns HPCT_ERR_USAGE, listing the names,
 * if unknown, and for options of other strategies. */
hpct_status hpct_strategy_find(const hpct_strategy_ops **out, const hpct_strategy_options *options);

/* HPCT_ERR_USAGE for too many ranks, or fewer samples than replicas in a global batch. */
hpct_status hpct_strategy_check_batch(const hpct_strategy_options *options, int ranks,
                                      int global_batch);

#endif
