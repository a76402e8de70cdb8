/* Replicas on separate GPUs, one each: every replica is a rank of multi-worker-mirrored, in its own
 * thread, with a communicator of all replicas of all ranks. A rank's samples are divided by
 * hpct_data_slice; the first replica has the plan's model and the rank's input. A data set that
 * fits is copied to every GPU. */
#include "agent/strategy/replicas/mirrored_gpus.h"

#include "agent/comm/device.h"
#include "agent/comm/nccl.h"
#include "agent/data/sampler.h"
#include "agent/rank/context.h"
#include "agent/rank/device_calls.h"
#include "agent/strategy/replica.h"
#include "agent/strategy/replicas/replica_set.h"
#include "agent/strategy/state.h"
#include "base/status.h"
#include "nn/run/clone.h"
#include "nn/run/record.h"

#include <stdlib.h>
#include <string.h>

#define PATIENCE_SECONDS 30 /* of replicas that wait for a failed one */
#define GRACE_SECONDS 10    /* the watch finds lost ranks within 6 s */
#define ABORT_MS 2000

struct mirrored_gpus;

typedef struct replica {
    const struct mirrored_gpus *set;
    int index;
    hpct_model *model;
    hpct_context *context; /* of all replicas of all ranks; NULL: not open yet */
    hpct_strategy *strategy;
    hpct_strategy_options options;
    int sizes[HPCT_STRATEGY_SIZES], evaluation_sizes[HPCT_STRATEGY_SIZES];
    hpct_strategy_plan plan;
    hpct_strategy_step_sums sums;
    hpct_backend_batch_sums evaluated;
} replica;

typedef struct mirrored_gpus {
    hpct_strategy base;
    const hpct_strategy_plan *plan; /* during open */
    hpct_context *context;          /* of the ranks */
    hpct_replicas_pool *pool;
    replica *replicas; /* [num] */
    int num;
    bool broken; /* a replica failed: waiting for the others may hang */
    const hpct_device_calls *calls;
    hpct_nccl_card *cards; /* [ranks][num], during open */
    int seconds;
    float *weights; /* and optimizer slots, from the first replica, during open */
    int count, global_count;
    hpct_strategy_step_sums sums; /* argument of the step */
} mirrored_gpus;

/* Replica k's samples of the current call. */
static int part_of(const mirrored_gpus *m, int k, int *begin)
{
    return hpct_replicas_slice(m->count, k, m->num, begin);
}

/* Runs on all replicas at once. After an error, reductions on other GPUs wait for the failed
 * replica; they are aborted, as synchronizing with these GPUs or freeing their memory would
 * hang. */
static hpct_status together(mirrored_gpus *m, hpct_replicas_pool_work work)
{
    hpct_status status = hpct_replicas_pool_run(m->pool, work, m);
    if (status != HPCT_OK && !m->broken)
        hpct_comm_nccl_abort_all(ABORT_MS);
    m->broken |= status != HPCT_OK;
    return status;
}

/* ---- opening ---- */

static void plan_one(replica *r, const hpct_strategy_plan *whole, int k, int num)
{
    r->options = *whole->options;
    r->options.name = hpct_strategy_multi_worker_mirrored.name;
    r->options.replicas = 0;
    r->plan = *whole;
    r->plan.context = r->context;
    r->plan.model = r->model;
    r->plan.options = &r->options;
    r->plan.timeline = NULL; /* written by one thread only */
    r->plan.batch_sizes = r->sizes;
    r->plan.num_batch_sizes =
        hpct_replicas_sizes(whole->batch_sizes, whole->num_batch_sizes, k, num, r->sizes);
    r->plan.evaluation_sizes = r->evaluation_sizes;
    r->plan.num_evaluation_sizes = hpct_replicas_sizes(
        whole->evaluation_sizes, whole->num_evaluation_sizes, k, num, r->evaluation_sizes);
    int all[HPCT_STRATEGY_SIZES], count = hpct_strategy_plan_sizes(whole, all);
    for (int i = 0; k == 0 && i < count; i++)
        r->plan.input_samples = all[i] > r->plan.input_samples ? all[i] : r->plan.input_samples;
    if (r->plan.num_batch_sizes == 0) /* fewer samples than replicas */
        r->sizes[r->plan.num_batch_sizes++] = 1;
}

/* Bytes on the first GPU. */
static hpct_status mirrored_need(const hpct_strategy_plan *plan, size_t *bytes)
{
    replica first = {.model = plan->model, .context = plan->context};
    plan_one(&first, plan, 0, hpct_strategy_replicas(plan->options));
    return hpct_strategy_multi_worker_mirrored.need(&first.plan, bytes);
}

