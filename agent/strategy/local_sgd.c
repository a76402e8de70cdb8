/* Local SGD: every rank trains its own replica on its slices, and the weights are averaged every H
 * steps (Stich, Local SGD converges fast and communicates little, 2019), after a first phase with
 * an average after each step (Lin, Stich, Patel and Jaggi, Don't use large mini-batches, use local
 * SGD, 2020). Optimizer slots are not averaged, as in Lin et al. (local momentum); moving
 * statistics only when they are read, which gives the same mean as averaging them on the way.
 *
 * Losses, signals and failures are reduced with the weights: a rank that has failed or received a
 * signal continues until then, so that all end after the same step.
 *
 * A rank's gradient is weighted with ranks / global batch, so that every sample of a global batch
 * has the same weight however it is split; the mean with H = 1 then is data parallelism, exactly
 * except for rounding, for SGD with or without momentum. */
#include "agent/strategy/gradients/buckets.h"
#include "agent/strategy/replica.h"
#include "agent/strategy/state.h"
#include "base/status.h"
#include "nn/run/step.h"

#include <stdlib.h>

typedef struct local_sgd {
    hpct_strategy base;
    hpct_comm *comm;
    hpct_model *model;
    int interval;                 /* steps between averages */
    int64_t warmup, steps;        /* number of steps with an average after each; of all so far */
    int since;                    /* steps since the last average */
    int64_t averages;             /* number of averages so far */
    hpct_strategy_step_sums open; /* sums since the last average: loss and metrics, samples */
    float sums[HPCT_RUN_ARENA_PIGGYBACK];
    int samples;              /* local batch of the step */
    bool due, average;        /* the step ends with an update; with an average */
    hpct_comm_reduction *sum; /* reduction of the weights; NULL for one rank */
} local_sgd;

static bool fuses(const hpct_strategy_plan *plan)
{
    return !plan->keep_gradients; /* otherwise the gradient is not read */
}

/* Averaging receives up to the size of the weights from other ranks. */
static hpct_status local_need(const hpct_strategy_plan *plan, size_t *bytes)
{
    size_t gradients;
    HPCT_TRY(hpct_strategy_replica_need(plan, fuses(plan), bytes, &gradients));
    if (hpct_context_size(plan->context) > 1)
        *bytes += hpct_model_count_parameters(plan->model) * sizeof(float);
    return HPCT_OK;
}

static void local_close(hpct_strategy *strategy)
{
    local_sgd *l = (local_sgd *) strategy;
    hpct_model_set_peers(l->model, NULL);
    if (l->sum != NULL)
        l->comm->ops->release(l->sum);
    free(l);
}

/* hpct_graph_step_peers.sum of the model. */
static hpct_status sum_over_ranks(void *argument, float *data, size_t count)
{
    hpct_comm *comm = argument;
    return comm->ops->allreduce_sum(comm, data, count);
}

static hpct_status prepare_sum(local_sgd *l, hpct_context *context)
{
    size_t count;
    bool grouped = false;
    hpct_status status;
    int *groups = hpct_context_allocate(context, (size_t) l->comm->size * sizeof *groups, &status);
    if (status == HPCT_OK)
        status = hpct_grad_buckets_groups(context, HPCT_WIRE_FP32, groups, &grouped);
    if (status == HPCT_OK) {
        hpct_comm_reduction_options options = {.groups = grouped ? groups : NULL};
        options.data = hpct_model_parameters(l->model, &count);
        options.count = count;
        status = l->comm->ops->prepare(l->comm, &l->sum, &options);
    }
    free(groups);
    return hpct_context_agree(context, status);
}

/* Each rank has its own loss scale, unless gradients are summed within backward: then all skip the
 * same updates. */
static void set_peers(local_sgd *l)
{
    bool synced = hpct_model_synced_floats(l->model) > 0;
    hpct_model_set_peers(l->model,
                         &(hpct_graph_step_peers){.argument = l->comm,
                                                  .sum = sum_over_ranks,
                                                  .judge = synced ? sum_over_ranks : NULL});
}

static hpct_status local_open(hpct_strategy **out, const hpct_strategy_plan *plan)
{
    const hpct_strategy_options *o = plan->options;
    HPCT_TRY(hpct_strategy_new(out, sizeof(local_sgd), &hpct_strategy_local_sgd, plan));
    local_sgd *l = (local_sgd *) *out;
    l->model = plan->model;
    l->comm = hpct_context_comm(plan->context);
    l->interval = hpct_strategy_period(&hpct_strategy_local_sgd, o);
    l->warmup = o->local_warmup_steps == 0 ? HPCT_LOCAL_WARMUP_STEPS : o->local_warmup_steps;
    hpct_status status = hpct_strategy_replica_build(plan, fuses(plan));
    if (status == HPCT_OK && l->comm->size > 1) {
        set_peers(l);
        status = prepare_sum(l, plan->context);
    }
    return hpct_strategy_opened(out, status);
}

static hpct_status local_forward(hpct_strategy *strategy, int count, bool training)
{
    return hpct_strategy_replica_forward(((local_sgd *) strategy)->model, count, training);
}

