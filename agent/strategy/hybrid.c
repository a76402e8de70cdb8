/* Tensor parallelism within exact synchronous SGD: every rank reads the whole global batch and
 * computes its part of the model (nn/split/shard.h), so that the gradients of the largest layers
 * are never sent. If there is a front, a rank computes it on its local batch only, and its
 * gradients are summed in buckets during backward. Collectives within forward also carry stop
 * signals and failures; all ranks compute the loss. With one rank it is the unsplit model. */
#include "agent/comm/circulant.h"
#include "agent/comm/fabric.h"
#include "agent/data/sampler.h"
#include "agent/strategy/alike.h"
#include "agent/strategy/gradients/buckets.h"
#include "agent/strategy/replica.h"
#include "agent/strategy/state.h"
#include "agent/strategy/strategy.h"
#include "base/nearest.h"
#include "base/status.h"
#include "nn/graph/shape.h"
#include "nn/run/penalty.h"
#include "nn/run/step.h"
#include "nn/split/shard.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEVICE_ALIGNMENT 16 /* alignment in bytes that the device libraries' kernels require */

/* Piggybacked on forward's first collective. */
enum { PIGGYBACK_INTERRUPTED, PIGGYBACK_TERMINATED, PIGGYBACK_FAILED, PIGGYBACK_USED };
_Static_assert((int) PIGGYBACK_USED <= HPCT_GRAPH_PIGGYBACK, "the signals fit");

typedef struct hybrid {
    hpct_strategy base;
    hpct_context *context;
    hpct_comm *comm;
    hpct_comm_circulant *own; /* for collectives within a step; NULL: `comm` is used */
    hpct_model *whole;        /* the user's model */
    hpct_split_shard *shard;  /* NULL with one rank */
    hpct_model *model;        /* model of the steps: the shard's, or `whole` */
    float *gradients;
    const hpct_split_shard_range *summed; /* ranges of the gradients, without the front */
    int num_summed;
    size_t summed_floats;
    float *packed; /* [summed_floats], to sum several ranges at once; NULL: one collective per
                      range, as in device memory */
    hpct_grad_buckets *buckets; /* of the front, from front_begin to the arena's end; NULL: none */
    size_t front_begin;
    bool at_once;  /* buckets are sent during backward: no gradient accumulation */
    size_t floats; /* passed to collectives within a step of a full batch */
    bool due;      /* the step ends with an update */
    bool failed;   /* a rank had no input */
    float piggyback[HPCT_GRAPH_PIGGYBACK];
    float *parcel; /* a part of a value, for the state; NULL until needed */
} hybrid;

/* ---- opening ---- */

hpct_status hpct_strategy_hybrid_form(const hpct_strategy_options *options,
                                      hpct_split_shard_form *form)
{
    static const char *const names[] = {
        [HPCT_SPLIT_SHARD_AUTO] = "auto",
        [HPCT_SPLIT_SHARD_ROWS] = "rows",
        [HPCT_SPLIT_SHARD_COLUMNS] = "columns",
        [HPCT_SPLIT_SHARD_BACK] = "back",
    };
    const char *name = options->hybrid_form != NULL ? options->hybrid_form : names[0];
    char hint[HPCT_NEAREST_HINT];
    hpct_nearest best = {0};
    for (int i = 0; i <= HPCT_SPLIT_SHARD_BACK; i++) {
        if (strcmp(names[i], name) == 0) {
            *form = (hpct_split_shard_form) i;
            return HPCT_OK;
        }
        hpct_nearest_try(&best, name, names[i]);
    }
    return hpct_fail(HPCT_ERR_USAGE,
                     "--hybrid-form is '%s'%s, it must be auto, rows, columns or back", name,
                     hpct_nearest_hint(&best, hint));
}

/* Input bytes per sample in device memory. */
static size_t sample_bytes(const hpct_model *model)
{
    hpct_shape shape = hpct_model_input_shape(model);
    return hpct_graph_shape_count(&shape) * (hpct_model_precision(model) == HPCT_FP32 ? 4 : 2);
}