/* hpct_replicas_pool_work: this thread selects its GPU and fills in its card. */
static hpct_status enter(void *argument, int k)
{
    const mirrored_gpus *m = argument;
    const hpct_comm *ranks = hpct_context_comm(m->context);
    hpct_status status = hpct_model_enter_replica(m->replicas[0].model, k);
    hpct_nccl_card_fill(&m->cards[ranks->rank * m->num + k], m->calls, ranks->rank * m->num + k);
    return status;
}

/* hpct_nccl_options.meet */
static hpct_status run_barrier(void *argument)
{
    const replica *r = argument;
    float nothing = 0;
    return hpct_replicas_pool_sum(r->set->pool, r->index, &nothing, 1);
}

/* hpct_replicas_pool_work */
static hpct_status join(void *argument, int k)
{
    const mirrored_gpus *m = argument;
    const hpct_comm *ranks = hpct_context_comm(m->context);
    hpct_comm *comm = NULL;
    hpct_nccl_options nccl = {.calls = m->calls,
                              .rank = ranks->rank * m->num + k,
                              .size = ranks->size * m->num,
                              .seconds = m->seconds,
                              .grace_seconds = GRACE_SECONDS,
                              .meet = m->num > 1 ? run_barrier : NULL,
                              .argument = &m->replicas[k]};
    memcpy(nccl.id, m->cards[0].id, sizeof nccl.id);
    HPCT_TRY(hpct_comm_nccl_open(&comm, &nccl));
    return hpct_context_open_over(&m->replicas[k].context, comm, hpct_context_node(m->context));
}

/* All replicas of all ranks exchange their GPUs' cards; fails if NCCL cannot be used. */
static hpct_status deal(mirrored_gpus *m)
{
    char why[256];
    bool take = false;
    hpct_comm *ranks = hpct_context_comm(m->context);
    const hpct_nccl_card *mine = m->cards + ranks->rank * m->num;
    hpct_status status;
    hpct_nccl_card *own = hpct_context_allocate(m->context, (size_t) m->num * sizeof *own, &status);
    if (status == HPCT_OK) {
        memcpy(own, mine, (size_t) m->num * sizeof *own);
        status = ranks->ops->allgather(ranks, own, m->cards, (size_t) m->num * sizeof *own);
    }
    free(own);
    if (status == HPCT_OK)
        status = hpct_nccl_cards_judge(&take, why, sizeof why, m->cards, ranks->size * m->num);
    if (status == HPCT_ERR_CONFIG)
        status = hpct_fail(status,
                           "two replicas have the same GPU: give each task its own "
                           "(srun --gpus-per-task=%d)",
                           m->num);
    if (status == HPCT_OK && !take)
        status = hpct_fail(HPCT_ERR_CONFIG, "replicas on several GPUs need NCCL: replica %s",
                           why + strcspn(why, "0123456789"));
    return status;
}

/* hpct_replicas_pool_work: copies the weights, and optimizer slots of an earlier fit; then builds
 * this replica for its part. */
static hpct_status open_one(void *argument, int k)
{
    const mirrored_gpus *m = argument;
    replica *r = &m->replicas[k];
    hpct_run_record record = hpct_run_record_all(r->model, true);
    plan_one(r, m->plan, k, m->num);
    if (k > 0)
        HPCT_TRY(hpct_run_record_take(r->model, &record, m->weights));
    return hpct_strategy_multi_worker_mirrored.open(&r->strategy, &r->plan);
}

static hpct_status prepare(mirrored_gpus *m)
{
    const hpct_strategy_plan *plan = m->plan;
    size_t num = (size_t) m->num, ranks = (size_t) hpct_context_size(m->context);
    hpct_run_record record = hpct_run_record_all(plan->model, true);
    size_t floats = hpct_run_record_floats(plan->model, &record);
    m->replicas = calloc(num, sizeof *m->replicas);
    m->cards = calloc(ranks * num, sizeof *m->cards);
    m->weights = malloc((floats + 1) * sizeof *m->weights);
    if (m->replicas == NULL || m->cards == NULL || m->weights == NULL)
        return hpct_fail_memory((floats + 1) * sizeof *m->weights);
    m->replicas[0].model = plan->model;
    for (int k = 0; k < m->num; k++) {
        m->replicas[k].set = m;
        m->replicas[k].index = k;
    }
    HPCT_TRY(hpct_run_record_put(plan->model, &record, m->weights));
    for (int k = 1; k < m->num; k++)
        HPCT_TRY(hpct_model_clone(&m->replicas[k].model, plan->model));
    HPCT_TRY(hpct_context_join_seconds(&m->seconds));
    HPCT_TRY(hpct_rank_comm_device_calls(&m->calls, "cuda"));
    hpct_replicas_pool_options pool = {
        .members = m->num, .threads = 1, .patience_seconds = PATIENCE_SECONDS};
    return hpct_replicas_pool_open(&m->pool, &pool);
}

