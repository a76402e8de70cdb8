/* One set of weights and optimizer slots in one process, which all replicas read where it lies;
 * their gradients are added up, and one update by all of the process's threads changes it. On
 * devices, which do not share a memory, it lies on the first, whose update the others get. */
#include "agent/strategy/mirrored_apart.h"
#include "agent/strategy/replica_set.h"
#include "base/status.h"

#include <stdlib.h>

typedef struct central {
    hpct_strategy base;
    hpct_replica_set set;
    bool due; /* the step ends with an update */
} central;

hpct_status hpct_central_storage_check(int ranks)
{
    if (ranks == 1)
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_USAGE,
                     "strategy central-storage keeps the weights in one process, and there are %d "
                     "ranks: start one (srun -n 1), or take mirrored",
                     ranks);
}

/* What a device's own memory makes of it: copies of the weights, which follow one update. */
static hpct_strategy_plan apart(const hpct_strategy_plan *plan)
{
    hpct_strategy_plan own = *plan;
    own.one_updates = true;
    return own;
}

static hpct_status central_need(const hpct_strategy_plan *plan, size_t *bytes)
{
    hpct_strategy_plan own = apart(plan);
    hpct_status status = hpct_central_storage_check(hpct_context_size(plan->context));
    if (status != HPCT_OK)
        return status;
    return hpct_model_on_device(plan->model) ? hpct_mirrored_apart(plan)->need(&own, bytes)
                                             : hpct_replica_set_need(plan, true, bytes);
}

static void central_close(hpct_strategy *strategy)
{
    central *c = (central *) strategy;
    if (c != NULL)
        hpct_replica_set_close(&c->set);
    free(c);
}

/* Replicas whose layout differs from that of the first cannot read its weights. */
static hpct_status check_borrowed(const hpct_replica_set *set)
{
    size_t count;
    const float *storage = hpct_model_parameters(set->models[0], &count);
    for (int k = 1; k < set->num; k++) {
        if (hpct_model_parameters(set->models[k], &count) != storage)
            return hpct_fail(HPCT_ERR_INTERNAL, "replica %d has weights of its own", k);
    }
    return HPCT_OK;
}

static hpct_status central_open(hpct_strategy **out, const hpct_strategy_plan *plan)
{
    central *c = NULL;
    hpct_strategy_plan own = apart(plan);
    hpct_status status = hpct_central_storage_check(hpct_context_size(plan->context));
    if (status == HPCT_OK && hpct_model_on_device(plan->model))
        return hpct_mirrored_apart(plan)->open(out, &own);
    if (status != HPCT_OK)
        return status;
    c = calloc(1, sizeof *c);
    if (c == NULL)
        return hpct_fail_memory(sizeof *c);
    status = hpct_replica_set_open(&c->set, plan, true);
    if (status == HPCT_OK)
        status = check_borrowed(&c->set);
    if (status != HPCT_OK) {
        central_close((hpct_strategy *) c);
        return status;
    }
    c->base = (hpct_strategy){
        .ops = &hpct_central_storage, .model = plan->model, .timeline = plan->timeline};
    *out = &c->base;
    return HPCT_OK;
}

static hpct_status central_forward(hpct_strategy *strategy, int count, bool training)
{
    return hpct_replica_set_forward(&((central *) strategy)->set, count, training);
}

static hpct_status central_backward(hpct_strategy *strategy, int count, int global_count,
                                    hpct_step_sums *sums)
{
    return hpct_replica_set_backward(&((central *) strategy)->set, count, global_count, sums);
}

static hpct_status central_reduce(hpct_strategy *strategy, hpct_step_sums *sums)
{
    central *c = (central *) strategy;
    (void) sums; /* there are no other ranks */
    return hpct_replica_set_add_up(&c->set, &c->due);
}

static hpct_status central_apply(hpct_strategy *strategy)
{
    central *c = (central *) strategy;
    size_t count;
    hpct_status status = c->due ? hpct_model_update(c->set.models[0]) : HPCT_OK;
    for (int k = 1; k < c->set.num; k++) /* which may keep copies in another precision */
        hpct_model_parameters(c->set.models[k], &count);
    return status;
}

static hpct_status central_gather(hpct_strategy *strategy)
{
    return hpct_replica_set_gather(&((central *) strategy)->set);
}

static hpct_status central_evaluate(hpct_strategy *strategy, int count, hpct_batch_sums *sums)
{
    return hpct_replica_set_evaluate(&((central *) strategy)->set, count, sums);
}

static int64_t central_bytes_per_step(const hpct_strategy *strategy)
{
    (void) strategy;
    return 0;
}

const hpct_strategy_ops hpct_central_storage = {
    .name = "central-storage",
    .replicas = true,
    .need = central_need,
    .open = central_open,
    .forward = central_forward,
    .backward = central_backward,
    .reduce = central_reduce,
    .apply = central_apply,
    .gather = central_gather,
    .evaluate = central_evaluate,
    .bytes_per_step = central_bytes_per_step,
    .close = central_close,
};