static hpct_status open_shard(hpct_split_shard **out, const hpct_strategy_plan *plan)
{
    hpct_split_shard_options options = {.part = hpct_context_rank(plan->context),
                                        .parts = hpct_context_size(plan->context),
                                        .samples = hpct_strategy_plan_full_count(plan),
                                        .without_front =
                                            hpct_model_on_device(plan->model) &&
                                            sample_bytes(plan->model) % DEVICE_ALIGNMENT != 0};
    hpct_status status = hpct_strategy_hybrid_form(plan->options, &options.form);
    if (status == HPCT_OK)
        status = hpct_split_shard_open(out, plan->model, &options);
    bool front = status == HPCT_OK && hpct_split_shard_front_floats(*out) > 0;
    if (status == HPCT_OK && plan->options->wire != HPCT_WIRE_FP32 && !front)
        status =
            hpct_fail(HPCT_ERR_CONFIG, "--wire is for gradients, of which it sends next to none: "
                                       "take fp32");
    if (front && options.without_front)
        status = hpct_fail(HPCT_ERR_CONFIG,
                           "a GPU cannot begin anywhere in a batch of samples of %zu bytes: take "
                           "another --resize, or --hybrid-form rows or columns",
                           sample_bytes(plan->model));
    if (status != HPCT_OK) {
        hpct_split_shard_close(*out);
        *out = NULL;
    }
    return status == HPCT_OK ? HPCT_OK : hpct_fail_within(status, "strategy hybrid");
}

static hpct_run_build_options step_options(const hpct_strategy_plan *plan, bool plain_layout)
{
    return (hpct_run_build_options){
        .batch_sizes = plan->batch_sizes,
        .num_batch_sizes = plan->num_batch_sizes,
        .fuse_update = !plan->keep_gradients,
        .dense_targets = plan->dense_targets,
        .plain_layout = plain_layout,
    };
}

/* Options for one rank: steps and evaluation in the same model. sizes: room for both. */
static hpct_run_build_options alone_options(const hpct_strategy_plan *plan, int *sizes)
{
    hpct_run_build_options options = step_options(plan, false);
    options.num_batch_sizes = hpct_strategy_plan_sizes(plan, sizes);
    options.batch_sizes = sizes;
    return options;
}

static size_t all_records(const hpct_split_shard *shard, int ranks)
{
    size_t floats = 0;
    for (int rank = 0; rank < ranks; rank++)
        floats += hpct_split_shard_record_floats(shard, rank);
    return floats;
}

/* The shard, the whole model for evaluation, and the records of a gather. */
static hpct_status hybrid_need(const hpct_strategy_plan *plan, size_t *bytes)
{
    int sizes[HPCT_STRATEGY_SIZES], ranks = hpct_context_size(plan->context);
    hpct_run_memory_plan memory;
    hpct_split_shard *shard = NULL;
    hpct_run_build_options options = alone_options(plan, sizes);
    *bytes = 0;
    hpct_status status = ranks > 1 ? open_shard(&shard, plan) : HPCT_OK;
    if (status == HPCT_ERR_CONFIG) /* open reports it; the caller may ask other strategies */
        return HPCT_OK;
    if (status == HPCT_OK && shard != NULL) {
        size_t front = hpct_split_shard_front_floats(shard) * sizeof(float);
        if (!hpct_model_on_device(plan->model)) /* otherwise the records are in host memory */
            *bytes += all_records(shard, ranks) * sizeof(float);
        *bytes += front > 0 ? hpct_grad_buckets_need(front, plan->options->wire) : 0;
        options = step_options(plan, false);
    }
    if (status == HPCT_OK)
        status = hpct_model_plan(shard != NULL ? hpct_split_shard_model(shard) : plan->model,
                                 &options, &memory);
    if (status == HPCT_OK)
        *bytes += hpct_run_memory_plan_growth(&memory);
    if (status == HPCT_OK && shard != NULL)
        status = hpct_strategy_evaluation_need(plan, bytes);
    hpct_split_shard_close(shard);
    return status;
}

/* Broadcasts rank 0's weights and states. */
static hpct_status share_weights(const hybrid *h)
{
    hpct_run_build_options options = {.batch_sizes = (int[]){1},
                                      .num_batch_sizes = 1,
                                      .inference_only = true,
                                      .plain_layout = true};
    HPCT_TRY(hpct_context_agree(h->context, hpct_model_build(h->whole, &options)));
    return hpct_strategy_replica_share_weights(h->context, h->whole);
}

