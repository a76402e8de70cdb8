/* Every rank has the whole model and a slice of each global batch. Gradients are summed in buckets,
 * each while backward computes the next; loss and metric sums, stop signals and failures are
 * piggybacked on the last one. */
#include "agent/strategy/gradients/buckets.h"
#include "agent/strategy/gradients/compress.h"
#include "agent/strategy/replica.h"
#include "agent/strategy/state.h"
#include "base/status.h"
#include "nn/run/step.h"

#include <stdlib.h>
#include <string.h>

/* Sums whose copy from the device was requested. */
typedef struct waiting {
    bool asked;
    bool none; /* one rank, whose batch has no samples */
    int64_t samples;
} waiting;

typedef struct multi_worker {
    hpct_strategy base;
    hpct_comm *comm;
    hpct_model *model;
    float *gradients; /* [count + HPCT_RUN_ARENA_PIGGYBACK] */
    size_t count;
    int samples;        /* local batch of the step */
    bool due;           /* the step ends with an update */
    bool at_once;       /* buckets are sent during backward: no gradient accumulation */
    bool on_device;     /* sums are known at the end of the step, not before the update; */
    bool late;          /* and are read after the next step */
    bool one_updates;   /* plan->one_updates */
    float *flags;       /* [2][HPCT_STRATEGY_SUMS_FLOATS], sent to the device; NULL: one rank */
    waiting fetched[2]; /* used alternately */
    int turn;           /* index for this step */
    hpct_grad_buckets *buckets;       /* NULL: one rank */
    hpct_grad_compressor *compressor; /* NULL: no compression */
} multi_worker;

/* ---- memory, and closing ---- */

/* Backward may apply the update itself if the gradient is not read otherwise. */
static bool fuses(const hpct_strategy_plan *plan)
{
    return hpct_context_size(plan->context) == 1 && !plan->keep_gradients;
}

static hpct_status multi_worker_need(const hpct_strategy_plan *plan, size_t *bytes)
{
    size_t gradients;
    hpct_status status = hpct_strategy_replica_need(plan, fuses(plan), bytes, &gradients);
    int size = hpct_context_size(plan->context);
    *bytes += size > 1 ? hpct_grad_buckets_need(gradients, plan->options->wire) : 0;
    if (!hpct_model_on_device(plan->model)) /* otherwise compression is in host memory */
        *bytes += hpct_grad_compressor_need(&plan->options->compression, size, gradients);
    return status;
}

static void multi_worker_close(hpct_strategy *strategy)
{
    multi_worker *m = (multi_worker *) strategy;
    hpct_model_drop_recordings(m->model); /* they contain the buckets' reductions */
    hpct_model_set_peers(m->model, NULL);
    hpct_model_return_host(m->model, m->flags);
    hpct_grad_buckets_close(m->buckets);
    hpct_grad_compressor_close(m->compressor);
    free(m);
}

/* ---- hpct_graph_step_peers of the model ---- */

static hpct_status sum_over_ranks(void *argument, float *data, size_t count)
{
    const multi_worker *m = argument;
    return m->comm->ops->allreduce_sum(m->comm, data, count);
}

static hpct_status advance(void *argument, size_t done)
{
    const multi_worker *m = argument;
    return hpct_grad_buckets_advance(m->buckets, done);
}

/* Puts loss and metrics of this rank into the tail, beside the flags. */
static hpct_status put_sums(const multi_worker *m)
{
    return m->samples > 0 ? hpct_model_put_sums(m->model, m->gradients + m->count) : HPCT_OK;
}

static hpct_status reduce_all(void *argument)
{
    const multi_worker *m = argument;
    HPCT_TRY(put_sums(m));
    return hpct_grad_buckets_finish(m->buckets);
}

static hpct_status agree(void *argument, bool *all)
{
    float not = *all ? 0 : 1;
    hpct_status status = sum_over_ranks(argument, &not, 1);
    *all = not == 0;
    return status;
}

/* Decides whether whole steps can be recorded: not with a timeline, which needs the parts of a
 * step. */
static hpct_status set_peers(multi_worker *m, const hpct_strategy_plan *plan)
{
    hpct_graph_step_peers peers = {
        .argument = m, .sum = sum_over_ranks, .advance = m->at_once ? advance : NULL};
    bool whole = m->on_device && m->at_once && m->comm->records && plan->timeline == NULL &&
                 !plan->one_updates;
    hpct_status status = m->on_device ? agree(m, &whole) : HPCT_OK;
    m->base.whole_steps = m->on_device && whole;
    if (m->base.whole_steps) {
        peers.reduce = reduce_all;
        peers.agree = agree;
    }
    hpct_model_set_peers(m->model, &peers);
    return status;
}

