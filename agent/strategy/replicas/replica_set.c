/* Replicas in a thread pool: building, the parts of a step, moving statistics. */
#include "agent/strategy/replicas/replica_set.h"

#include "agent/data/sampler.h"
#include "agent/strategy/replica.h"
#include "agent/strategy/replicas/mirrored_gpus.h"
#include "base/status.h"
#include "nn/backend/cpu/backend.h"
#include "nn/run/clone.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK ((size_t) 1 << 15) /* floats of a block that fit a core's cache */

struct hpct_replicas_part {
    hpct_replicas *set;
    int index;
    bool wanted; /* takes part in the current build */
    bool plain_layout;
    hpct_backend_batch_sums sums;
};

int hpct_replicas_slice(int samples, int k, int num, int *begin)
{
    int64_t first, count = hpct_data_slice(samples, k, num, &first);
    *begin = (int) first;
    return (int) count;
}

int hpct_replicas_sizes(const int *whole, int count, int k, int num, int *sizes)
{
    int found = 0;
    for (int i = 0; i < count; i++) {
        int begin, j = 0, size = hpct_replicas_slice(whole[i], k, num, &begin);
        while (j < found && sizes[j] != size)
            j++;
        if (j == found && size > 0)
            sizes[found++] = size;
    }
    return found;
}

/* Replica k's samples of the current call. */
static int part_of(const hpct_replicas *set, int k, int *begin)
{
    return hpct_replicas_slice(set->samples, k, set->num, begin);
}

/* ---- building ---- */

static hpct_run_build_options part_options(const hpct_strategy_plan *plan, int k, int *sizes)
{
    int whole[HPCT_STRATEGY_SIZES], count = hpct_strategy_plan_sizes(plan, whole), largest = 1;
    int replicas = hpct_strategy_replicas(plan->options);
    int num = hpct_replicas_sizes(whole, count, k, replicas, sizes);
    bool alone = hpct_context_size(plan->context) == 1 && replicas == 1;
    for (int i = 0; i < count; i++)
        largest = whole[i] > largest ? whole[i] : largest;
    if (num == 0) /* fewer samples than replicas */
        sizes[num++] = 1;
    return (hpct_run_build_options){
        .batch_sizes = sizes,
        .num_batch_sizes = num,
        .fuse_update = alone && !plan->keep_gradients,
        .dense_targets = plan->dense_targets,
        .input_samples = k == 0 ? largest : 0,
    };
}

static int threads_of_each(const hpct_strategy_plan *plan)
{
    int threads = hpct_cpu_threads() / hpct_strategy_replicas(plan->options);
    return threads > 0 ? threads : 1;
}

/* On devices: central-storage is multi-worker-mirrored with one_updates. */
static hpct_strategy_plan plan_gpus(const hpct_strategy_plan *plan, bool one_storage)
{
    hpct_strategy_plan own = *plan;
    own.one_updates = one_storage;
    return own;
}

/* Each replica is counted like the first, whose part is the largest. Reducing over ranks receives
 * up to the size of the gradients from other ranks. */
hpct_status hpct_replicas_need(const hpct_strategy_plan *plan, bool one_storage, size_t *bytes)
{
    hpct_strategy_plan own = plan_gpus(plan, one_storage);
    if (hpct_model_on_device(plan->model))
        return hpct_replicas_mirrored_gpus(&own)->need(&own, bytes);
    int sizes[HPCT_STRATEGY_SIZES], threads = hpct_cpu_threads();
    size_t others = (size_t) hpct_strategy_replicas(plan->options) - 1;
    hpct_run_memory_plan memory;
    hpct_run_build_options options = part_options(plan, 0, sizes);
    hpct_cpu_set_threads(threads_of_each(plan));
    hpct_status status = hpct_model_plan(plan->model, &options, &memory);
    hpct_cpu_set_threads(threads);
    size_t each = hpct_run_memory_plan_total(&memory);
    if (one_storage) {
        size_t states =
            hpct_model_count_parameters(plan->model) - hpct_model_count_trainable(plan->model);
        each += states * sizeof(float) - memory.parameters - memory.optimizer;
    }
    *bytes = hpct_run_memory_plan_growth(&memory) + others * each;
    *bytes += hpct_context_size(plan->context) > 1 ? memory.gradients : 0;
    return status;
}

