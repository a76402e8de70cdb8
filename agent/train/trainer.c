/* The parts of a training step, for loops in other programs. */
#include "agent/cost/batch.h"
#include "agent/data/sampler.h"
#include "agent/rank/context.h"
#include "agent/rank/threads.h"
#include "agent/strategy/strategy.h"
#include "base/status.h"
#include "nn/run/step.h"

#include <hpctrain/trainer.h>
#include <stdlib.h>

struct hpct_trainer {
    hpct_context *context;
    hpct_model *model;
    hpct_strategy *strategy;
    uint64_t seed;
    int64_t builds, steps;
    int count;        /* samples of the last forward */
    int global_count; /* of the last backward */
    hpct_strategy_step_sums sums;
    float *gradients; /* on a device: host copy, allocated by open; else NULL */
    bool lent;        /* the caller has requested them in this step */
    float scale;      /* loss scale of the device's gradients */
};

static hpct_status check_options(const hpct_trainer_options *options, int *num)
{
    *num = 0;
    for (int i = 0; i < HPCT_TRAINER_BATCH_SIZES && options->batch_sizes[i] != 0; i++, (*num)++) {
        if (options->batch_sizes[i] < 0)
            return hpct_fail(HPCT_ERR_USAGE, "batch size %d must be at least 1",
                             options->batch_sizes[i]);
    }
    return HPCT_OK;
}

/* Allocates the host copy of a device's gradients, which the caller may read and change. */
static hpct_status make_copy(hpct_trainer *trainer, hpct_model *model)
{
    size_t count;
    hpct_model_gradients(model, &count);
    if (!hpct_model_on_device(model))
        return HPCT_OK;
    trainer->gradients = malloc(count * sizeof *trainer->gradients + 1);
    return trainer->gradients != NULL ? HPCT_OK : hpct_fail_memory(count * sizeof(float));
}

hpct_status hpct_trainer_open(hpct_trainer **out, hpct_context *context, hpct_model *model,
                              const hpct_trainer_options *options)
{
    static const int standard = HPCT_COST_DEFAULT_BATCH;
    int num = 0;
    hpct_trainer *trainer = calloc(1, sizeof *trainer);
    hpct_status status = trainer != NULL ? HPCT_OK : hpct_fail_memory(sizeof *trainer);
    if (status == HPCT_OK)
        status = check_options(options, &num);
    status = hpct_context_agree(context, status);
    if (status == HPCT_OK)
        status = hpct_rank_threads_set(context);
    if (status != HPCT_OK)
        goto fail;
    hpct_model_take_targets(model, false); /* a fit before may have had numbers as labels */
    hpct_strategy_plan plan = {
        .context = context,
        .model = model,
        .batch_sizes = num > 0 ? options->batch_sizes : &standard,
        .num_batch_sizes = num > 0 ? num : 1,
        .keep_gradients = true,
        .options = &(hpct_strategy_options){0},
        .dense_targets = options->dense_targets,
    };
    status = hpct_strategy_multi_worker_mirrored.open(&trainer->strategy, &plan);
    if (status == HPCT_OK) /* allocates the input buffer */
        status = hpct_context_agree(context, hpct_model_input(model) != NULL ? HPCT_OK
                                                                             : hpct_fail_memory(0));
    if (status != HPCT_OK)
        goto fail;
    status = hpct_context_agree(context, make_copy(trainer, model));
    if (status != HPCT_OK)
        goto fail;
    trainer->context = context;
    trainer->model = model;
    trainer->seed = options->seed;
    trainer->builds = hpct_model_builds(model);
    hpct_model_hold(model);
    *out = trainer;
    return HPCT_OK;

fail:
    if (trainer != NULL && trainer->strategy != NULL)
        trainer->strategy->ops->close(trainer->strategy);
    free(trainer);
    return status;
}

void hpct_trainer_close(hpct_trainer *trainer)
{
    if (trainer == NULL)
        return;
    trainer->strategy->ops->close(trainer->strategy);
    hpct_model_let_go(trainer->model);
    free(trainer->gradients);
    free(trainer);
}

static hpct_status check_built(const hpct_trainer *trainer)
{
    if (hpct_model_builds(trainer->model) == trainer->builds)
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_USAGE,
                     "model %s was rebuilt since its trainer was opened: close it before fit or "
                     "evaluate",
                     hpct_model_name(trainer->model));
}

float *hpct_trainer_input(hpct_trainer *trainer)
{
    return hpct_model_input(trainer->model);
}

int32_t *hpct_trainer_labels(hpct_trainer *trainer)
{
    return hpct_model_labels(trainer->model);
}

