/* Pipeline parallelism: the model is cut into stages on different ranks, the batch into
 * micro-batches, which pass through them one-forward-one-backward (agent/strategy/stage_layout.h);
 * one update at the end, from the gradients of all: synchronous SGD, as exact as data parallelism.
 * Several replicas of all stages share the batch and sum the gradients of each stage. Every rank
 * reads the whole batch: the first stage needs the samples, the last one the labels, as do stages
 * that read the model's input. */
#include "agent/data/sampler.h"
#include "agent/strategy/alike.h"
#include "agent/strategy/replica.h"
#include "agent/strategy/stage_layout.h"
#include "agent/strategy/state.h"
#include "agent/strategy/strategy.h"
#include "base/status.h"
#include "nn/run/penalty.h"
#include "nn/run/record.h"
#include "nn/split/stage.h"

#include <stdlib.h>
#include <string.h>

#define BUFFERS 2 /* per stream: one is filled or read while the other is sent */
#define MOST_SIZES (2 * HPCT_STRATEGY_SIZES)

enum { VALUES, GRADIENTS }; /* numbers of the streams */

typedef struct pipeline {
    hpct_strategy base;
    hpct_context *context;
    hpct_comm *comm;
    hpct_comm *peers; /* ranks with the same stage; NULL: one replica */
    hpct_model *whole;
    hpct_strategy_stage_layout layout;
    hpct_split_cut cut;
    int number, replica; /* this rank's stage and replica */
    hpct_split_stage *stage;
    hpct_model *model; /* the stage's model */
    /* NULL without a neighbour in that direction, or if nothing is sent. */
    hpct_comm_stream *values_in, *values_out, *gradients_in, *gradients_out;
    float *arena; /* gradients, [arena_floats] */
    size_t arena_floats;
    int64_t bytes;
    bool due; /* the step ends with an update */
    /* the step: */
    int first, count; /* samples of this replica */
    int pieces, warm_up, forwards;
} pipeline;

/* ---- the stage of this rank ---- */

typedef struct parts {
    hpct_strategy_stage_layout layout;
    hpct_split_cut cut;
    int number, replica, places;
    hpct_split_stage *stage;
    int sizes[MOST_SIZES];
    hpct_run_build_options options;
} parts;

static void add_size(parts *p, int size)
{
    int i = 0;
    while (i < p->options.num_batch_sizes && p->sizes[i] != size)
        i++;
    if (i == p->options.num_batch_sizes && size > 0)
        p->sizes[p->options.num_batch_sizes++] = size;
}

/* Collects the sizes of this replica's micro-batches. A replica without samples in a short batch
 * adds none. */
static void find_sizes(parts *p, const hpct_strategy_plan *plan)
{
    for (int i = 0; i < plan->num_batch_sizes; i++) {
        int64_t begin;
        int pieces = hpct_strategy_stage_layout_pieces(&p->layout, plan->batch_sizes[i]);
        int64_t own = hpct_data_slice(plan->batch_sizes[i], p->replica, p->layout.replicas, &begin);
        add_size(p, (int) (own / pieces));
        add_size(p, (int) ((own + pieces - 1) / pieces));
    }
    add_size(p, p->options.num_batch_sizes == 0);
}

/* The common beginning of open and need. */
static hpct_status find_parts(parts *p, const hpct_strategy_plan *plan)
{
    int ranks = hpct_context_size(plan->context), full = hpct_strategy_plan_full_count(plan);
    *p = (parts){0};
    if (plan->options->wire != HPCT_WIRE_FP32)
        return hpct_fail(HPCT_ERR_CONFIG, "strategy pipeline: --wire is for gradients of data "
                                          "parallelism: take fp32");
    if (plan->dense_targets)
        return hpct_fail(HPCT_ERR_USAGE,
                         "strategy pipeline takes labels, not rows of targets, which --augment "
                         "mixup and cutmix make: take another --strategy");
    HPCT_TRY(hpct_strategy_stage_layout_find(&p->layout, plan->model, plan->options, ranks, full));
    HPCT_TRY(hpct_split_cut_find(&p->cut, plan->model, p->layout.stages));
    p->number = hpct_context_rank(plan->context) % p->layout.stages;
    p->replica = hpct_context_rank(plan->context) / p->layout.stages;
    p->places = hpct_strategy_stage_layout_in_flight(
        &p->layout, p->number, hpct_strategy_stage_layout_pieces(&p->layout, full));
    p->options = (hpct_run_build_options){.batch_sizes = p->sizes, .input_samples = full};
    find_sizes(p, plan);
    hpct_status status = hpct_split_stage_open(&p->stage, plan->model, &p->cut, p->number);
    return status == HPCT_OK ? HPCT_OK : hpct_fail_within(status, "strategy pipeline");
}

