/* Every replica of every rank has the whole model, its own weights and a part of each global batch.
 * Gradients are summed in the process, then by one all-reduce over the ranks, with the loss and
 * metric sums, stop signals and failures in its tail; then every replica applies the same sum, and
 * so gets the same bits. */
#include "agent/strategy/replica.h"
#include "agent/strategy/replicas/replica_set.h"
#include "base/status.h"
#include "nn/run/clone.h"
#include "nn/run/penalty.h"

static hpct_status mirrored_need(const hpct_strategy_plan *plan, size_t *bytes)
{
    return hpct_replicas_need(plan, false, bytes);
}

static hpct_status mirrored_open(hpct_strategy **out, const hpct_strategy_plan *plan)
{
    return hpct_replicas_open(out, &hpct_replicas_mirrored, plan, false);
}

/* If the step only accumulates gradients, only the sums are reduced. */
static hpct_status mirrored_reduce(hpct_strategy *strategy, hpct_strategy_step_sums *sums)
{
    hpct_replicas *set = (hpct_replicas *) strategy;
    hpct_comm *comm = set->comm;
    HPCT_TRY(hpct_replicas_add_up(set));
    if (comm->size == 1)
        return HPCT_OK;
    float *piggyback = set->gradients + set->count;
    hpct_strategy_sums_pack(sums, piggyback);
    double began = hpct_rank_timeline_now(strategy->timeline);
    hpct_status status =
        comm->ops->allreduce_sum(comm, set->due ? set->gradients : piggyback,
                                 (set->due ? set->count : 0) + HPCT_STRATEGY_SUMS_FLOATS);
    hpct_rank_timeline_add(strategy->timeline, HPCT_RANK_TIMELINE_REDUCTION, 0, began);
    hpct_strategy_sums_unpack(sums, piggyback);
    return status;
}

static hpct_status update_one(void *argument, int k)
{
    const hpct_replicas *set = argument;
    return hpct_model_update_by(set->models[k], set->gradients);
}

static hpct_status mirrored_apply(hpct_strategy *strategy)
{
    hpct_replicas *set = (hpct_replicas *) strategy;
    if (!set->due)
        return HPCT_OK;
    HPCT_TRY(hpct_model_penalize(set->models[0])); /* whose gradients all take */
    return hpct_replicas_pool_run(set->pool, update_one, set);
}

static int64_t mirrored_bytes_per_step(const hpct_strategy *strategy)
{
    const hpct_replicas *set = (const hpct_replicas *) strategy;
    const hpct_model *model = set->models[0];
    size_t gradients = set->count / (size_t) hpct_model_gradient_accumulation(model);
    size_t floats = gradients + HPCT_STRATEGY_SUMS_FLOATS + hpct_model_synced_floats(model);
    return set->comm->size == 1 ? 0 : (int64_t) (floats * sizeof *set->gradients);
}

const hpct_strategy_ops hpct_replicas_mirrored = {
    .name = "mirrored",
    .keeps_gradients = true,
    .replicas = true,
    .state = &hpct_replicas_state,
    .need = mirrored_need,
    .open = mirrored_open,
    .forward = hpct_replicas_forward,
    .backward = hpct_replicas_backward,
    .reduce = mirrored_reduce,
    .apply = mirrored_apply,
    .gather = hpct_replicas_gather,
    .evaluate = hpct_replicas_evaluate,
    .outputs = hpct_replicas_outputs,
    .bytes_per_step = mirrored_bytes_per_step,
    .close = hpct_replicas_close,
};