static hpct_status build_one(void *argument, int k)
{
    hpct_replicas *set = argument;
    hpct_replicas_part *part = &set->parts[k];
    int sizes[HPCT_STRATEGY_SIZES];
    if (!part->wanted)
        return HPCT_OK;
    hpct_run_build_options options = part_options(set->plan, k, sizes);
    options.plain_layout = part->plain_layout;
    options.storage = k > 0 && set->one_storage ? set->models[0] : NULL;
    return hpct_model_build(set->models[k], &options);
}

/* Each replica in its own thread, for NUMA locality; those that share storage after its owner. */
static hpct_status build_from(hpct_replicas *set, int first, int end, bool plain_layout)
{
    for (int k = 0; k < set->num; k++) {
        set->parts[k].wanted = k >= first && k < end;
        set->parts[k].plain_layout = plain_layout;
    }
    return hpct_replicas_pool_run(set->pool, build_one, set);
}

/* hpct_strategy_alike.build */
static hpct_status build_all(void *argument, bool plain_layout, uint64_t *layout)
{
    hpct_replicas *set = argument;
    int first = set->one_storage ? 1 : set->num;
    HPCT_TRY(build_from(set, 0, first, plain_layout));
    if (first < set->num)
        HPCT_TRY(build_from(set, first, set->num, plain_layout));
    *layout = hpct_model_layout_fingerprint(set->models[0]);
    for (int k = 1; k < set->num; k++) {
        if (hpct_model_layout_fingerprint(set->models[k]) != *layout)
            *layout = 0;
    }
    return HPCT_OK;
}

static hpct_status copy_one(void *argument, int k)
{
    const hpct_replicas *set = argument;
    return k == 0 ? HPCT_OK : hpct_model_copy_from(set->models[k], set->models[0]);
}

/* hpct_graph_step_peers.sum of each model. */
static hpct_status sum_over_replicas(void *argument, float *data, size_t count)
{
    const hpct_replicas_part *part = argument;
    return hpct_replicas_pool_sum(part->set->pool, part->index, data, count);
}

static hpct_status sum_over_ranks(void *argument, float *data, size_t count)
{
    hpct_comm *comm = argument;
    return comm->ops->allreduce_sum(comm, data, count);
}

static hpct_status check(const hpct_strategy_plan *plan)
{
    if (plan->options->wire != HPCT_WIRE_FP32)
        return hpct_fail(HPCT_ERR_USAGE,
                         "--wire: gradients of replicas travel in fp32; other types go with "
                         "multi-worker-mirrored");
    return HPCT_OK;
}

static hpct_status prepare(hpct_replicas *set, const hpct_strategy_plan *plan)
{
    size_t num = (size_t) set->num;
    hpct_status status = check(plan);
    if (status != HPCT_OK)
        return status;
    set->models = calloc(num, sizeof *set->models);
    set->parts = calloc(num, sizeof *set->parts);
    if (set->models == NULL || set->parts == NULL)
        return hpct_fail_memory(num * sizeof *set->parts);
    set->models[0] = plan->model;
    for (int k = 0; k < set->num; k++)
        set->parts[k] = (hpct_replicas_part){.set = set, .index = k};
    for (int k = 1; k < set->num && status == HPCT_OK; k++)
        status = hpct_model_clone(&set->models[k], plan->model);
    if (status != HPCT_OK)
        return status;
    hpct_replicas_pool_options pool = {
        .members = set->num,
        .threads = threads_of_each(plan),
        .sum = set->comm->size > 1 ? sum_over_ranks : NULL,
        .argument = set->comm,
    };
    return hpct_replicas_pool_open(&set->pool, &pool);
}

/* A replica whose layout differs from the first one's cannot read its weights. */
static hpct_status check_borrowed(const hpct_replicas *set)
{
    size_t count;
    const float *storage = hpct_model_parameters(set->models[0], &count);
    for (int k = 1; k < set->num && set->one_storage; k++) {
        if (hpct_model_parameters(set->models[k], &count) != storage)
            return hpct_fail(HPCT_ERR_INTERNAL, "replica %d has weights of its own", k);
    }
    return HPCT_OK;
}

