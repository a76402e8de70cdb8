/* Every rank has the whole model and a slice of each global batch. Gradients are summed in buckets,
 * each while backward computes the next; the loss and metric sums, the stop signals and failures
 * are in the last one's tail. */
#include "agent/strategy/buckets.h"
#include "agent/strategy/strategy.h"
#include "base/status.h"
#include "nn/step.h"

#include <stdlib.h>
#include <string.h>

/* Where in the arena's tail. */
enum {
    TAIL_LOSS,
    TAIL_CORRECT,
    TAIL_IN_TOP_K,
    TAIL_INTERRUPTED,
    TAIL_TERMINATED,
    TAIL_FAILED,
    TAIL_USED
};
_Static_assert((int) TAIL_USED <= HPCT_ARENA_TAIL, "the sums fit the tail");

typedef struct mirrored {
    hpct_strategy base;
    hpct_comm *comm;
    hpct_model *model;
    float *gradients; /* [count + HPCT_ARENA_TAIL] */
    size_t count;
    bool due;     /* the step ends with an update */
    bool at_once; /* buckets go while backward computes: gradients are not accumulated after it */
    hpct_buckets *buckets; /* NULL: alone */
} mirrored;

/* ---- opening ---- */

typedef struct layout_record {
    uint64_t fingerprint, count;
    char node[64];
} layout_record;

/* *differs: the first rank whose arena is laid out otherwise than rank 0's, or 0. */
static hpct_status compare_layouts(mirrored *m, hpct_context *context, int *differs,
                                   layout_record *zero, layout_record *other)
{
    layout_record mine = {.fingerprint = hpct_model_layout_fingerprint(m->model),
                          .count = m->count};
    size_t bytes = (size_t) m->comm->size * sizeof mine;
    layout_record *all = malloc(bytes);
    *differs = 0;
    if (all == NULL)
        return hpct_fail_memory(bytes);
    strncpy(mine.node, hpct_context_node(context), sizeof mine.node - 1);
    hpct_status status = m->comm->ops->allgather(m->comm, &mine, all, sizeof mine);
    for (int rank = 1; status == HPCT_OK && *differs == 0 && rank < m->comm->size; rank++) {
        if (all[rank].fingerprint == all[0].fingerprint && all[rank].count == all[0].count)
            continue;
        *differs = rank;
        *zero = all[0];
        *other = all[rank];
    }
    free(all);
    return status;
}

/* sizes: room for those of steps and of evaluation. */
static hpct_build_options build_options(const hpct_strategy_plan *plan, bool plain_layout,
                                        int *sizes)
{
    int num = plan->num_batch_sizes + plan->num_evaluation_sizes;
    for (int i = 0; i < num; i++)
        sizes[i] = i < plan->num_batch_sizes ? plan->batch_sizes[i]
                                             : plan->evaluation_sizes[i - plan->num_batch_sizes];
    return (hpct_build_options){
        .backend = plan->backend,
        .batch_sizes = sizes,
        .num_batch_sizes = num,
        .fuse_update = hpct_context_size(plan->context) == 1 && !plan->keep_gradients,
        .dense_targets = plan->dense_targets,
        .plain_layout = plain_layout,
    };
}

static hpct_status mirrored_need(const hpct_strategy_plan *plan, size_t *bytes)
{
    hpct_memory_plan memory;
    int sizes[HPCT_STRATEGY_SIZES];
    hpct_build_options options = build_options(plan, false, sizes);
    hpct_status status = hpct_model_plan(plan->model, &options, &memory);
    *bytes = hpct_memory_plan_growth(&memory) +
             (hpct_context_size(plan->context) > 1
                  ? hpct_buckets_need(memory.gradients, plan->options->wire)
                  : 0);
    return status;
}

static hpct_status build(mirrored *m, const hpct_strategy_plan *plan, bool plain_layout)
{
    int sizes[HPCT_STRATEGY_SIZES];
    hpct_build_options options = build_options(plan, plain_layout, sizes);
    hpct_status status = hpct_context_agree(plan->context, hpct_model_build(m->model, &options));
    if (status == HPCT_OK)
        m->gradients = hpct_model_gradients(m->model, &m->count);
    return status;
}

/* Builds in the fastest layout, or, where processors differ and with them the layouts, in the one
 * that all have. */