/* ---- opening ---- */

static hpct_status open_buckets(multi_worker *m, const hpct_strategy_plan *plan)
{
    hpct_grad_buckets_options options = {
        .gradients = m->gradients,
        .count = m->count,
        .sums = HPCT_STRATEGY_SUMS_FLOATS,
        .strategy = plan->options,
        .timeline = plan->timeline,
    };
    hpct_status status = hpct_grad_buckets_open(&m->buckets, plan->context, &options);
    if (status == HPCT_OK)
        status = hpct_grad_compressor_open(&m->compressor, plan->context, m->model,
                                           &plan->options->compression);
    m->at_once = hpct_model_gradient_accumulation(m->model) == 1 && m->compressor == NULL;
    return status == HPCT_OK ? set_peers(m, plan) : status;
}

static hpct_status open_model(multi_worker *m, const hpct_strategy_plan *plan)
{
    size_t bytes = 2 * HPCT_STRATEGY_SUMS_FLOATS * sizeof *m->flags;
    bool alone = m->comm->size == 1;
    HPCT_TRY(hpct_strategy_replica_build(plan, fuses(plan)));
    m->gradients = hpct_model_gradients(m->model, &m->count);
    m->on_device = hpct_model_on_device(m->model);
    m->late = plan->late_sums && m->on_device;
    m->one_updates = plan->one_updates && !alone;
    m->base.whole_steps = m->on_device && alone && hpct_model_gradient_accumulation(m->model) == 1;
    if (alone)
        return HPCT_OK;
    m->flags = hpct_model_take_host(m->model, bytes);
    HPCT_TRY(
        hpct_context_agree(plan->context, m->flags == NULL ? hpct_fail_memory(bytes) : HPCT_OK));
    return open_buckets(m, plan);
}

static hpct_status multi_worker_open(hpct_strategy **out, const hpct_strategy_plan *plan)
{
    HPCT_TRY(
        hpct_strategy_new(out, sizeof(multi_worker), &hpct_strategy_multi_worker_mirrored, plan));
    multi_worker *m = (multi_worker *) *out;
    m->comm = hpct_context_comm(plan->context);
    m->model = plan->model;
    return hpct_strategy_opened(out, open_model(m, plan));
}

/* ---- sums of a step ---- */

static hpct_status ask(multi_worker *m, int64_t samples)
{
    waiting *w = &m->fetched[m->turn];
    bool alone = m->comm->size == 1;
    *w = (waiting){.asked = true, .none = alone && m->samples == 0, .samples = samples};
    if (w->none)
        return HPCT_OK;
    return alone ? hpct_model_fetch_sums(m->model, m->turn)
                 : hpct_model_fetch(m->model, m->turn, m->gradients + m->count,
                                    HPCT_STRATEGY_SUMS_FLOATS * sizeof(float));
}

/* Waits for requested sums, and adds them to *sums. */
static hpct_status take_fetched(multi_worker *m, int turn, hpct_strategy_step_sums *sums)
{
    waiting *w = &m->fetched[turn];
    hpct_strategy_step_sums there = {0};
    float piggyback[HPCT_STRATEGY_SUMS_FLOATS];
    hpct_backend_batch_sums own = {0};
    hpct_status status = HPCT_OK;
    if (!w->asked)
        return HPCT_OK;
    w->asked = false;
    if (m->comm->size > 1) {
        status = hpct_model_fetched(m->model, turn, piggyback, sizeof piggyback);
        hpct_strategy_sums_unpack(&there, piggyback);
    } else {
        status = w->none ? HPCT_OK : hpct_model_fetched(m->model, turn, &own, sizeof own);
        hpct_strategy_sums_set(&there, &own);
    }
    if (status != HPCT_OK)
        return status;
    sums->loss += there.loss;
    sums->correct += there.correct;
    sums->in_top_k += there.in_top_k;
    sums->interrupted += there.interrupted;
    sums->terminated += there.terminated;
    sums->failed += there.failed;
    sums->samples += w->samples;
    return HPCT_OK;
}