typedef struct built {
    hybrid *h;
    const hpct_strategy_plan *plan;
} built;

/* hpct_strategy_alike.build */
static hpct_status build(void *argument, bool plain, uint64_t *layout)
{
    const built *b = argument;
    hpct_run_build_options options = step_options(b->plan, plain);
    HPCT_TRY(hpct_model_build(b->h->model, &options));
    *layout = hpct_split_shard_fingerprint(b->h->shard);
    return HPCT_OK;
}

/* ---- hpct_graph_step_peers of the model ---- */

static hpct_status sum_over_ranks(void *argument, float *data, size_t count)
{
    const hybrid *h = argument;
    return h->own != NULL ? hpct_comm_circulant_sum(h->own, data, count)
                          : h->comm->ops->allreduce_sum(h->comm, data, count);
}

static hpct_status gather_from_ranks(void *argument, const float *mine, float *all, size_t count)
{
    const hybrid *h = argument;
    return h->own != NULL ? hpct_comm_circulant_gather(h->own, mine, all, count)
                          : h->comm->ops->allgather(h->comm, mine, all, count * sizeof *mine);
}

static hpct_status reduce_rows(void *argument, float *data, size_t rows, size_t width,
                               size_t *first, size_t *own)
{
    const hybrid *h = argument;
    return hpct_comm_circulant_reduce(h->own, data, rows, width, first, own);
}

static hpct_status spread_rows(void *argument, float *data, size_t rows, size_t width,
                               float *piggyback)
{
    const hybrid *h = argument;
    return hpct_comm_circulant_spread(h->own, data, rows, width, piggyback,
                                      piggyback != NULL ? HPCT_GRAPH_PIGGYBACK : 0);
}

static hpct_status advance(void *argument, size_t done)
{
    const hybrid *h = argument;
    return done > h->front_begin ? hpct_grad_buckets_advance(h->buckets, done - h->front_begin)
                                 : HPCT_OK;
}

static void set_peers(hybrid *h)
{
    hpct_graph_step_peers peers = {.argument = h,
                                   .sum = sum_over_ranks,
                                   .judge = sum_over_ranks,
                                   .gather = gather_from_ranks,
                                   .piggyback = h->piggyback,
                                   .advance = h->at_once ? advance : NULL};
    if (h->own != NULL) {
        peers.reduce_rows = reduce_rows;
        peers.spread_rows = spread_rows;
        peers.halves_from = hpct_comm_circulant_halves_from(h->own);
    }
    hpct_model_set_peers(h->model, &peers);
}

/* ---- opening on several ranks ---- */

/* Opens hpct_comm_circulant connections if they are faster than MPI. */
static hpct_status open_own(hybrid *h)
{
    bool own;
    int seconds;
    size_t most = h->floats > h->summed_floats ? h->floats : h->summed_floats,
           synced = hpct_model_synced_floats(h->model);
    if (hpct_model_on_device(h->whole)) /* the data summed may be in device memory */
        return HPCT_OK;
    HPCT_TRY(hpct_comm_fabric_choose(&own, h->comm, hpct_context_config(h->context)->num_nodes));
    if (!own)
        return HPCT_OK;
    most = most > synced ? most : synced;
    HPCT_TRY(hpct_context_agree(h->context, hpct_context_join_seconds(&seconds)));
    return hpct_comm_circulant_open(&h->own, h->comm, most, seconds);
}

/* Opens the buckets of the front, the last range, and removes it from the ranges. */
static hpct_status open_front(hybrid *h, const hpct_strategy_plan *plan)
{
    if (hpct_split_shard_front_floats(h->shard) == 0)
        return HPCT_OK;
    const hpct_split_shard_range *front = &h->summed[--h->num_summed];
    hpct_grad_buckets_options options = {
        .gradients = h->gradients + front->offset,
        .count = front->count,
        .strategy = plan->options,
        .timeline = plan->timeline,
    };
    h->front_begin = front->offset;
    h->at_once = hpct_model_gradient_accumulation(h->model) == 1;
    return hpct_grad_buckets_open(&h->buckets, plan->context, &options);
}

