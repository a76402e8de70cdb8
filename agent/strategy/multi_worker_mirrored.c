/* Every rank has the whole model and a slice of each global batch; one all-reduce of the gradient
 * arena a step, with the loss and metric sums, the stop signals and failures in its tail. */
#include "agent/strategy/replica.h"
#include "base/status.h"
#include "nn/step.h"

#include <stdlib.h>
#include <string.h>

typedef struct mirrored {
    hpct_strategy base;
    hpct_comm *comm;
    hpct_model *model;
    float *gradients; /* [count + HPCT_ARENA_TAIL] */
    size_t count;
    bool due; /* the step ends with an update */
} mirrored;

/* ---- opening ---- */

/* Backward may apply the update itself where nobody else needs the gradient. */
static bool fuses(const hpct_strategy_plan *plan)
{
    return hpct_context_size(plan->context) == 1 && !plan->keep_gradients;
}

/* Reducing takes up to the gradients' size again, for what comes from another rank. */
static hpct_status mirrored_need(const hpct_strategy_plan *plan, size_t *bytes)
{
    size_t gradients;
    hpct_status status = hpct_replica_need(plan, fuses(plan), bytes, &gradients);
    *bytes += hpct_context_size(plan->context) > 1 ? gradients : 0;
    return status;
}

static void mirrored_close(hpct_strategy *strategy)
{
    mirrored *m = (mirrored *) strategy;
    if (m != NULL)
        hpct_model_set_replicas(m->model, NULL);
    free(strategy);
}

/* hpct_replicas of the model. */
static hpct_status sum_over_ranks(void *argument, float *data, size_t count)
{
    hpct_comm *comm = argument;
    return comm->ops->allreduce_sum(comm, data, count);
}

static hpct_status mirrored_open(hpct_strategy **out, const hpct_strategy_plan *plan)
{
    mirrored *m = calloc(1, sizeof *m);
    hpct_status status =
        hpct_context_agree(plan->context, m == NULL ? hpct_fail_memory(sizeof *m) : HPCT_OK);
    if (status != HPCT_OK)
        goto fail;
    m->base.ops = &hpct_multi_worker_mirrored;
    m->base.model = plan->model;
    m->comm = hpct_context_comm(plan->context);
    m->model = plan->model;
    status = hpct_replica_build(plan, fuses(plan));
    if (status != HPCT_OK)
        goto fail;
    m->gradients = hpct_model_gradients(m->model, &m->count);
    if (m->comm->size > 1)
        hpct_model_set_replicas(m->model,
                                &(hpct_replicas){.sum = sum_over_ranks, .argument = m->comm});
    *out = &m->base;
    return HPCT_OK;

fail:
    free(m);
    return status;
}

/* ---- a step ---- */

static hpct_status mirrored_forward(hpct_strategy *strategy, int count, bool training)
{
    mirrored *m = (mirrored *) strategy;
    if (count > 0)
        return hpct_model_forward(m->model, count, training);
    return training ? hpct_model_forward_absent(m->model) : HPCT_OK;
}

static hpct_status mirrored_backward(hpct_strategy *strategy, int count, int global_count,
                                     hpct_step_sums *sums)
{
    mirrored *m = (mirrored *) strategy;
    hpct_batch_sums local = {0};
    hpct_status status = HPCT_OK;
    if (count == 0) { /* a short batch had none for this rank, or it failed: it adds nothing */
        memset(m->gradients, 0, m->count * sizeof *m->gradients);
        status = hpct_model_backward_absent(m->model);
    } else {
        status = hpct_model_loss(m->model, count, 1.0f / (float) global_count, &local);
        if (status == HPCT_OK)
            status = hpct_model_backward(m->model, count);
    }
    sums->loss = local.loss;
    sums->correct = (double) local.correct;
    sums->in_top_k = (double) local.in_top_k;
    return status;
}

/* Gradients that wait for others of their accumulation stay here; only the sums travel. */
static hpct_status mirrored_reduce(hpct_strategy *strategy, hpct_step_sums *sums)
{
    mirrored *m = (mirrored *) strategy;
    hpct_status status = hpct_model_accumulate(m->model, &m->due);
    if (status != HPCT_OK || m->comm->size == 1)
        return status;
    float *tail = m->gradients + m->count;
    hpct_sums_pack(sums, tail);
    status = m->comm->ops->allreduce_sum(m->comm, m->due ? m->gradients : tail,
                                         (m->due ? m->count : 0) + HPCT_SUMS_FLOATS);
    hpct_sums_unpack(sums, tail);
    return status;
}

static hpct_status mirrored_apply(hpct_strategy *strategy)
{
    mirrored *m = (mirrored *) strategy;
    return m->due ? hpct_model_update(m->model) : HPCT_OK;
}

static hpct_status mirrored_gather(hpct_strategy *strategy)
{
    mirrored *m = (mirrored *) strategy;
    return hpct_replica_mean_states(m->comm, m->model);
}

static int64_t mirrored_bytes_per_step(const hpct_strategy *strategy)
{
    const mirrored *m = (const mirrored *) strategy;
    size_t gradients = m->count / (size_t) hpct_model_gradient_accumulation(m->model);
    size_t floats = gradients + HPCT_SUMS_FLOATS + hpct_model_synced_floats(m->model);
    return m->comm->size == 1 ? 0 : (int64_t) (floats * sizeof *m->gradients);
}

const hpct_strategy_ops hpct_multi_worker_mirrored = {
    .name = "multi-worker-mirrored",
    .need = mirrored_need,
    .open = mirrored_open,
    .forward = mirrored_forward,
    .backward = mirrored_backward,
    .reduce = mirrored_reduce,
    .apply = mirrored_apply,
    .gather = mirrored_gather,
    .bytes_per_step = mirrored_bytes_per_step,
    .close = mirrored_close,
};
