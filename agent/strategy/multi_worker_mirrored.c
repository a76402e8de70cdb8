/* Every rank has the whole model and a slice of each global batch. Gradients are summed in buckets,
 * each while backward computes the next; the loss and metric sums, the stop signals and failures
 * are in the last one's tail. */
#include "agent/strategy/buckets.h"
#include "agent/strategy/compress.h"
#include "agent/strategy/replica.h"
#include "base/status.h"
#include "nn/step.h"

#include <stdlib.h>
#include <string.h>

/* Sums that have been asked of the device. */
typedef struct waiting {
    bool asked;
    bool none; /* this rank, alone, had no samples */
    int64_t samples;
} waiting;

typedef struct mirrored {
    hpct_strategy base;
    hpct_comm *comm;
    hpct_model *model;
    float *gradients; /* [count + HPCT_ARENA_TAIL] */
    size_t count;
    int samples;    /* of this rank in the step */
    bool due;       /* the step ends with an update */
    bool at_once;   /* buckets go while backward computes: gradients are not accumulated after it */
    bool on_device; /* sums are sent and fetched without waiting for it, */
    bool late;      /* and those of a step are looked at after the next */
    bool one_updates;            /* the plan's */
    float *flags;                /* [2][HPCT_SUMS_FLOATS], as they are sent; NULL: alone */
    waiting fetched[2];          /* by turns */
    int turn;                    /* of this step */
    hpct_buckets *buckets;       /* NULL: alone */
    hpct_compressor *compressor; /* NULL: gradients go as they are */
} mirrored;

/* ---- what it needs, and the end ---- */

/* Backward may apply the update itself where nobody else needs the gradient. */
static bool fuses(const hpct_strategy_plan *plan)
{
    return hpct_context_size(plan->context) == 1 && !plan->keep_gradients;
}

static hpct_status mirrored_need(const hpct_strategy_plan *plan, size_t *bytes)
{
    size_t gradients;
    hpct_status status = hpct_replica_need(plan, fuses(plan), bytes, &gradients);
    int size = hpct_context_size(plan->context);
    *bytes += size > 1 ? hpct_buckets_need(gradients, plan->options->wire) : 0;
    if (!hpct_model_on_device(plan->model)) /* else the host compresses */
        *bytes += hpct_compressor_need(&plan->options->compression, size, gradients);
    return status;
}

static void mirrored_close(hpct_strategy *strategy)
{
    mirrored *m = (mirrored *) strategy;
    if (m == NULL)
        return;
    hpct_model_drop_recordings(m->model); /* the buckets' reductions are in them */
    hpct_model_set_replicas(m->model, NULL);
    hpct_model_set_watcher(m->model, NULL);
    hpct_model_return_host(m->model, m->flags);
    hpct_buckets_close(m->buckets);
    hpct_compressor_close(m->compressor);
    free(m);
}

/* hpct_replicas of the model. */
static hpct_status sum_over_ranks(void *argument, float *data, size_t count)
{
    hpct_comm *comm = argument;
    return comm->ops->allreduce_sum(comm, data, count);
}

/* ---- hpct_watcher of the model ---- */

static hpct_status advance(void *argument, size_t done)
{
    const mirrored *m = argument;
    return hpct_buckets_advance(m->buckets, done);
}

/* Loss and metrics of this rank join what the host has sent to the tail. */
static hpct_status reduce_all(void *argument)
{
    const mirrored *m = argument;
    hpct_status status = HPCT_OK;
    if (m->samples > 0)
        status = hpct_model_put_sums(m->model, m->gradients + m->count);
    return status == HPCT_OK ? hpct_buckets_finish(m->buckets) : status;
}

static hpct_status agree(void *argument, bool *all)
{
    const mirrored *m = argument;
    float not = *all ? 0 : 1;
    hpct_status status = m->comm->ops->allreduce_sum(m->comm, &not, 1);
    *all = not == 0;
    return status;
}

/* A timeline shows the parts of steps. */
static hpct_status watch_model(mirrored *m, const hpct_strategy_plan *plan)
{
    hpct_watcher watcher = {.advance = advance, .argument = m};
    bool whole = m->on_device && m->at_once && m->comm->records && plan->timeline == NULL &&
                 !plan->one_updates;
    hpct_status status = m->on_device ? agree(m, &whole) : HPCT_OK;
    m->base.whole_steps = m->on_device && whole;
    if (m->base.whole_steps) {
        watcher.reduce = reduce_all;
        watcher.agree = agree;
    }
    if (m->at_once)
        hpct_model_set_watcher(m->model, &watcher);
    return status;
}

/* ---- opening ---- */