static hpct_status prepare_sums(hybrid *h, const hpct_strategy_plan *plan)
{
    size_t ignored;
    h->gradients = hpct_model_gradients(h->model, &ignored);
    h->summed = hpct_split_shard_summed(h->shard, &h->num_summed);
    hpct_status status = open_front(h, plan);
    if (status != HPCT_OK)
        return status;
    for (int i = 0; i < h->num_summed; i++)
        h->summed_floats += h->summed[i].count;
    if (h->num_summed > 1 && !hpct_model_on_device(h->model)) {
        h->packed = malloc(h->summed_floats * sizeof *h->packed);
        status = h->packed != NULL ? HPCT_OK : hpct_fail_memory(h->summed_floats);
    }
    h->floats = hpct_split_shard_floats(h->shard, hpct_strategy_plan_full_count(plan));
    return hpct_context_agree(h->context, status);
}

static hpct_status open_parts(hybrid *h, const hpct_strategy_plan *plan)
{
    HPCT_TRY(hpct_context_agree(h->context, open_shard(&h->shard, plan)));
    HPCT_TRY(share_weights(h));
    h->model = hpct_split_shard_model(h->shard);
    HPCT_TRY(hpct_context_agree(h->context, hpct_split_shard_take(h->shard, h->whole)));
    HPCT_TRY(hpct_strategy_build_alike(
        h->context, &(hpct_strategy_alike){build, &(built){h, plan}, .classes = 1}));
    HPCT_TRY(hpct_strategy_replica_share_scaling(h->context, h->model));
    HPCT_TRY(prepare_sums(h, plan));
    HPCT_TRY(open_own(h));
    set_peers(h);
    return hpct_strategy_evaluation_build(plan);
}

static hpct_status open_alone(hybrid *h, const hpct_strategy_plan *plan)
{
    int sizes[HPCT_STRATEGY_SIZES];
    hpct_split_shard_form form;
    hpct_run_build_options options = alone_options(plan, sizes);
    hpct_status status = hpct_strategy_hybrid_form(plan->options, &form);
    h->model = h->whole;
    return status == HPCT_OK ? hpct_model_build(h->whole, &options) : status;
}

static void hybrid_close(hpct_strategy *strategy)
{
    hybrid *h = (hybrid *) strategy;
    hpct_grad_buckets_close(h->buckets);
    hpct_comm_circulant_close(h->own);
    hpct_split_shard_close(h->shard);
    free(h->packed);
    free(h->parcel);
    free(h);
}

static hpct_status hybrid_open(hpct_strategy **out, const hpct_strategy_plan *plan)
{
    HPCT_TRY(hpct_strategy_new(out, sizeof(hybrid), &hpct_strategy_hybrid, plan));
    hybrid *h = (hybrid *) *out;
    h->context = plan->context;
    h->comm = hpct_context_comm(plan->context);
    h->whole = plan->model;
    hpct_status status = h->comm->size > 1 ? open_parts(h, plan) : open_alone(h, plan);
    h->base.model = h->model;
    return hpct_strategy_opened(out, status);
}

/* ---- a step ---- */

static void hybrid_announce(hpct_strategy *strategy, const hpct_strategy_step_sums *mine)
{
    hybrid *h = (hybrid *) strategy;
    h->piggyback[PIGGYBACK_INTERRUPTED] = (float) mine->interrupted;
    h->piggyback[PIGGYBACK_TERMINATED] = (float) mine->terminated;
    h->piggyback[PIGGYBACK_FAILED] = (float) mine->failed;
}

static hpct_status hybrid_forward(hpct_strategy *strategy, int count, bool training)
{
    hybrid *h = (hybrid *) strategy;
    hpct_status status = hpct_model_forward(h->model, count, training);
    h->failed = h->piggyback[PIGGYBACK_FAILED] > 0;
    return status;
}

/* Every rank computes the loss of the whole batch. */
static hpct_status hybrid_backward(hpct_strategy *strategy, int count, int global_count,
                                   hpct_strategy_step_sums *sums)
{
    hybrid *h = (hybrid *) strategy;
    hpct_backend_batch_sums local = {0};
    if (h->failed) /* all ranks know it and skip the update */
        return HPCT_OK;
    hpct_status status = hpct_model_loss(h->model, count, 1.0f / (float) global_count, &local);
    if (status == HPCT_OK && isfinite(local.loss)) /* the same on all ranks */
        status = hpct_model_backward(h->model, count);
    hpct_strategy_sums_set(sums, &local);
    return status;
}

