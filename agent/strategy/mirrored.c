/* Every replica of every rank has the whole model, its own weights and a part of each global batch.
 * Gradients are added up in the process, then by one all-reduce over the ranks, with the loss and
 * metric sums, the stop signals and failures in its tail; then every replica updates its weights
 * with the same sum, and so to the same bits. */
#include "agent/strategy/mirrored_apart.h"
#include "agent/strategy/replica.h"
#include "agent/strategy/replica_set.h"
#include "base/status.h"
#include "nn/clone.h"

#include <stdlib.h>

typedef struct mirrored {
    hpct_strategy base;
    hpct_replica_set set;
    bool due; /* the step ends with an update */
} mirrored;

static hpct_status mirrored_need(const hpct_strategy_plan *plan, size_t *bytes)
{
    return hpct_model_on_device(plan->model) ? hpct_mirrored_apart(plan)->need(plan, bytes)
                                             : hpct_replica_set_need(plan, false, bytes);
}

static void mirrored_close(hpct_strategy *strategy)
{
    mirrored *m = (mirrored *) strategy;
    if (m != NULL)
        hpct_replica_set_close(&m->set);
    free(m);
}

static hpct_status mirrored_open(hpct_strategy **out, const hpct_strategy_plan *plan)
{
    if (hpct_model_on_device(plan->model))
        return hpct_mirrored_apart(plan)->open(out, plan);
    mirrored *m = calloc(1, sizeof *m);
    hpct_status status =
        hpct_context_agree(plan->context, m == NULL ? hpct_fail_memory(sizeof *m) : HPCT_OK);
    if (status == HPCT_OK)
        status = hpct_replica_set_open(&m->set, plan, false);
    if (status != HPCT_OK) {
        mirrored_close((hpct_strategy *) m);
        return status;
    }
    m->base =
        (hpct_strategy){.ops = &hpct_mirrored, .model = plan->model, .timeline = plan->timeline};
    *out = &m->base;
    return HPCT_OK;
}

static hpct_status mirrored_forward(hpct_strategy *strategy, int count, bool training)
{
    return hpct_replica_set_forward(&((mirrored *) strategy)->set, count, training);
}

static hpct_status mirrored_backward(hpct_strategy *strategy, int count, int global_count,
                                     hpct_step_sums *sums)
{
    return hpct_replica_set_backward(&((mirrored *) strategy)->set, count, global_count, sums);
}

/* Gradients that wait for others of their accumulation stay here; only the sums travel. */
static hpct_status mirrored_reduce(hpct_strategy *strategy, hpct_step_sums *sums)
{
    mirrored *m = (mirrored *) strategy;
    hpct_comm *comm = m->set.comm;
    hpct_status status = hpct_replica_set_add_up(&m->set, &m->due);
    if (status != HPCT_OK || comm->size == 1)
        return status;
    float *tail = m->set.gradients + m->set.count;
    hpct_sums_pack(sums, tail);
    double began = hpct_timeline_now(strategy->timeline);
    status = comm->ops->allreduce_sum(comm, m->due ? m->set.gradients : tail,
                                      (m->due ? m->set.count : 0) + HPCT_SUMS_FLOATS);
    hpct_timeline_add(strategy->timeline, HPCT_TIMELINE_REDUCTION, 0, began);
    hpct_sums_unpack(sums, tail);
    return status;
}

static hpct_status update_one(void *argument, int k)
{
    const mirrored *m = argument;
    return hpct_model_update_by(m->set.models[k], m->set.gradients);
}

static hpct_status mirrored_apply(hpct_strategy *strategy)
{
    mirrored *m = (mirrored *) strategy;
    return m->due ? hpct_crew_run(m->set.crew, update_one, m) : HPCT_OK;
}

static hpct_status mirrored_gather(hpct_strategy *strategy)
{
    return hpct_replica_set_gather(&((mirrored *) strategy)->set);
}

static hpct_status mirrored_evaluate(hpct_strategy *strategy, int count, hpct_batch_sums *sums)
{
    return hpct_replica_set_evaluate(&((mirrored *) strategy)->set, count, sums);
}

static int64_t mirrored_bytes_per_step(const hpct_strategy *strategy)
{
    const mirrored *m = (const mirrored *) strategy;
    const hpct_model *model = m->set.models[0];
    size_t gradients = m->set.count / (size_t) hpct_model_gradient_accumulation(model);
    size_t floats = gradients + HPCT_SUMS_FLOATS + hpct_model_synced_floats(model);
    return m->set.comm->size == 1 ? 0 : (int64_t) (floats * sizeof *m->set.gradients);
}

const hpct_strategy_ops hpct_mirrored = {
    .name = "mirrored",
    .replicas = true,
    .need = mirrored_need,
    .open = mirrored_open,
    .forward = mirrored_forward,
    .backward = mirrored_backward,
    .reduce = mirrored_reduce,
    .apply = mirrored_apply,
    .gather = mirrored_gather,
    .evaluate = mirrored_evaluate,
    .bytes_per_step = mirrored_bytes_per_step,
    .close = mirrored_close,
};