static hpct_status open_buckets(mirrored *m, const hpct_strategy_plan *plan)
{
    hpct_buckets_options options = {
        .gradients = m->gradients,
        .count = m->count,
        .sums = HPCT_SUMS_FLOATS,
        .strategy = plan->options,
        .timeline = plan->timeline,
    };
    hpct_status status = hpct_buckets_open(&m->buckets, plan->context, &options);
    if (status == HPCT_OK)
        status = hpct_compressor_open(&m->compressor, plan->context, m->model,
                                      &plan->options->compression);
    m->at_once = hpct_model_gradient_accumulation(m->model) == 1 && m->compressor == NULL;
    return status == HPCT_OK ? watch_model(m, plan) : status;
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
    m->base.timeline = plan->timeline;
    m->comm = hpct_context_comm(plan->context);
    m->model = plan->model;
    status = hpct_replica_build(plan, fuses(plan));
    if (status != HPCT_OK)
        goto fail;
    m->gradients = hpct_model_gradients(m->model, &m->count);
    m->on_device = hpct_model_on_device(m->model);
    m->late = plan->late_sums;
    m->one_updates = plan->one_updates && m->comm->size > 1;
    m->base.whole_steps =
        m->on_device && m->comm->size == 1 && hpct_model_gradient_accumulation(m->model) == 1;
    if (m->comm->size > 1 && m->on_device) {
        size_t bytes = 2 * HPCT_SUMS_FLOATS * sizeof *m->flags;
        m->flags = hpct_model_take_host(m->model, bytes);
        status =
            hpct_context_agree(plan->context, m->flags == NULL ? hpct_fail_memory(bytes) : HPCT_OK);
    }
    if (status == HPCT_OK && m->comm->size > 1) {
        hpct_model_set_replicas(m->model,
                                &(hpct_replicas){.sum = sum_over_ranks, .argument = m->comm});
        status = open_buckets(m, plan);
    }
    if (status != HPCT_OK)
        goto fail;
    *out = &m->base;
    return HPCT_OK;

fail:
    if (m != NULL && m->model != NULL)
        mirrored_close(&m->base);
    else
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
    hpct_status status = HPCT_OK;
    m->samples = count;
    *sums = (hpct_step_sums){.interrupted = sums->interrupted,
                             .terminated = sums->terminated,
                             .failed = sums->failed,
                             .samples = sums->samples,
                             .last = sums->last};
    if (count == 0) { /* a short batch had none for this rank, or it failed: it adds nothing */
        status = hpct_model_clear_gradients(m->model);
        if (status == HPCT_OK)
            status = hpct_model_backward_absent(m->model);
    } else {
        status = hpct_model_loss(m->model, count, 1.0f / (float) global_count, NULL);
        if (status == HPCT_OK)
            status = hpct_model_backward(m->model, count);
    }
    return status;
}

/* This rank's, once the device has them. */
static hpct_status take_sums(const mirrored *m, hpct_step_sums *sums)
{
    hpct_batch_sums local = {0};
    hpct_status status = m->samples > 0 ? hpct_model_sums(m->model, &local) : HPCT_OK;
    sums->loss = local.loss;
    sums->correct = (double) local.correct;
    sums->in_top_k = (double) local.in_top_k;
    return status;
}

/* What the host knows goes to the tail of the arena, with zeros for what the device knows. */
static hpct_status send_flags(const mirrored *m, hpct_step_sums *sums)
{
    float *flags = m->flags + m->turn * HPCT_SUMS_FLOATS;
    hpct_step_sums own = *sums;
    own.loss = own.correct = own.in_top_k = 0;
    hpct_sums_pack(&own, flags);
    sums->failed = 0; /* all ranks make the update, and learn of it then */
    return hpct_model_send(m->model, m->gradients + m->count, flags, HPCT_SUMS_FLOATS);
}

static hpct_status send_tail(const mirrored *m, hpct_step_sums *sums)
{
    hpct_status status = send_flags(m, sums);
    return status == HPCT_OK && m->samples > 0
               ? hpct_model_put_sums(m->model, m->gradients + m->count)
               : status;
}

/* Of all ranks at once, or of the one that there is. */
static hpct_status mirrored_step(hpct_strategy *strategy, int count, int global_count,
                                 hpct_step_sums *sums)
{
    mirrored *m = (mirrored *) strategy;
    hpct_status status = HPCT_OK;
    m->samples = count;
    if (m->comm->size > 1)
        status = send_flags(m, sums);
    return status == HPCT_OK ? hpct_model_step(m->model, count, 1.0f / (float) global_count)
                             : status;
}

static hpct_status write_tail(const mirrored *m, hpct_step_sums *sums)
{
    float tail[HPCT_SUMS_FLOATS];
    hpct_status status = take_sums(m, sums);
    hpct_sums_pack(sums, tail);
    return status == HPCT_OK
               ? hpct_model_write(m->model, m->gradients + m->count, tail, HPCT_SUMS_FLOATS)
               : status;
}

static hpct_status read_tail(const mirrored *m, hpct_step_sums *sums)
{
    float tail[HPCT_SUMS_FLOATS];
    hpct_status status = hpct_model_read(m->model, tail, m->gradients + m->count, HPCT_SUMS_FLOATS);
    hpct_sums_unpack(sums, tail);
    return status;
}