static hpct_status sum_gradients(hybrid *h)
{
    for (int i = 0; i < h->num_summed && h->packed == NULL; i++)
        HPCT_TRY(sum_over_ranks(h, h->gradients + h->summed[i].offset, h->summed[i].count));
    if (h->packed == NULL)
        return HPCT_OK;
    float *at = h->packed;
    for (int i = 0; i < h->num_summed; at += h->summed[i++].count)
        memcpy(at, h->gradients + h->summed[i].offset, h->summed[i].count * sizeof *at);
    HPCT_TRY(sum_over_ranks(h, h->packed, h->summed_floats));
    at = h->packed;
    for (int i = 0; i < h->num_summed; at += h->summed[i++].count)
        memcpy(h->gradients + h->summed[i].offset, at, h->summed[i].count * sizeof *at);
    return HPCT_OK;
}

static hpct_status hybrid_reduce(hpct_strategy *strategy, hpct_strategy_step_sums *sums)
{
    hybrid *h = (hybrid *) strategy;
    sums->interrupted = (int) h->piggyback[PIGGYBACK_INTERRUPTED];
    sums->terminated = (int) h->piggyback[PIGGYBACK_TERMINATED];
    sums->failed = (int) h->piggyback[PIGGYBACK_FAILED];
    if (h->failed)
        return HPCT_OK;
    hpct_status status = hpct_model_accumulate(h->model, &h->due);
    if (status != HPCT_OK || !h->due)
        return status;
    if (h->buckets != NULL)
        status = hpct_grad_buckets_finish(h->buckets);
    return status == HPCT_OK ? sum_gradients(h) : status;
}

static hpct_status hybrid_apply(hpct_strategy *strategy)
{
    hybrid *h = (hybrid *) strategy;
    hpct_status status = h->due ? hpct_model_update(h->model) : HPCT_OK;
    if (h->shard != NULL)
        hpct_split_shard_tell_steps(h->shard, h->whole);
    return status;
}

/* Averages over the ranks the moving statistics that each computed from its local batch. */
static hpct_status mean_own_states(const hybrid *h)
{
    const hpct_split_shard_range range = hpct_split_shard_own_states(h->shard);
    size_t count;
    float *states = hpct_model_states(h->model, &count) + range.offset;
    return hpct_strategy_replica_mean(h->comm, h->model, states, range.count);
}

static hpct_status hybrid_gather(hpct_strategy *strategy)
{
    hybrid *h = (hybrid *) strategy;
    if (h->shard == NULL)
        return HPCT_OK;
    HPCT_TRY(mean_own_states(h));
    int ranks = h->comm->size;
    size_t bytes = all_records(h->shard, ranks) * sizeof(float);
    float *records = malloc(bytes), *at = records;
    for (int rank = 0; records != NULL && rank < h->comm->rank; rank++)
        at += hpct_split_shard_record_floats(h->shard, rank);
    hpct_status status = hpct_context_agree(
        h->context, records == NULL ? hpct_fail_memory(bytes) : hpct_split_shard_put(h->shard, at));
    at = records;
    for (int rank = 0; status == HPCT_OK && rank < ranks; rank++) {
        size_t floats = hpct_split_shard_record_floats(h->shard, rank);
        status = h->comm->ops->broadcast(h->comm, at, floats * sizeof *at, rank);
        at += floats;
    }
    if (status == HPCT_OK)
        status =
            hpct_context_agree(h->context, hpct_split_shard_spread(h->shard, records, h->whole));
    free(records);
    return status;
}

static int64_t hybrid_bytes_per_step(const hpct_strategy *strategy)
{
    const hybrid *h = (const hybrid *) strategy;
    if (h->shard == NULL)
        return 0;
    size_t sums = h->summed_floats * sizeof(float);
    if (h->buckets != NULL)
        sums += hpct_grad_buckets_bytes(h->buckets);
    size_t floats = h->floats + hpct_model_penalty_floats(h->model);
    return (int64_t) ((floats + hpct_model_synced_floats(h->model)) * sizeof(float) +
                      sums / (size_t) hpct_model_gradient_accumulation(h->model));
}