static hpct_run_record record_of(const hpct_model *whole, const hpct_split_cut *cut, int stage,
                                 bool slots)
{
    hpct_run_record record = {.slots = slots};
    hpct_split_stage_parameters(whole, cut, stage, &record.first, &record.count);
    return record;
}

static size_t largest_record(const hpct_model *whole, const hpct_split_cut *cut, bool slots)
{
    size_t most = 1;
    for (int stage = 0; stage < cut->stages; stage++) {
        hpct_run_record record = record_of(whole, cut, stage, slots);
        size_t floats = hpct_run_record_floats(whole, &record);
        most = floats > most ? floats : most;
    }
    return most;
}

/* Floats per sample that cross the boundaries of this stage, in all directions. */
static size_t border_floats(const hpct_split_cut *cut, int stage)
{
    size_t floats = cut->values[stage] + cut->gradients[stage];
    return stage + 1 < cut->stages ? floats + cut->values[stage + 1] + cut->gradients[stage + 1]
                                   : floats;
}

/* The stage, its messages, a record of a gather, and the whole model for evaluation. */
static hpct_status pipeline_need(const hpct_strategy_plan *plan, size_t *bytes)
{
    parts p;
    *bytes = 0;
    hpct_status status = find_parts(&p, plan);
    if (status == HPCT_ERR_CONFIG) /* open reports it; the caller may ask other strategies */
        return HPCT_OK;
    if (status == HPCT_OK)
        status = hpct_split_stage_need(p.stage, &p.options, p.places, bytes);
    if (status == HPCT_OK) {
        size_t most = 0;
        for (int i = 0; i < p.options.num_batch_sizes; i++)
            most = (size_t) p.sizes[i] > most ? (size_t) p.sizes[i] : most;
        *bytes += BUFFERS * most * border_floats(&p.cut, p.number) * sizeof(float);
        if (!hpct_model_on_device(plan->model)) /* otherwise the record is in host memory */
            *bytes += largest_record(plan->model, &p.cut, true) * sizeof(float);
    }
    if (status == HPCT_OK)
        status = hpct_strategy_evaluation_need(plan, bytes);
    hpct_split_stage_close(p.stage);
    return status;
}

/* ---- opening ---- */

/* Broadcasts rank 0's weights and states, one stage at a time, and copies them into the stages. */
static hpct_status share_weights(const pipeline *p)
{
    hpct_status status;
    size_t bytes = largest_record(p->whole, &p->cut, true) * sizeof(float);
    float *floats = hpct_context_allocate(p->context, bytes, &status);
    for (int stage = 0; stage < p->layout.stages && status == HPCT_OK; stage++) {
        hpct_run_record record = record_of(p->whole, &p->cut, stage, false);
        if (p->comm->rank == 0)
            status = hpct_run_record_put(p->whole, &record, floats);
        status = hpct_context_agree(p->context, status);
        if (status == HPCT_OK)
            status = p->comm->ops->broadcast(
                p->comm, floats, hpct_run_record_floats(p->whole, &record) * sizeof *floats, 0);
        if (status == HPCT_OK && p->comm->rank != 0)
            status = hpct_run_record_take(p->whole, &record, floats);
    }
    if (status == HPCT_OK) { /* and optimizer slots of an earlier fit */
        hpct_run_record record = record_of(p->whole, &p->cut, p->number, true), own = record;
        own.first = 0;
        status = hpct_run_record_put(p->whole, &record, floats);
        if (status == HPCT_OK)
            status = hpct_run_record_take(p->model, &own, floats);
        if (status == HPCT_OK)
            status = hpct_model_copy_scaling(p->whole, p->model);
    }
    free(floats);
    return hpct_context_agree(p->context, status);
}

