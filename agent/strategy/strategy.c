/* A whole step. */
#include "agent/strategy/strategy.h"

hpct_status hpct_strategy_step(hpct_strategy *strategy, int count, int global_count,
                               hpct_step_sums *sums)
{
    hpct_status status = strategy->ops->forward(strategy, count, true);
    if (status == HPCT_OK)
        status = strategy->ops->backward(strategy, count, global_count, sums);
    if (status == HPCT_OK)
        status = strategy->ops->reduce(strategy, sums);
    if (status == HPCT_OK && sums->failed == 0)
        status = strategy->ops->apply(strategy);
    return status;
}