static hpct_status local_backward(hpct_strategy *strategy, int count, int global_count,
                                  hpct_strategy_step_sums *sums)
{
    local_sgd *l = (local_sgd *) strategy;
    (void) sums; /* read by reduce, after all of the device's work was submitted */
    l->samples = count;
    return hpct_strategy_replica_backward(l->model, count,
                                          (float) ((double) l->comm->size / (double) global_count));
}

/* Whether this step ends with an average. All ranks count the same steps, so all agree. */
static bool ends_round(const local_sgd *l, const hpct_strategy_step_sums *sums)
{
    return sums->last || l->steps < l->warmup || l->since + 1 >= l->interval;
}

static hpct_status local_reduce(hpct_strategy *strategy, hpct_strategy_step_sums *sums)
{
    local_sgd *l = (local_sgd *) strategy;
    hpct_backend_batch_sums mine = {0};
    hpct_status status = hpct_model_accumulate(l->model, &l->due);
    if (status == HPCT_OK && l->samples > 0)
        status = hpct_model_sums(l->model, &mine);
    l->average = ends_round(l, sums);
    l->open.loss += mine.loss;
    l->open.correct += (double) mine.correct;
    l->open.in_top_k += (double) mine.in_top_k;
    l->open.samples += sums->samples;
    l->since++;
    l->steps++;
    if (!l->average) { /* nothing is known about the other ranks */
        *sums = (hpct_strategy_step_sums){.last = sums->last};
        return status;
    }
    sums->loss = l->open.loss;
    sums->correct = l->open.correct;
    sums->in_top_k = l->open.in_top_k;
    sums->samples = l->open.samples;
    l->open = (hpct_strategy_step_sums){0};
    if (status != HPCT_OK || l->comm->size == 1)
        return status;
    hpct_strategy_sums_pack(sums, l->sums);
    status = l->comm->ops->allreduce_sum(l->comm, l->sums, HPCT_STRATEGY_SUMS_FLOATS);
    hpct_strategy_sums_unpack(sums, l->sums);
    return status;
}

static hpct_status average_weights(local_sgd *l)
{
    l->since = 0;
    l->averages++;
    if (l->comm->size == 1)
        return HPCT_OK;
    HPCT_TRY(l->comm->ops->start(l->sum));
    HPCT_TRY(l->comm->ops->wait(l->sum));
    return hpct_model_scale_parameters(l->model, 1.0f / (float) l->comm->size);
}

static hpct_status local_apply(hpct_strategy *strategy)
{
    local_sgd *l = (local_sgd *) strategy;
    if (l->due)
        HPCT_TRY(hpct_model_update(l->model));
    return l->average ? average_weights(l) : HPCT_OK;
}

static hpct_status local_gather(hpct_strategy *strategy)
{
    local_sgd *l = (local_sgd *) strategy;
    if (l->since > 0)
        HPCT_TRY(average_weights(l));
    return hpct_strategy_replica_mean_states(l->comm, l->model);
}

static int64_t local_bytes_per_step(const hpct_strategy *strategy)
{
    const local_sgd *l = (const local_sgd *) strategy;
    size_t count;
    if (l->comm->size == 1)
        return 0;
    hpct_model_gradients(l->model, &count); /* as many as parameters */
    double bytes = (double) ((count + HPCT_STRATEGY_SUMS_FLOATS) * sizeof(float));
    double share = l->steps > 0 ? (double) l->averages / (double) l->steps : 1.0 / l->interval;
    return (int64_t) (bytes * share) +
           (int64_t) (hpct_model_synced_floats(l->model) * sizeof(float));
}

/* ---- the state ---- */

/* After an average: the weights are equal then. */
static bool local_ready(const hpct_strategy *strategy)
{
    return ((const local_sgd *) strategy)->since == 0;
}

/* Each rank has optimizer slots of its own, too. */
static void local_share(const hpct_strategy *strategy, const hpct_run_state_value *value,
                        hpct_strategy_state_share *out)
{
    const local_sgd *l = (const local_sgd *) strategy;
    bool own = l->comm->size > 1 && (value->is_state || value->slot != HPCT_RUN_STATE_PARAM);
    *out = own ? hpct_strategy_state_own(value, 1, l->comm->rank == 0)
               : hpct_strategy_state_equal(value, l->comm->rank == 0);
}

static void local_numbers(hpct_strategy *strategy, double *numbers, bool put)
{
    local_sgd *l = (local_sgd *) strategy;
    if (put) {
        l->steps = (int64_t) numbers[0];
        l->averages = (int64_t) numbers[1];
    } else {
        numbers[0] = (double) l->steps;
        numbers[1] = (double) l->averages;
    }
}

static const struct hpct_strategy_state_ops state_ops = {
    .ready = local_ready,
    .share = local_share,
    .num_numbers = 2,
    .numbers = local_numbers,
};

const hpct_strategy_ops hpct_strategy_local_sgd = {
    .name = "local-sgd",
    .state = &state_ops,
    .need = local_need,
    .open = local_open,
    .forward = local_forward,
    .backward = local_backward,
    .reduce = local_reduce,
    .apply = local_apply,
    .gather = local_gather,
    .bytes_per_step = local_bytes_per_step,
    .close = local_close,
};