typedef struct built {
    pipeline *p;
    parts *made;
} built;

/* hpct_strategy_alike.build; replicas of a stage are compared */
static hpct_status build(void *argument, bool plain, uint64_t *layout)
{
    const built *b = argument;
    b->made->options.plain_layout = plain;
    HPCT_TRY(hpct_split_stage_build(b->p->stage, &b->made->options, b->made->places));
    *layout = hpct_model_layout_fingerprint(b->p->model);
    return HPCT_OK;
}

/* If the communicator is for devices, messages must be in device memory. */
static hpct_status check_streams(const pipeline *p)
{
    if (hpct_model_on_device(p->model) || p->comm->ops->of_hosts)
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_CONFIG, "strategy pipeline computes on the processors, and the ranks "
                                      "were joined on their GPUs: take --device cpu");
}

static hpct_status open_stream(const pipeline *p, hpct_comm_stream **out, int neighbour,
                               bool receives, int number, size_t floats)
{
    if (floats == 0)
        return HPCT_OK;
    return p->comm->ops->open_stream(p->comm, out,
                                     &(hpct_comm_stream_options){.peer = p->comm->rank + neighbour,
                                                                 .receives = receives,
                                                                 .number = number,
                                                                 .floats = floats,
                                                                 .buffers = BUFFERS});
}

/* Receives are opened before sends: the neighbours may begin as soon as all ranks have agreed. */
static hpct_status open_streams(pipeline *p, const parts *made)
{
    int most = 0;
    for (int i = 0; i < made->options.num_batch_sizes; i++)
        most = made->sizes[i] > most ? made->sizes[i] : most;
    size_t values_in = hpct_split_stage_message(p->stage, most, true, false),
           gradients_out = hpct_split_stage_message(p->stage, most, true, true),
           values_out = hpct_split_stage_message(p->stage, most, false, false),
           gradients_in = hpct_split_stage_message(p->stage, most, false, true);
    HPCT_TRY(check_streams(p));
    HPCT_TRY(open_stream(p, &p->values_in, -1, true, VALUES, values_in));
    HPCT_TRY(open_stream(p, &p->gradients_in, 1, true, GRADIENTS, gradients_in));
    HPCT_TRY(open_stream(p, &p->values_out, 1, false, VALUES, values_out));
    return open_stream(p, &p->gradients_out, -1, false, GRADIENTS, gradients_out);
}

/* ---- hpct_graph_step_peers of the stage ---- */

/* Synchronized BatchNormalization covers the same micro-batch of all replicas. */
static hpct_status sum_over_peers(void *argument, float *data, size_t count)
{
    const pipeline *p = argument;
    return p->peers->ops->allreduce_sum(p->peers, data, count);
}

/* Either all stages update or none. */
static hpct_status sum_over_all(void *argument, float *data, size_t count)
{
    const pipeline *p = argument;
    return p->comm->ops->allreduce_sum(p->comm, data, count);
}

static hpct_status push(void *argument)
{
    const pipeline *p = argument;
    if (p->values_out != NULL)
        HPCT_TRY(p->comm->ops->push(p->values_out));
    return p->gradients_out != NULL ? p->comm->ops->push(p->gradients_out) : HPCT_OK;
}

static hpct_status set_peers(pipeline *p)
{
    hpct_graph_step_peers peers = {
        .argument = p, .judge = p->layout.stages > 1 ? sum_over_all : NULL, .pause = push};
    hpct_status status = HPCT_OK;
    if (p->layout.replicas > 1) {
        status = p->comm->ops->split(p->comm, &p->peers, p->number);
        peers.sum = sum_over_peers;
    }
    hpct_model_set_peers(p->model, &peers);
    return status;
}

/* ---- opening on all ranks ---- */