static hpct_status open_set(hpct_replicas *set)
{
    hpct_context *context = set->plan->context;
    HPCT_TRY(hpct_context_agree(context, prepare(set, set->plan)));
    HPCT_TRY(hpct_strategy_replica_build_by(set->plan,
                                            &(hpct_strategy_alike){build_all, set, .classes = 1}));
    HPCT_TRY(hpct_context_agree(context, hpct_replicas_pool_run(set->pool, copy_one, set)));
    set->gradients = hpct_model_gradients(set->models[0], &set->count);
    for (int k = 0; k < set->num && (set->num > 1 || set->comm->size > 1); k++)
        hpct_model_set_peers(set->models[k], &(hpct_graph_step_peers){.argument = &set->parts[k],
                                                                      .sum = sum_over_replicas});
    return check_borrowed(set);
}

hpct_status hpct_replicas_open(hpct_strategy **out, const hpct_strategy_ops *ops,
                               const hpct_strategy_plan *plan, bool one_storage)
{
    hpct_strategy_plan own = plan_gpus(plan, one_storage);
    if (hpct_model_on_device(plan->model))
        return hpct_replicas_mirrored_gpus(&own)->open(out, &own);
    HPCT_TRY(hpct_strategy_new(out, sizeof(hpct_replicas), ops, plan));
    hpct_replicas *set = (hpct_replicas *) *out;
    set->num = hpct_strategy_replicas(plan->options);
    set->comm = hpct_context_comm(plan->context);
    set->plan = plan;
    set->one_storage = one_storage;
    hpct_status status = open_set(set);
    set->plan = NULL; /* may not outlive open */
    return hpct_strategy_opened(out, status);
}

void hpct_replicas_close(hpct_strategy *strategy)
{
    hpct_replicas *set = (hpct_replicas *) strategy;
    hpct_replicas_pool_close(set->pool);
    for (int k = 0; k < set->num && set->models != NULL; k++) {
        if (k > 0)
            hpct_model_free(set->models[k]);
        else if (set->models[0] != NULL)
            hpct_model_set_peers(set->models[0], NULL);
    }
    free(set->models);
    free(set->parts);
    free(set);
}

/* ---- a step ---- */

static hpct_status forward_one(void *argument, int k)
{
    const hpct_replicas *set = argument;
    int begin, count = part_of(set, k, &begin);
    hpct_model *model = set->models[k];
    hpct_model_take_part(model, set->models[0], begin);
    return hpct_strategy_replica_forward(model, count, set->training);
}

hpct_status hpct_replicas_forward(hpct_strategy *strategy, int count, bool training)
{
    hpct_replicas *set = (hpct_replicas *) strategy;
    set->samples = count;
    set->training = training;
    return hpct_replicas_pool_run(set->pool, forward_one, set);
}

/* A replica without samples contributes nothing. */
static hpct_status backward_one(void *argument, int k)
{
    const hpct_replicas *set = argument;
    int begin, count = part_of(set, k, &begin);
    hpct_backend_batch_sums *sums = &set->parts[k].sums;
    *sums = (hpct_backend_batch_sums){0};
    HPCT_TRY(
        hpct_strategy_replica_backward(set->models[k], count, 1.0f / (float) set->global_samples));
    return count > 0 ? hpct_model_sums(set->models[k], sums) : HPCT_OK;
}

static hpct_backend_batch_sums sums_of_all(const hpct_replicas *set)
{
    hpct_backend_batch_sums all = {0};
    for (int k = 0; k < set->num; k++) {
        all.loss += set->parts[k].sums.loss;
        all.correct += set->parts[k].sums.correct;
        all.in_top_k += set->parts[k].sums.in_top_k;
    }
    return all;
}

hpct_status hpct_replicas_backward(hpct_strategy *strategy, int count, int global_count,
                                   hpct_strategy_step_sums *sums)
{
    hpct_replicas *set = (hpct_replicas *) strategy;
    set->samples = count;
    set->global_samples = global_count;
    hpct_status status = hpct_replicas_pool_run(set->pool, backward_one, set);
    hpct_backend_batch_sums all = sums_of_all(set);
    hpct_strategy_sums_set(sums, &all);
    return status;
}