typedef struct visit {
    const mirrored_gpus *set;
    hpct_graph_replica_work work;
    void *argument;
} visit;

/* hpct_replicas_pool_work */
static hpct_status visit_one(void *argument, int k)
{
    const visit *v = argument;
    return v->work(v->argument, k, v->set->replicas[k].model);
}

/* hpct_graph_step_peers.each */
static hpct_status visit_each(void *owner, hpct_graph_replica_work work, void *argument)
{
    mirrored_gpus *m = owner;
    return hpct_replicas_pool_run(m->pool, visit_one, &(visit){m, work, argument});
}

/* Adds the replicas to the peers set by the first replica's strategy, which clears them when it
 * closes. */
static void divide_input(mirrored_gpus *m)
{
    hpct_graph_step_peers peers = *hpct_model_peers(m->base.model);
    peers.each = visit_each;
    peers.owner = m;
    peers.replicas = m->num;
    hpct_model_set_peers(m->base.model, &peers);
}

static hpct_status mirrored_open(hpct_strategy **out, const hpct_strategy_plan *plan)
{
    HPCT_TRY(
        hpct_strategy_new(out, sizeof(mirrored_gpus), hpct_replicas_mirrored_gpus(plan), plan));
    mirrored_gpus *m = (mirrored_gpus *) *out;
    m->base.whole_steps = true;
    m->plan = plan;
    m->context = plan->context;
    m->num = hpct_strategy_replicas(plan->options);
    hpct_status status = hpct_context_agree(m->context, prepare(m));
    if (status == HPCT_OK)
        status = hpct_context_agree(m->context, hpct_replicas_pool_run(m->pool, enter, m));
    if (status == HPCT_OK)
        status = deal(m);
    if (status == HPCT_OK)
        status = hpct_replicas_pool_run(m->pool, join, m);
    if (status == HPCT_OK)
        status = hpct_replicas_pool_run(m->pool, open_one, m);
    m->broken = status != HPCT_OK;
    free(m->cards);
    free(m->weights);
    m->cards = NULL;
    m->weights = NULL;
    m->plan = NULL;
    if (status == HPCT_OK)
        divide_input(m);
    return hpct_strategy_opened(out, status);
}

/* hpct_replicas_pool_work */
static hpct_status close_one(void *argument, int k)
{
    const mirrored_gpus *m = argument;
    replica *r = &m->replicas[k];
    if (r->strategy != NULL)
        r->strategy->ops->close(r->strategy);
    if (k > 0)
        hpct_model_free(r->model);
    if (m->broken)
        hpct_context_abort(r->context, HPCT_ERR_PEER);
    else
        hpct_context_close(r->context);
    return HPCT_OK;
}

static void mirrored_close(hpct_strategy *strategy)
{
    mirrored_gpus *m = (mirrored_gpus *) strategy;
    if (m->pool != NULL)
        hpct_replicas_pool_run(m->pool, close_one, m);
    hpct_replicas_pool_close(m->pool);
    for (int k = 1; m->pool == NULL && m->replicas != NULL && k < m->num; k++)
        hpct_model_free(m->replicas[k].model);
    free(m->replicas);
    free(m->cards);
    free(m->weights);
    free(m);
}

/* ---- a step ---- */

/* Called while no replica computes: sets the replicas' positions and step counts from the first
 * one's. */
static void deal_out(mirrored_gpus *m, int count)
{
    m->count = count;
    for (int k = 1; k < m->num; k++) {
        int begin;
        part_of(m, k, &begin);
        hpct_model_take_part(m->replicas[k].model, m->replicas[0].model, begin);
    }
}

/* hpct_replicas_pool_work. The first replica sends this rank's signals and failure. */
static hpct_status step_one(void *argument, int k)
{
    const mirrored_gpus *m = argument;
    replica *r = &m->replicas[k];
    int begin, count = part_of(m, k, &begin);
    r->sums = (hpct_strategy_step_sums){.last = m->sums.last};
    if (k == 0)
        r->sums = m->sums;
    HPCT_TRY(hpct_strategy_step(r->strategy, count, m->global_count, &r->sums));
    return hpct_model_await_input(r->model); /* the rank's buffer will be reused */
}