/* Mean over the ranks of the bytes passed on in a step of a full batch. */
static hpct_status count_bytes(pipeline *p, int samples)
{
    int64_t begin, own = hpct_data_slice(samples, p->replica, p->layout.replicas, &begin), sum = 0;
    size_t sent = hpct_split_stage_message(p->stage, (int) own, true, true) +
                  hpct_split_stage_message(p->stage, (int) own, false, false);
    int64_t floats = (int64_t) sent + HPCT_STRATEGY_SUMS_FLOATS;
    if (p->peers != NULL)
        floats += (int64_t) p->arena_floats / hpct_model_gradient_accumulation(p->model) +
                  (int64_t) hpct_model_synced_floats(p->model) *
                      hpct_strategy_stage_layout_pieces(&p->layout, samples);
    hpct_status status;
    int64_t *all = hpct_context_allocate(p->context, (size_t) p->comm->size * sizeof *all, &status);
    if (status == HPCT_OK)
        status = p->comm->ops->allgather(p->comm, &floats, all, sizeof floats);
    for (int rank = 0; status == HPCT_OK && rank < p->comm->size; rank++)
        sum += all[rank];
    free(all);
    p->bytes = p->comm->size > 1 ? sum * (int64_t) sizeof(float) / p->comm->size : 0;
    return status;
}

static hpct_status open_parts(pipeline *p, const hpct_strategy_plan *plan)
{
    parts made;
    hpct_status status = find_parts(&made, plan);
    p->layout = made.layout;
    p->cut = made.cut;
    p->number = made.number;
    p->replica = made.replica;
    p->stage = made.stage;
    HPCT_TRY(hpct_context_agree(p->context, status));
    p->model = hpct_split_stage_model(p->stage);
    HPCT_TRY(hpct_context_agree(p->context, set_peers(p)));
    HPCT_TRY(share_weights(p));
    HPCT_TRY(
        hpct_strategy_build_alike(p->context, &(hpct_strategy_alike){build, &(built){p, &made},
                                                                     .classes = p->layout.stages}));
    HPCT_TRY(hpct_strategy_replica_share_scaling(p->context, p->model));
    HPCT_TRY(hpct_context_agree(p->context, open_streams(p, &made)));
    p->arena = hpct_model_gradients(p->model, &p->arena_floats);
    HPCT_TRY(count_bytes(p, hpct_strategy_plan_full_count(plan)));
    return hpct_strategy_evaluation_build(plan);
}

static void pipeline_close(hpct_strategy *strategy)
{
    pipeline *p = (pipeline *) strategy;
    if (p->comm != NULL) {
        p->comm->ops->close_stream(p->values_in);
        p->comm->ops->close_stream(p->values_out);
        p->comm->ops->close_stream(p->gradients_in);
        p->comm->ops->close_stream(p->gradients_out);
    }
    if (p->peers != NULL)
        p->peers->ops->close(p->peers);
    hpct_split_stage_close(p->stage);
    free(p);
}

static hpct_status pipeline_open(hpct_strategy **out, const hpct_strategy_plan *plan)
{
    HPCT_TRY(hpct_strategy_new(out, sizeof(pipeline), &hpct_strategy_pipeline_stages, plan));
    pipeline *p = (pipeline *) *out;
    p->context = plan->context;
    p->comm = hpct_context_comm(plan->context);
    p->whole = plan->model;
    hpct_status status = open_parts(p, plan);
    p->base.model = p->model;
    return hpct_strategy_opened(out, status);
}

/* ---- a step ---- */

static hpct_split_piece piece_of(const pipeline *p, int number)
{
    int64_t begin;
    int count = (int) hpct_data_slice(p->count, number, p->pieces, &begin);
    return (hpct_split_piece){.place = number % (p->warm_up + 1),
                              .first = p->first + (int) begin,
                              .count = count,
                              .number = number,
                              .total = p->pieces};
}

static hpct_status next(const pipeline *p, hpct_comm_stream *stream, float **data)
{
    *data = NULL;
    return stream != NULL ? p->comm->ops->next(stream, data) : HPCT_OK;
}

static hpct_status pass(const pipeline *p, hpct_comm_stream *stream, size_t floats)
{
    return stream != NULL ? p->comm->ops->pass(stream, floats) : HPCT_OK;
}