/* Sums of this step; with a late device those of the previous one. */
static hpct_status take_sums(multi_worker *m, hpct_strategy_step_sums *sums)
{
    int now = m->turn;
    bool alone = m->comm->size == 1, wait = !m->late || sums->last;
    HPCT_TRY(ask(m, sums->samples));
    *sums = (hpct_strategy_step_sums){.last = sums->last,
                                      .interrupted = alone ? sums->interrupted : 0,
                                      .terminated = alone ? sums->terminated : 0,
                                      .failed = alone ? sums->failed : 0};
    m->turn = 1 - now;
    HPCT_TRY(take_fetched(m, 1 - now, sums));
    return wait ? take_fetched(m, now, sums) : HPCT_OK;
}

/* ---- a step ---- */

static hpct_status multi_worker_forward(hpct_strategy *strategy, int count, bool training)
{
    return hpct_strategy_replica_forward(((multi_worker *) strategy)->model, count, training);
}

/* `count` is 0 if a short batch has no samples for this rank, or the rank failed. */
static hpct_status multi_worker_backward(hpct_strategy *strategy, int count, int global_count,
                                         hpct_strategy_step_sums *sums)
{
    multi_worker *m = (multi_worker *) strategy;
    m->samples = count;
    sums->loss = sums->correct = sums->in_top_k = 0;
    return hpct_strategy_replica_backward(m->model, count, 1.0f / (float) global_count);
}

/* Sends the host's flags to the tail of the arena, with zeros for the model's sums. */
static hpct_status send_flags(const multi_worker *m, hpct_strategy_step_sums *sums)
{
    float *flags = m->flags + m->turn * HPCT_STRATEGY_SUMS_FLOATS;
    hpct_strategy_step_sums own = *sums;
    own.loss = own.correct = own.in_top_k = 0;
    hpct_strategy_sums_pack(&own, flags);
    sums->failed = 0; /* failures of all ranks come back with the sums */
    return hpct_model_send(m->model, m->gradients + m->count, flags, HPCT_STRATEGY_SUMS_FLOATS);
}

/* The whole step at once, of all ranks together or of a single one. */
static hpct_status multi_worker_step(hpct_strategy *strategy, int count, int global_count,
                                     hpct_strategy_step_sums *sums)
{
    multi_worker *m = (multi_worker *) strategy;
    m->samples = count;
    if (m->comm->size > 1)
        HPCT_TRY(send_flags(m, sums));
    return hpct_model_step(m->model, count, 1.0f / (float) global_count);
}

/* If the step only accumulates gradients, only the sums are reduced. */
static hpct_status sum_gradients(const multi_worker *m)
{
    if (!m->due)
        return hpct_grad_buckets_sums(m->buckets);
    if (m->compressor != NULL)
        return hpct_grad_compressor_reduce(m->compressor, m->gradients, HPCT_STRATEGY_SUMS_FLOATS);
    return hpct_grad_buckets_finish(m->buckets);
}

static hpct_status multi_worker_reduce(hpct_strategy *strategy, hpct_strategy_step_sums *sums)
{
    multi_worker *m = (multi_worker *) strategy;
    HPCT_TRY(hpct_model_accumulate(m->model, &m->due));
    if (m->comm->size > 1) {
        HPCT_TRY(send_flags(m, sums));
        HPCT_TRY(put_sums(m));
        HPCT_TRY(sum_gradients(m));
    }
    return m->on_device ? HPCT_OK : take_sums(m, sums);
}

/* Updates on rank 0 and broadcasts the weights. */
static hpct_status update_one(const multi_worker *m)
{
    size_t count;
    hpct_status status = m->comm->rank == 0 ? hpct_model_update(m->model) : HPCT_OK;
    float *parameters = hpct_model_parameters(m->model, &count);
    if (status == HPCT_OK)
        status = m->comm->ops->broadcast(m->comm, parameters, count * sizeof *parameters, 0);
    size_t scaling = hpct_model_scaling_bytes(m->model);
    return status == HPCT_OK && scaling > 0
               ? m->comm->ops->broadcast(m->comm, hpct_model_scaling(m->model), scaling, 0)
               : status;
}

static hpct_status multi_worker_apply(hpct_strategy *strategy)
{
    multi_worker *m = (multi_worker *) strategy;
    if (!m->due)
        return HPCT_OK;
    return m->one_updates ? update_one(m) : hpct_model_update(m->model);
}

/* For a device: after all of its work was submitted. */
static hpct_status multi_worker_finish(hpct_strategy *strategy, hpct_strategy_step_sums *sums)
{
    multi_worker *m = (multi_worker *) strategy;
    return m->on_device ? take_sums(m, sums) : HPCT_OK;
}

static hpct_status multi_worker_gather(hpct_strategy *strategy)
{
    multi_worker *m = (multi_worker *) strategy;
    return hpct_strategy_replica_mean_states(m->comm, m->model);
}