/* Gradients that wait for others of their accumulation stay here; only the sums travel. */
static hpct_status mirrored_reduce(hpct_strategy *strategy, hpct_step_sums *sums)
{
    mirrored *m = (mirrored *) strategy;
    hpct_status status = hpct_model_accumulate(m->model, &m->due);
    if (status != HPCT_OK || m->comm->size == 1)
        return status;
    status = m->on_device ? send_tail(m, sums) : write_tail(m, sums);
    if (status != HPCT_OK)
        return status;
    if (!m->due)
        status = hpct_buckets_sums(m->buckets);
    else if (m->compressor != NULL)
        status = hpct_compressor_reduce(m->compressor, m->gradients, HPCT_SUMS_FLOATS);
    else
        status = hpct_buckets_finish(m->buckets);
    return status == HPCT_OK && !m->on_device ? read_tail(m, sums) : status;
}

/* Rank 0's update, for all. */
static hpct_status update_one(const mirrored *m)
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

static hpct_status mirrored_apply(hpct_strategy *strategy)
{
    mirrored *m = (mirrored *) strategy;
    if (!m->due)
        return HPCT_OK;
    return m->one_updates ? update_one(m) : hpct_model_update(m->model);
}

static hpct_status ask(mirrored *m, int64_t samples)
{
    waiting *w = &m->fetched[m->turn];
    bool alone = m->comm->size == 1;
    *w = (waiting){.asked = true, .none = alone && m->samples == 0, .samples = samples};
    if (w->none)
        return HPCT_OK;
    return alone ? hpct_model_fetch_sums(m->model, m->turn)
                 : hpct_model_fetch(m->model, m->turn, m->gradients + m->count,
                                    HPCT_SUMS_FLOATS * sizeof(float));
}

/* Waits for them, and adds them. */
static hpct_status take_fetched(mirrored *m, int turn, hpct_step_sums *sums)
{
    waiting *w = &m->fetched[turn];
    hpct_step_sums there = {0};
    float tail[HPCT_SUMS_FLOATS];
    hpct_batch_sums own = {0};
    hpct_status status = HPCT_OK;
    if (!w->asked)
        return HPCT_OK;
    w->asked = false;
    if (m->comm->size > 1) {
        status = hpct_model_fetched(m->model, turn, tail, sizeof tail);
        hpct_sums_unpack(&there, tail);
    } else {
        status = w->none ? HPCT_OK : hpct_model_fetched(m->model, turn, &own, sizeof own);
        there = (hpct_step_sums){
            .loss = own.loss, .correct = (double) own.correct, .in_top_k = (double) own.in_top_k};
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

/* On a device, when everything has been asked of it: those of this step, or, while it is busy with
 * that, those of the one before. */
static hpct_status mirrored_finish(hpct_strategy *strategy, hpct_step_sums *sums)
{
    mirrored *m = (mirrored *) strategy;
    if (!m->on_device)
        return m->comm->size == 1 ? take_sums(m, sums) : HPCT_OK;
    hpct_status status = ask(m, sums->samples);
    int now = m->turn;
    bool alone = m->comm->size == 1, wait = !m->late || sums->last;
    *sums = (hpct_step_sums){.last = sums->last,
                             .interrupted = alone ? sums->interrupted : 0,
                             .terminated = alone ? sums->terminated : 0,
                             .failed = alone ? sums->failed : 0};
    m->turn = 1 - now;
    if (status == HPCT_OK)
        status = take_fetched(m, 1 - now, sums);
    return status == HPCT_OK && wait ? take_fetched(m, now, sums) : status;
}

static hpct_status mirrored_gather(hpct_strategy *strategy)
{
    mirrored *m = (mirrored *) strategy;
    return hpct_replica_mean_states(m->comm, m->model);
}

static int64_t mirrored_bytes_per_step(const hpct_strategy *strategy)
{
    const mirrored *m = (const mirrored *) strategy;
    if (m->comm->size == 1)
        return 0;
    size_t sums = hpct_buckets_sum_bytes(m->buckets), all = hpct_buckets_bytes(m->buckets);
    double gradients = (double) (all - sums);
    if (m->compressor != NULL) {
        gradients = hpct_compressor_bytes(m->compressor);
        sums = HPCT_SUMS_FLOATS * sizeof(float);
    }
    if (m->one_updates)
        gradients += (double) (m->count * sizeof(float)); /* the weights */
    gradients /= hpct_model_gradient_accumulation(m->model);
    return (int64_t) gradients +
           (int64_t) (sums + hpct_model_synced_floats(m->model) * sizeof(float));
}

const hpct_strategy_ops hpct_multi_worker_mirrored = {
    .name = "multi-worker-mirrored",
    .need = mirrored_need,
    .open = mirrored_open,
    .forward = mirrored_forward,
    .backward = mirrored_backward,
    .reduce = mirrored_reduce,
    .apply = mirrored_apply,
    .step = mirrored_step,
    .finish = mirrored_finish,
    .gather = mirrored_gather,
    .bytes_per_step = mirrored_bytes_per_step,
    .close = mirrored_close,
};
