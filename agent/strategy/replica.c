/* Builds the same model on all ranks; the parts of a step that strategies share. */
#include "agent/strategy/replica.h"

#include "base/status.h"
#include "nn/run/finite.h"
#include "nn/run/step.h"

#include <stdlib.h>

_Static_assert(HPCT_STRATEGY_SUMS_FLOATS <= HPCT_RUN_ARENA_PIGGYBACK, "the sums fit the tail");

/* sizes: room for the sizes of steps and of evaluation. */
static hpct_run_build_options build_options(const hpct_strategy_plan *plan, bool fuse_update,
                                            bool plain_layout, int *sizes)
{
    return (hpct_run_build_options){
        .batch_sizes = sizes,
        .num_batch_sizes = hpct_strategy_plan_sizes(plan, sizes),
        .fuse_update = fuse_update,
        .dense_targets = plan->dense_targets,
        .input_samples = plan->input_samples,
        .no_slots = plan->one_updates && hpct_context_rank(plan->context) > 0,
        .plain_layout = plain_layout,
    };
}

hpct_status hpct_strategy_replica_need(const hpct_strategy_plan *plan, bool fuse_update,
                                       size_t *bytes, size_t *gradients)
{
    hpct_run_memory_plan memory;
    int sizes[HPCT_STRATEGY_SIZES];
    hpct_run_build_options options = build_options(plan, fuse_update, false, sizes);
    hpct_status status = hpct_model_plan(plan->model, &options, &memory);
    *bytes = hpct_run_memory_plan_growth(&memory);
    *gradients = memory.gradients;
    return status;
}

typedef struct whole_model {
    const hpct_strategy_plan *plan;
    bool fuse_update;
} whole_model;

static hpct_status build_whole(void *argument, bool plain_layout, uint64_t *layout)
{
    const whole_model *whole = argument;
    int sizes[HPCT_STRATEGY_SIZES];
    hpct_run_build_options options =
        build_options(whole->plan, whole->fuse_update, plain_layout, sizes);
    HPCT_TRY(hpct_model_build(whole->plan->model, &options));
    *layout = hpct_model_layout_fingerprint(whole->plan->model);
    return HPCT_OK;
}

hpct_status hpct_strategy_replica_build(const hpct_strategy_plan *plan, bool fuse_update)
{
    whole_model whole = {plan, fuse_update};
    return hpct_strategy_replica_build_by(
        plan, &(hpct_strategy_alike){build_whole, &whole, .classes = 1});
}

/* The arena for a collective outside of steps; in device memory, a copy on the host. */
static hpct_status borrow(const hpct_model *model, float *arena, size_t count, float **out)
{
    *out = arena;
    if (!hpct_model_on_device(model))
        return HPCT_OK;
    *out = malloc(count * sizeof **out);
    return *out != NULL ? hpct_model_read(model, *out, arena, count)
                        : hpct_fail_memory(count * sizeof **out);
}

/* status: of the collective; an arena is written only after success. */
static hpct_status give_back(const hpct_model *model, float *arena, size_t count, float *borrowed,
                             hpct_status status)
{
    if (borrowed == arena)
        return status;
    if (status == HPCT_OK)
        status = hpct_model_write(model, arena, borrowed, count);
    free(borrowed);
    return status;
}

/* Broadcasts rank 0's arena. */
static hpct_status share(hpct_context *context, const hpct_model *model, float *arena, size_t count)
{
    float *data = NULL;
    hpct_comm *comm = hpct_context_comm(context);
    if (comm->size == 1 || count == 0)
        return HPCT_OK;
    hpct_status status = hpct_context_agree(context, borrow(model, arena, count, &data));
    if (status == HPCT_OK)
        status = comm->ops->broadcast(comm, data, count * sizeof *data, 0);
    return give_back(model, arena, count, data, status);
}

/* Ranks sum scaled gradients, so the scale must be the same. */
hpct_status hpct_strategy_replica_share_scaling(hpct_context *context, hpct_model *model)
{
    char state[64];
    size_t bytes = hpct_model_scaling_bytes(model);
    hpct_comm *comm = hpct_context_comm(context);
    if (bytes == 0 || comm->size == 1)
        return HPCT_OK;
    hpct_status status =
        bytes <= sizeof state ? hpct_model_read_scaling(model, state) : HPCT_ERR_INTERNAL;
    status = hpct_context_agree(context, status);
    if (status == HPCT_OK)
        status = comm->ops->broadcast(comm, state, bytes, 0);
    return status == HPCT_OK ? hpct_model_write_scaling(model, state) : status;
}