/* ---- the state ---- */

/* A split value is equal on all ranks once its parts are joined: each saves some of its rows. */
static void hybrid_share(const hpct_strategy *strategy, const hpct_run_state_value *value,
                         hpct_strategy_state_share *out)
{
    const hybrid *h = (const hybrid *) strategy;
    bool first = h->comm->rank == 0;
    hpct_split_shard_hold hold = h->shard != NULL ? hpct_split_shard_holds(h->shard, value->param)
                                                  : (hpct_split_shard_hold){0};
    *out = hpct_strategy_state_equal(value, first);
    if (hold.split) {
        out->meets = true;
        out->rows =
            hpct_data_slice(value->shape.size[0], h->comm->rank, h->comm->size, &out->begin);
    } else if ((value->is_state && hold.local) || (value->is_accumulated && hold.summed)) {
        *out = hpct_strategy_state_own(value, 1, first);
    }
}

/* Room for the largest part of a value. Collective at first. */
static hpct_status make_room(hybrid *h)
{
    size_t most = 1;
    if (h->parcel != NULL)
        return HPCT_OK;
    for (int i = 0; i < hpct_split_shard_num_params(h->shard); i++) {
        for (int part = 0; part < h->comm->size; part++) {
            size_t count = hpct_split_shard_part_floats(h->shard, i, part);
            most = count > most ? count : most;
        }
    }
    h->parcel = malloc(most * sizeof *h->parcel);
    return hpct_context_agree(
        h->context, h->parcel != NULL ? HPCT_OK : hpct_fail_memory(most * sizeof *h->parcel));
}

/* Every rank receives all parts. */
static hpct_status join(hybrid *h, const hpct_run_state_value *value, float *floats)
{
    HPCT_TRY(make_room(h));
    for (int part = 0; part < h->comm->size; part++) {
        size_t bytes =
            hpct_split_shard_part_floats(h->shard, value->param, part) * sizeof *h->parcel;
        if (part == h->comm->rank)
            HPCT_TRY(hpct_run_state_get(h->model, value->param, value->slot, h->parcel));
        HPCT_TRY(h->comm->ops->broadcast(h->comm, h->parcel, bytes, part));
        hpct_split_shard_paste(h->shard, value->param, part, h->parcel, floats);
    }
    return HPCT_OK;
}

static hpct_status hybrid_get(hpct_strategy *strategy, const hpct_run_state_value *value, int copy,
                              float *floats)
{
    hybrid *h = (hybrid *) strategy;
    (void) copy;
    return h->shard != NULL && hpct_split_shard_holds(h->shard, value->param).split
               ? join(h, value, floats)
               : hpct_run_state_get(h->model, value->param, value->slot, floats);
}

static hpct_status hybrid_put(hpct_strategy *strategy, const hpct_run_state_value *value, int copy,
                              const float *floats)
{
    hybrid *h = (hybrid *) strategy;
    (void) copy;
    if (h->shard == NULL || !hpct_split_shard_holds(h->shard, value->param).split)
        return hpct_run_state_put(h->model, value->param, value->slot, floats);
    HPCT_TRY(make_room(h));
    hpct_split_shard_cut(h->shard, value->param, floats, h->parcel);
    return hpct_run_state_put(h->model, value->param, value->slot, h->parcel);
}

static const struct hpct_strategy_state_ops state_ops = {
    .share = hybrid_share,
    .get = hybrid_get,
    .put = hybrid_put,
};

const hpct_strategy_ops hpct_strategy_hybrid = {
    .name = "hybrid",
    .state = &state_ops,
    .whole_batch = true,
    .need = hybrid_need,
    .open = hybrid_open,
    .announce = hybrid_announce,
    .forward = hybrid_forward,
    .backward = hybrid_backward,
    .reduce = hybrid_reduce,
    .apply = hybrid_apply,
    .gather = hybrid_gather,
    .bytes_per_step = hybrid_bytes_per_step,
    .close = hybrid_close,
};
