/* One set of weights and optimizer slots in one process, which all replicas read in place; their
 * gradients are summed, and all threads of the process apply one update. GPUs do not share memory:
 * there the first GPU has the set, and the others get the updated weights. */
#include "agent/strategy/replicas/replica_set.h"
#include "base/status.h"

hpct_status hpct_replicas_central_storage_check(int ranks)
{
    if (ranks == 1)
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_USAGE,
                     "strategy central-storage keeps the weights in one process, and there are %d "
                     "ranks: start one (srun -n 1), or take mirrored",
                     ranks);
}

static hpct_status central_need(const hpct_strategy_plan *plan, size_t *bytes)
{
    HPCT_TRY(hpct_replicas_central_storage_check(hpct_context_size(plan->context)));
    return hpct_replicas_need(plan, true, bytes);
}

static hpct_status central_open(hpct_strategy **out, const hpct_strategy_plan *plan)
{
    HPCT_TRY(hpct_replicas_central_storage_check(hpct_context_size(plan->context)));
    return hpct_replicas_open(out, &hpct_replicas_central_storage, plan, true);
}

static hpct_status central_reduce(hpct_strategy *strategy, hpct_strategy_step_sums *sums)
{
    (void) sums; /* one rank only */
    return hpct_replicas_add_up((hpct_replicas *) strategy);
}

static hpct_status central_apply(hpct_strategy *strategy)
{
    const hpct_replicas *set = (const hpct_replicas *) strategy;
    size_t count;
    hpct_status status = set->due ? hpct_model_update(set->models[0]) : HPCT_OK;
    for (int k = 1; k < set->num; k++) /* invalidates copies in another precision */
        hpct_model_parameters(set->models[k], &count);
    return status;
}

static int64_t central_bytes_per_step(const hpct_strategy *strategy)
{
    (void) strategy;
    return 0;
}

const hpct_strategy_ops hpct_replicas_central_storage = {
    .name = "central-storage",
    .keeps_gradients = true,
    .replicas = true,
    .state = &hpct_replicas_state,
    .need = central_need,
    .open = central_open,
    .forward = hpct_replicas_forward,
    .backward = hpct_replicas_backward,
    .reduce = central_reduce,
    .apply = central_apply,
    .gather = hpct_replicas_gather,
    .evaluate = hpct_replicas_evaluate,
    .outputs = hpct_replicas_outputs,
    .bytes_per_step = central_bytes_per_step,
    .close = hpct_replicas_close,
};