static int64_t multi_worker_bytes_per_step(const hpct_strategy *strategy)
{
    const multi_worker *m = (const multi_worker *) strategy;
    if (m->comm->size == 1)
        return 0;
    size_t sums = hpct_grad_buckets_sum_bytes(m->buckets),
           all = hpct_grad_buckets_bytes(m->buckets);
    double gradients = (double) (all - sums);
    if (m->compressor != NULL) {
        gradients = hpct_grad_compressor_bytes(m->compressor);
        sums = HPCT_STRATEGY_SUMS_FLOATS * sizeof(float);
    }
    if (m->one_updates)
        gradients += (double) (m->count * sizeof(float)); /* the weights */
    gradients /= hpct_model_gradient_accumulation(m->model);
    return (int64_t) gradients +
           (int64_t) (sums + hpct_model_synced_floats(m->model) * sizeof(float));
}

/* ---- the state ---- */

static hpct_status multi_worker_extend(const hpct_strategy *strategy, hpct_run_state_list *list)
{
    const multi_worker *m = (const multi_worker *) strategy;
    return m->compressor != NULL
               ? hpct_run_state_list_add(list, m->model, HPCT_STRATEGY_STATE_RESIDUE, "residue")
               : HPCT_OK;
}

/* Each rank has moving statistics of its own samples, and their gradients until an update. */
static void multi_worker_share(const hpct_strategy *strategy, const hpct_run_state_value *value,
                               hpct_strategy_state_share *out)
{
    const multi_worker *m = (const multi_worker *) strategy;
    bool own = m->comm->size > 1 && (value->is_state || value->is_accumulated ||
                                     value->slot == HPCT_STRATEGY_STATE_RESIDUE);
    *out = own ? hpct_strategy_state_own(value, 1, m->comm->rank == 0)
               : hpct_strategy_state_equal(value, m->comm->rank == 0);
}

static hpct_status multi_worker_get(hpct_strategy *strategy, const hpct_run_state_value *value,
                                    int copy, float *floats)
{
    const multi_worker *m = (const multi_worker *) strategy;
    (void) copy;
    return value->slot == HPCT_STRATEGY_STATE_RESIDUE
               ? hpct_grad_compressor_get_residue(m->compressor, value->param, floats)
               : hpct_run_state_get(m->model, value->param, value->slot, floats);
}

static hpct_status multi_worker_put(hpct_strategy *strategy, const hpct_run_state_value *value,
                                    int copy, const float *floats)
{
    const multi_worker *m = (const multi_worker *) strategy;
    (void) copy;
    return value->slot == HPCT_STRATEGY_STATE_RESIDUE
               ? hpct_grad_compressor_put_residue(m->compressor, value->param, floats)
               : hpct_run_state_put(m->model, value->param, value->slot, floats);
}

static void multi_worker_numbers(hpct_strategy *strategy, double *numbers, bool put)
{
    multi_worker *m = (multi_worker *) strategy;
    if (m->compressor != NULL && put)
        m->compressor->reduced = (int64_t) numbers[0];
    else if (!put)
        numbers[0] = m->compressor != NULL ? (double) m->compressor->reduced : 0;
}

static float *multi_worker_layout_floats(const hpct_strategy *strategy, size_t *count)
{
    const multi_worker *m = (const multi_worker *) strategy;
    *count = 0;
    return m->compressor != NULL && m->compressor->ops->factors != NULL
               ? m->compressor->ops->factors(m->compressor, count)
               : NULL;
}

static const struct hpct_strategy_state_ops state_ops = {
    .extend = multi_worker_extend,
    .share = multi_worker_share,
    .get = multi_worker_get,
    .put = multi_worker_put,
    .num_numbers = 1,
    .numbers = multi_worker_numbers,
    .layout_floats = multi_worker_layout_floats,
};

const hpct_strategy_ops hpct_strategy_multi_worker_mirrored = {
    .name = "multi-worker-mirrored",
    .keeps_gradients = true,
    .state = &state_ops,
    .need = multi_worker_need,
    .open = multi_worker_open,
    .forward = multi_worker_forward,
    .backward = multi_worker_backward,
    .reduce = multi_worker_reduce,
    .apply = multi_worker_apply,
    .step = multi_worker_step,
    .finish = multi_worker_finish,
    .gather = multi_worker_gather,
    .bytes_per_step = multi_worker_bytes_per_step,
    .close = multi_worker_close,
};