/* Sums replica k's part of the arena, block by block. */
static hpct_status add_one(void *argument, int k)
{
    const hpct_replicas *set = argument;
    int64_t begin, blocks = (int64_t) ((set->count + BLOCK - 1) / BLOCK);
    int64_t end = hpct_data_slice(blocks, k, set->num, &begin) + begin;
    /* a block per thread of the replica */
    size_t step = BLOCK * (size_t) hpct_cpu_threads(), last = (size_t) end * BLOCK;
    last = last < set->count ? last : set->count;
    hpct_status status = HPCT_OK;
    for (size_t first = (size_t) begin * BLOCK; first < last; first += step) {
        size_t count = last - first < step ? last - first : step;
        for (int other = 1; other < set->num && status == HPCT_OK; other++)
            status = hpct_model_add_gradients(set->models[0], set->models[other], first, count);
    }
    return status;
}

hpct_status hpct_replicas_add_up(hpct_replicas *set)
{
    if (set->num > 1)
        HPCT_TRY(hpct_replicas_pool_run(set->pool, add_one, set));
    return hpct_model_accumulate(set->models[0], &set->due);
}

/* ---- outside of steps ---- */

hpct_status hpct_replicas_gather(hpct_strategy *strategy)
{
    hpct_replicas *set = (hpct_replicas *) strategy;
    size_t count;
    float *mean = hpct_model_states(set->models[0], &count);
    if (count == 0)
        return HPCT_OK;
    for (int k = 1; k < set->num; k++) {
        const float *states = hpct_model_states(set->models[k], &count);
        for (size_t i = 0; i < count; i++)
            mean[i] += states[i];
    }
    hpct_status status = hpct_model_scale_states(set->models[0], 1.0f / (float) set->num);
    if (status == HPCT_OK)
        status = hpct_strategy_replica_mean_states(set->comm, set->models[0]);
    for (int k = 1; k < set->num; k++)
        memcpy(hpct_model_states(set->models[k], &count), mean, count * sizeof *mean);
    return status;
}

static hpct_status evaluate_one(void *argument, int k)
{
    const hpct_replicas *set = argument;
    int begin, count = part_of(set, k, &begin);
    hpct_model_take_part(set->models[k], set->models[0], begin);
    return hpct_strategy_replica_evaluate(set->models[k], count, &set->parts[k].sums);
}

hpct_status hpct_replicas_evaluate(hpct_strategy *strategy, int count,
                                   hpct_backend_batch_sums *sums)
{
    hpct_replicas *set = (hpct_replicas *) strategy;
    set->samples = count;
    hpct_status status = hpct_replicas_pool_run(set->pool, evaluate_one, set);
    *sums = sums_of_all(set);
    return status;
}

hpct_status hpct_replicas_outputs(hpct_strategy *strategy, int k, const float **outputs, int *count)
{
    const hpct_replicas *set = (const hpct_replicas *) strategy;
    int begin;
    *count = k < set->num ? part_of(set, k, &begin) : -1;
    *outputs = *count > 0 ? hpct_model_output(set->models[k]) : NULL;
    return HPCT_OK;
}

/* ---- the state ---- */

static hpct_model *set_model(const hpct_strategy *strategy, int k)
{
    const hpct_replicas *set = (const hpct_replicas *) strategy;
    return k < set->num ? set->models[k] : NULL;
}

static void set_share(const hpct_strategy *strategy, const hpct_run_state_value *value,
                      hpct_strategy_state_share *out)
{
    const hpct_replicas *set = (const hpct_replicas *) strategy;
    bool first = set->comm->rank == 0, several = set->comm->size > 1;
    if (value->is_state && (several || set->num > 1))
        *out = hpct_strategy_state_own(value, set->num, first);
    else if (value->is_accumulated && several) /* in the first replica, as the sum over all */
        *out = hpct_strategy_state_own(value, 1, first);
    else
        *out = hpct_strategy_state_equal(value, first);
}

/* Sums of gradients are in the first replica; what is stored once, too. */
static hpct_status set_put(hpct_strategy *strategy, const hpct_run_state_value *value, int copy,
                           const float *floats)
{
    const hpct_replicas *set = (const hpct_replicas *) strategy;
    bool stored_once = set->one_storage && !value->is_state && !value->is_frozen,
         once = value->is_accumulated || stored_once;
    for (int k = 0; k < (once ? 1 : set->num); k++) {
        if (copy == k || copy == HPCT_STRATEGY_STATE_ALL)
            HPCT_TRY(hpct_run_state_put(set->models[k], value->param, value->slot, floats));
    }
    return HPCT_OK;
}

const struct hpct_strategy_state_ops hpct_replicas_state = {
    .share = set_share, .model = set_model, .put = set_put};