static hpct_status forward_piece(const pipeline *p, int number)
{
    hpct_split_piece piece = piece_of(p, number);
    float *in, *out;
    HPCT_TRY(next(p, p->values_in, &in));
    HPCT_TRY(next(p, p->values_out, &out));
    double began = hpct_rank_timeline_now(p->base.timeline);
    HPCT_TRY(hpct_split_stage_forward(p->stage, &piece, in, out));
    hpct_rank_timeline_add(p->base.timeline, HPCT_RANK_TIMELINE_PIECE_FORWARD, number, began);
    HPCT_TRY(pass(p, p->values_in, 0));
    return pass(p, p->values_out, hpct_split_stage_message(p->stage, piece.count, false, false));
}

static hpct_status backward_piece(const pipeline *p, int number, float scale,
                                  hpct_backend_batch_sums *sums)
{
    hpct_split_piece piece = piece_of(p, number);
    float *in, *out;
    HPCT_TRY(next(p, p->gradients_in, &in));
    HPCT_TRY(next(p, p->gradients_out, &out));
    double began = hpct_rank_timeline_now(p->base.timeline);
    HPCT_TRY(hpct_split_stage_backward(p->stage, &piece, scale, in, out, sums));
    hpct_rank_timeline_add(p->base.timeline, HPCT_RANK_TIMELINE_PIECE_BACKWARD, number, began);
    HPCT_TRY(pass(p, p->gradients_in, 0));
    return pass(p, p->gradients_out, hpct_split_stage_message(p->stage, piece.count, true, true));
}

/* Warm-up: as many forwards as there are later stages. */
static hpct_status pipeline_forward(hpct_strategy *strategy, int count, bool training)
{
    pipeline *p = (pipeline *) strategy;
    int64_t begin;
    (void) training; /* evaluation uses the whole model */
    p->count = (int) hpct_data_slice(count, p->replica, p->layout.replicas, &begin);
    p->first = (int) begin;
    p->pieces = hpct_strategy_stage_layout_pieces(&p->layout, count);
    p->warm_up = hpct_strategy_stage_layout_in_flight(&p->layout, p->number, p->pieces) - 1;
    p->forwards = 0;
    hpct_split_stage_begin(p->stage);
    while (p->count > 0 && p->forwards < p->warm_up)
        HPCT_TRY(forward_piece(p, p->forwards++));
    return HPCT_OK;
}

/* Of the weights of a stage that has no loss, where it would be: in that of every sample. */
static hpct_status add_penalty(const pipeline *p, hpct_backend_batch_sums *sums)
{
    double penalty = 0;
    if (p->number + 1 < p->layout.stages)
        HPCT_TRY(hpct_model_penalty(p->model, &penalty));
    sums->loss += p->count * penalty;
    return HPCT_OK;
}

/* Alternates one forward and one backward; at the end only backwards. */
static hpct_status pipeline_backward(hpct_strategy *strategy, int count, int global_count,
                                     hpct_strategy_step_sums *sums)
{
    pipeline *p = (pipeline *) strategy;
    hpct_backend_batch_sums own = {0};
    float scale = 1.0f / (float) global_count;
    (void) count;
    hpct_status status = p->count == 0 ? hpct_split_stage_skip(p->stage) : HPCT_OK;
    for (int i = 0; p->count > 0 && i < p->pieces && status == HPCT_OK; i++) {
        if (p->forwards < p->pieces)
            status = forward_piece(p, p->forwards++);
        if (status == HPCT_OK)
            status = backward_piece(p, i, scale, &own);
    }
    if (status == HPCT_OK && p->values_out != NULL)
        status = p->comm->ops->drain(p->values_out);
    if (status == HPCT_OK && p->gradients_out != NULL)
        status = p->comm->ops->drain(p->gradients_out);
    hpct_split_stage_end(p->stage);
    if (status == HPCT_OK)
        status = add_penalty(p, &own);
    hpct_strategy_sums_set(sums, &own);
    return status;
}

static hpct_status pipeline_reduce(hpct_strategy *strategy, hpct_strategy_step_sums *sums)
{
    pipeline *p = (pipeline *) strategy;
    float all[HPCT_STRATEGY_SUMS_FLOATS];
    HPCT_TRY(hpct_model_accumulate(p->model, &p->due));
    if (p->due && p->peers != NULL)
        HPCT_TRY(p->peers->ops->allreduce_sum(p->peers, p->arena, p->arena_floats));
    hpct_strategy_sums_pack(sums, all);
    hpct_status status = p->comm->ops->allreduce_sum(p->comm, all, HPCT_STRATEGY_SUMS_FLOATS);
    hpct_strategy_sums_unpack(sums, all);
    return status;
}