static hpct_status build_alike(mirrored *m, const hpct_strategy_plan *plan)
{
    int differs = 0;
    layout_record zero, other;
    hpct_status status = build(m, plan, false);
    if (status == HPCT_OK)
        status = compare_layouts(m, plan->context, &differs, &zero, &other);
    if (status != HPCT_OK || differs == 0)
        return status;
    status = build(m, plan, true);
    if (status == HPCT_OK)
        status = compare_layouts(m, plan->context, &differs, &zero, &other);
    if (status == HPCT_OK && differs != 0)
        status =
            hpct_fail(HPCT_ERR_CONFIG,
                      "rank %d (%s) and rank 0 (%s) do not have the same model: they must run "
                      "the same program with the same options and the same version of hpc-train",
                      differs, other.node, zero.node);
    return status;
}

static void mirrored_close(hpct_strategy *strategy)
{
    mirrored *m = (mirrored *) strategy;
    if (m == NULL)
        return;
    hpct_model_set_replicas(m->model, NULL);
    hpct_model_set_watcher(m->model, NULL);
    hpct_buckets_close(m->buckets);
    free(m);
}

/* hpct_replicas of the model. */
static hpct_status sum_over_ranks(void *argument, float *data, size_t count)
{
    hpct_comm *comm = argument;
    return comm->ops->allreduce_sum(comm, data, count);
}

/* hpct_watcher of the model. */
static hpct_status advance(void *argument, size_t done)
{
    return hpct_buckets_advance(argument, done);
}

static hpct_status open_buckets(mirrored *m, const hpct_strategy_plan *plan)
{
    hpct_buckets_options options = {
        .gradients = m->gradients,
        .count = m->count,
        .sums = TAIL_USED,
        .strategy = plan->options,
        .timeline = plan->timeline,
    };
    hpct_status status = hpct_buckets_open(&m->buckets, plan->context, &options);
    m->at_once = hpct_model_gradient_accumulation(m->model) == 1;
    if (status == HPCT_OK && m->at_once)
        hpct_model_set_watcher(m->model, &(hpct_watcher){advance, m->buckets});
    return status;
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
    status = build_alike(m, plan);
    if (status != HPCT_OK)
        goto fail;
    size_t count;
    float *parameters = hpct_model_parameters(m->model, &count);
    status = m->comm->ops->broadcast(m->comm, parameters, count * sizeof *parameters, 0);
    float *states = hpct_model_states(m->model, &count);
    if (status == HPCT_OK && count > 0)
        status = m->comm->ops->broadcast(m->comm, states, count * sizeof *states, 0);
    if (status != HPCT_OK)
        goto fail;
    if (m->comm->size > 1) {
        hpct_model_set_replicas(m->model, &(hpct_replicas){sum_over_ranks, m->comm});
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
    hpct_batch_sums local = {0};
    hpct_status status = HPCT_OK;
    if (count == 0) { /* a short batch had none for this rank, or it failed: it adds nothing */
        memset(m->gradients, 0, m->count * sizeof *m->gradients);
        if (m->at_once)
            status = hpct_buckets_advance(m->buckets, m->count);
        if (status == HPCT_OK)
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
    memset(tail, 0, HPCT_ARENA_TAIL * sizeof *tail);
    tail[TAIL_LOSS] = (float) sums->loss;
    tail[TAIL_CORRECT] = (float) sums->correct;
    tail[TAIL_IN_TOP_K] = (float) sums->in_top_k;
    tail[TAIL_INTERRUPTED] = (float) sums->interrupted;
    tail[TAIL_TERMINATED] = (float) sums->terminated;
    tail[TAIL_FAILED] = (float) sums->failed;
    status = m->due ? hpct_buckets_finish(m->buckets) : hpct_buckets_sums(m->buckets);
    sums->loss = (double) tail[TAIL_LOSS];
    sums->correct = (double) tail[TAIL_CORRECT];
    sums->in_top_k = (double) tail[TAIL_IN_TOP_K];
    sums->interrupted = (int) tail[TAIL_INTERRUPTED];
    sums->terminated = (int) tail[TAIL_TERMINATED];
    sums->failed = (int) tail[TAIL_FAILED];
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
    size_t count;
    float *states = hpct_model_states(m->model, &count);
    if (m->comm->size == 1 || count == 0)
        return HPCT_OK;
    hpct_status status = m->comm->ops->allreduce_sum(m->comm, states, count);
    return status == HPCT_OK ? hpct_model_scale_states(m->model, 1.0f / (float) m->comm->size)
                             : status;
}

static int64_t mirrored_bytes_per_step(const hpct_strategy *strategy)
{
    const mirrored *m = (const mirrored *) strategy;
    if (m->comm->size == 1)
        return 0;
    size_t sums = hpct_buckets_sum_bytes(m->buckets), all = hpct_buckets_bytes(m->buckets);
    size_t gradients = (all - sums) / (size_t) hpct_model_gradient_accumulation(m->model);
    return (int64_t) (gradients + sums + hpct_model_synced_floats(m->model) * sizeof(float));
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