hpct_status hpct_strategy_replica_share_weights(hpct_context *context, hpct_model *model)
{
    size_t count;
    float *parameters = hpct_model_parameters(model, &count);
    HPCT_TRY(share(context, model, parameters, count));
    float *states = hpct_model_states(model, &count);
    HPCT_TRY(share(context, model, states, count));
    float *frozen = hpct_model_frozen(model, &count);
    return share(context, model, frozen, count);
}

hpct_status hpct_strategy_replica_build_by(const hpct_strategy_plan *plan,
                                           const hpct_strategy_alike *how)
{
    HPCT_TRY(hpct_strategy_build_alike(plan->context, how));
    HPCT_TRY(hpct_strategy_replica_share_weights(plan->context, plan->model));
    return hpct_strategy_replica_share_scaling(plan->context, plan->model);
}

hpct_status hpct_strategy_replica_forward(hpct_model *model, int count, bool training)
{
    if (count > 0)
        return hpct_model_forward(model, count, training);
    return training ? hpct_model_forward_absent(model) : HPCT_OK;
}

hpct_status hpct_strategy_replica_backward(hpct_model *model, int count, float scale)
{
    if (count == 0) {
        HPCT_TRY(hpct_model_clear_gradients(model));
        return hpct_model_backward_absent(model);
    }
    HPCT_TRY(hpct_model_loss(model, count, scale, NULL));
    /* backward may update: alone, the weights of a loss that is not finite are kept */
    if (hpct_model_peers(model)->argument == NULL && !hpct_model_loss_is_finite(model))
        return hpct_model_clear_gradients(model);
    return hpct_model_backward(model, count);
}

hpct_status hpct_strategy_replica_evaluate(hpct_model *model, int count,
                                           hpct_backend_batch_sums *sums)
{
    *sums = (hpct_backend_batch_sums){0};
    if (count == 0)
        return HPCT_OK;
    HPCT_TRY(hpct_model_forward(model, count, false));
    return hpct_model_loss(model, count, 0, sums);
}

hpct_status hpct_strategy_replica_mean(hpct_comm *comm, const hpct_model *model, float *arena,
                                       size_t count)
{
    float *data = NULL;
    if (comm->size == 1 || count == 0)
        return HPCT_OK;
    hpct_status status = borrow(model, arena, count, &data);
    if (status == HPCT_OK)
        status = comm->ops->allreduce_sum(comm, data, count);
    for (size_t i = 0; i < count && status == HPCT_OK; i++)
        data[i] /= (float) comm->size;
    return give_back(model, arena, count, data, status);
}

hpct_status hpct_strategy_replica_mean_states(hpct_comm *comm, hpct_model *model)
{
    size_t count;
    float *states = hpct_model_states(model, &count);
    return hpct_strategy_replica_mean(comm, model, states, count);
}

void hpct_strategy_sums_set(hpct_strategy_step_sums *sums, const hpct_backend_batch_sums *own)
{
    sums->loss = own->loss;
    sums->correct = (double) own->correct;
    sums->in_top_k = (double) own->in_top_k;
}

void hpct_strategy_sums_pack(const hpct_strategy_step_sums *sums, float *piggyback)
{
    piggyback[0] = (float) sums->loss;
    piggyback[1] = (float) sums->correct;
    piggyback[2] = (float) sums->in_top_k;
    piggyback[3] = (float) sums->interrupted;
    piggyback[4] = (float) sums->terminated;
    piggyback[5] = (float) sums->failed;
}

void hpct_strategy_sums_unpack(hpct_strategy_step_sums *sums, const float *piggyback)
{
    sums->loss = (double) piggyback[0];
    sums->correct = (double) piggyback[1];
    sums->in_top_k = (double) piggyback[2];
    sums->interrupted = (int) piggyback[3];
    sums->terminated = (int) piggyback[4];
    sums->failed = (int) piggyback[5];
}