float *hpct_trainer_targets(hpct_trainer *trainer)
{
    return hpct_model_targets(trainer->model);
}

const float *hpct_trainer_output(const hpct_trainer *trainer)
{
    return hpct_model_output(trainer->model);
}

float *hpct_trainer_gradients(hpct_trainer *trainer, size_t *count)
{
    float *arena = hpct_model_gradients(trainer->model, count);
    if (trainer->gradients == NULL)
        return arena;
    trainer->lent = hpct_model_read(trainer->model, trainer->gradients, arena, *count) == HPCT_OK &&
                    hpct_model_gradient_scale(trainer->model, &trainer->scale) == HPCT_OK;
    for (size_t i = 0; trainer->lent && trainer->scale != 1 && i < *count; i++)
        trainer->gradients[i] /= trainer->scale;
    return trainer->lent ? trainer->gradients : NULL;
}

/* Copies gradients that the caller may have changed back to the device. */
static hpct_status take_back(hpct_trainer *trainer)
{
    size_t count;
    float *arena = hpct_model_gradients(trainer->model, &count);
    if (!trainer->lent)
        return HPCT_OK;
    trainer->lent = false;
    for (size_t i = 0; trainer->scale != 1 && i < count; i++)
        trainer->gradients[i] *= trainer->scale;
    return hpct_model_write(trainer->model, arena, trainer->gradients, count);
}

hpct_status hpct_trainer_forward(hpct_trainer *trainer, int count, bool training)
{
    hpct_status status = check_built(trainer);
    int64_t first = (int64_t) hpct_context_rank(trainer->context) * count;
    trainer->count = count;
    if (status != HPCT_OK)
        return status;
    hpct_model_set_position(trainer->model, trainer->seed, trainer->steps, first);
    return trainer->strategy->ops->forward(trainer->strategy, count, training);
}

static hpct_status check_count(int global_count)
{
    return global_count > 0 ? HPCT_OK
                            : hpct_fail(HPCT_ERR_USAGE, "a step of %d samples", global_count);
}

static hpct_metrics mean(const hpct_strategy_step_sums *sums, int global_count)
{
    return (hpct_metrics){.loss = sums->loss / global_count,
                          .accuracy = sums->correct / global_count,
                          .top_k_accuracy = sums->in_top_k / global_count};
}

hpct_status hpct_trainer_measure(hpct_trainer *trainer, int global_count, hpct_metrics *metrics)
{
    hpct_backend_batch_sums sums = {0};
    hpct_status status = check_built(trainer);
    if (status == HPCT_OK)
        status = check_count(global_count);
    if (status == HPCT_OK && trainer->count > 0)
        status = hpct_model_loss(trainer->model, trainer->count, 0, &sums);
    *metrics = (hpct_metrics){.loss = sums.loss / global_count,
                              .accuracy = (double) sums.correct / global_count,
                              .top_k_accuracy = (double) sums.in_top_k / global_count};
    return status;
}

hpct_status hpct_trainer_backward(hpct_trainer *trainer, int global_count)
{
    HPCT_TRY(check_built(trainer));
    HPCT_TRY(check_count(global_count));
    trainer->global_count = global_count;
    trainer->sums = (hpct_strategy_step_sums){0};
    return trainer->strategy->ops->backward(trainer->strategy, trainer->count, global_count,
                                            &trainer->sums);
}

hpct_status hpct_trainer_reduce(hpct_trainer *trainer, hpct_metrics *metrics)
{
    HPCT_TRY(check_built(trainer));
    if (trainer->global_count == 0)
        return hpct_fail(HPCT_ERR_USAGE, "reduce needs a backward before it");
    HPCT_TRY(trainer->strategy->ops->reduce(trainer->strategy, &trainer->sums));
    /* afterwards the input is no longer read */
    if (trainer->strategy->ops->finish != NULL)
        HPCT_TRY(trainer->strategy->ops->finish(trainer->strategy, &trainer->sums));
    HPCT_TRY(trainer->strategy->ops->gather(trainer->strategy));
    if (metrics != NULL)
        *metrics = mean(&trainer->sums, trainer->global_count);
    return HPCT_OK;
}

hpct_status hpct_trainer_apply(hpct_trainer *trainer)
{
    HPCT_TRY(check_built(trainer));
    if (trainer->global_count == 0)
        return hpct_fail(HPCT_ERR_USAGE, "apply needs a backward and a reduce before it");
    trainer->global_count = 0;
    trainer->steps++;
    HPCT_TRY(take_back(trainer));
    return trainer->strategy->ops->apply(trainer->strategy);
}