static hpct_status pipeline_apply(hpct_strategy *strategy)
{
    pipeline *p = (pipeline *) strategy;
    hpct_status status = p->due ? hpct_model_update(p->model) : HPCT_OK;
    hpct_split_stage_tell_steps(p->stage, p->whole);
    return status;
}

/* From the first replica: all have the same weights, and after averaging the same states. */
static hpct_status pipeline_gather(hpct_strategy *strategy)
{
    pipeline *p = (pipeline *) strategy;
    hpct_status status;
    size_t bytes = largest_record(p->whole, &p->cut, true) * sizeof(float);
    float *floats = hpct_context_allocate(p->context, bytes, &status);
    if (status == HPCT_OK && p->peers != NULL)
        status = hpct_strategy_replica_mean_states(p->peers, p->model);
    for (int stage = 0; stage < p->layout.stages && status == HPCT_OK; stage++) {
        hpct_run_record record = record_of(p->whole, &p->cut, stage, true), own = record;
        own.first = 0;
        if (p->comm->rank == stage)
            status = hpct_run_record_put(p->model, &own, floats);
        status = hpct_context_agree(p->context, status);
        if (status == HPCT_OK)
            status = p->comm->ops->broadcast(
                p->comm, floats, hpct_run_record_floats(p->whole, &record) * sizeof *floats, stage);
        if (status == HPCT_OK)
            status = hpct_run_record_take(p->whole, &record, floats);
    }
    if (status == HPCT_OK)
        status = hpct_model_copy_scaling(p->model, p->whole);
    free(floats);
    return hpct_context_agree(p->context, status);
}

static int64_t pipeline_bytes_per_step(const hpct_strategy *strategy)
{
    return ((const pipeline *) strategy)->bytes;
}

/* ---- the state ---- */

/* The value's parameter in this rank's stage, or -1. */
static int in_stage(const pipeline *p, const hpct_run_state_value *value)
{
    int first, count;
    hpct_split_stage_parameters(p->whole, &p->cut, p->number, &first, &count);
    return value->param >= first && value->param < first + count ? value->param - first : -1;
}

/* Replicas of a stage have moving statistics of their own samples, and their gradients until an
 * update. */
static void pipeline_share(const hpct_strategy *strategy, const hpct_run_state_value *value,
                           hpct_strategy_state_share *out)
{
    const pipeline *p = (const pipeline *) strategy;
    bool holds = in_stage(p, value) >= 0, first = holds && p->replica == 0;
    bool own = p->layout.replicas > 1 && (value->is_state || value->is_accumulated);
    *out = own ? hpct_strategy_state_own(value, holds, first)
               : hpct_strategy_state_equal(value, first);
}

static hpct_status pipeline_get(hpct_strategy *strategy, const hpct_run_state_value *value,
                                int copy, float *floats)
{
    const pipeline *p = (const pipeline *) strategy;
    (void) copy;
    return hpct_run_state_get(p->model, in_stage(p, value), value->slot, floats);
}

static hpct_status pipeline_put(hpct_strategy *strategy, const hpct_run_state_value *value,
                                int copy, const float *floats)
{
    const pipeline *p = (const pipeline *) strategy;
    int param = in_stage(p, value);
    (void) copy;
    return param >= 0 ? hpct_run_state_put(p->model, param, value->slot, floats) : HPCT_OK;
}

static const struct hpct_strategy_state_ops state_ops = {
    .share = pipeline_share,
    .get = pipeline_get,
    .put = pipeline_put,
};

const hpct_strategy_ops hpct_strategy_pipeline_stages = {
    .name = "pipeline",
    .state = &state_ops,
    .whole_batch = true,
    .in_pieces = true,
    .need = pipeline_need,
    .open = pipeline_open,
    .forward = pipeline_forward,
    .backward = pipeline_backward,
    .reduce = pipeline_reduce,
    .apply = pipeline_apply,
    .gather = pipeline_gather,
    .bytes_per_step = pipeline_bytes_per_step,
    .close = pipeline_close,
};