static hpct_status mirrored_step(hpct_strategy *strategy, int count, int global_count,
                                 hpct_strategy_step_sums *sums)
{
    mirrored_gpus *m = (mirrored_gpus *) strategy;
    deal_out(m, count);
    m->global_count = global_count;
    m->sums = *sums;
    hpct_status status = together(m, step_one);
    *sums = m->replicas[0].sums;
    return status;
}

/* ---- outside of steps ---- */

/* hpct_replicas_pool_work */
static hpct_status gather_one(void *argument, int k)
{
    const mirrored_gpus *m = argument;
    hpct_strategy *strategy = m->replicas[k].strategy;
    return strategy->ops->gather(strategy);
}

static hpct_status mirrored_gather(hpct_strategy *strategy)
{
    return together((mirrored_gpus *) strategy, gather_one);
}

/* hpct_replicas_pool_work */
static hpct_status evaluate_one(void *argument, int k)
{
    const mirrored_gpus *m = argument;
    replica *r = &m->replicas[k];
    int begin;
    return hpct_strategy_replica_evaluate(r->model, part_of(m, k, &begin), &r->evaluated);
}

static hpct_status mirrored_evaluate(hpct_strategy *strategy, int count,
                                     hpct_backend_batch_sums *sums)
{
    mirrored_gpus *m = (mirrored_gpus *) strategy;
    deal_out(m, count);
    hpct_status status = together(m, evaluate_one);
    *sums = (hpct_backend_batch_sums){0};
    for (int k = 0; k < m->num; k++) {
        sums->loss += m->replicas[k].evaluated.loss;
        sums->correct += m->replicas[k].evaluated.correct;
        sums->in_top_k += m->replicas[k].evaluated.in_top_k;
    }
    return status;
}

static hpct_status mirrored_outputs(hpct_strategy *strategy, int k, const float **outputs,
                                    int *count)
{
    const mirrored_gpus *m = (const mirrored_gpus *) strategy;
    int begin;
    *outputs = NULL;
    *count = k < m->num ? part_of(m, k, &begin) : -1;
    if (*count <= 0)
        return HPCT_OK;
    HPCT_TRY(hpct_model_enter_replica(m->replicas[k].model, k));
    *outputs = hpct_model_output(m->replicas[k].model);
    hpct_status status = *outputs != NULL ? HPCT_OK : HPCT_ERR_INTERNAL;
    hpct_status back = hpct_model_enter_replica(m->replicas[0].model, 0);
    return status != HPCT_OK ? status : back;
}

static int64_t mirrored_bytes_per_step(const hpct_strategy *strategy)
{
    const mirrored_gpus *m = (const mirrored_gpus *) strategy;
    const hpct_strategy *first = m->replicas[0].strategy;
    return (int64_t) m->num * first->ops->bytes_per_step(first);
}

/* ---- the state ---- */

static hpct_model *gpus_model(const hpct_strategy *strategy, int k)
{
    const mirrored_gpus *m = (const mirrored_gpus *) strategy;
    return k < m->num ? m->replicas[k].model : NULL;
}

static hpct_status gpus_enter(const hpct_strategy *strategy, int k)
{
    return hpct_model_enter_replica(gpus_model(strategy, k), k);
}

/* What a rank of multi-worker-mirrored has of its own, each replica has. */
static void gpus_share(const hpct_strategy *strategy, const hpct_run_state_value *value,
                       hpct_strategy_state_share *out)
{
    const mirrored_gpus *m = (const mirrored_gpus *) strategy;
    const hpct_strategy *first = m->replicas[0].strategy;
    first->ops->state->share(first, value, out);
    out->copies *= m->num;
}

static const struct hpct_strategy_state_ops gpus_state = {
    .share = gpus_share, .model = gpus_model, .enter = gpus_enter};

#define TABLE(title)                                                                               \
    {                                                                                              \
        .name = (title), .state = &gpus_state, .need = mirrored_need, .open = mirrored_open,       \
        .step = mirrored_step, .gather = mirrored_gather, .evaluate = mirrored_evaluate,           \
        .outputs = mirrored_outputs, .bytes_per_step = mirrored_bytes_per_step,                    \
        .close = mirrored_close,                                                                   \
    }
static const hpct_strategy_ops mirrored = TABLE("mirrored"), central = TABLE("central-storage");

const hpct_strategy_ops *hpct_replicas_mirrored_gpus(const hpct_strategy_plan *plan)
{
    if (hpct_strategy_replicas(plan->options) == 1)
        return &hpct_strategy_multi_worker_mirrored;
    return plan->one_updates ? &central : &mirrored;
}
