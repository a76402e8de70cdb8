/* A whole step of any strategy, and what follows from its options. */
#include "agent/strategy/strategy.h"

#include "base/process.h"
#include "base/status.h"

#include <math.h>

int hpct_strategy_plan_full_count(const hpct_strategy_plan *plan)
{
    int most = 1;
    for (int i = 0; i < plan->num_batch_sizes; i++)
        most = plan->batch_sizes[i] > most ? plan->batch_sizes[i] : most;
    return most;
}

int hpct_strategy_plan_sizes(const hpct_strategy_plan *plan, int *sizes)
{
    int num = 0;
    for (int i = 0; i < plan->num_batch_sizes; i++)
        sizes[num++] = plan->batch_sizes[i];
    for (int i = 0; i < plan->num_evaluation_sizes; i++)
        sizes[num++] = plan->evaluation_sizes[i];
    return num;
}

static hpct_run_build_options evaluation_options(const hpct_strategy_plan *plan)
{
    return (hpct_run_build_options){
        .batch_sizes = plan->evaluation_sizes,
        .num_batch_sizes = plan->num_evaluation_sizes,
        .inference_only = true,
    };
}

hpct_status hpct_strategy_evaluation_need(const hpct_strategy_plan *plan, size_t *bytes)
{
    hpct_run_memory_plan memory;
    hpct_run_build_options options = evaluation_options(plan);
    if (plan->num_evaluation_sizes == 0)
        return HPCT_OK;
    hpct_status status = hpct_model_plan(plan->model, &options, &memory);
    *bytes += hpct_run_memory_plan_growth(&memory);
    return status;
}

hpct_status hpct_strategy_evaluation_build(const hpct_strategy_plan *plan)
{
    hpct_run_build_options options = evaluation_options(plan);
    if (plan->num_evaluation_sizes == 0)
        return HPCT_OK;
    return hpct_context_agree(plan->context, hpct_model_build(plan->model, &options));
}

hpct_status hpct_strategy_new(hpct_strategy **out, size_t bytes, const hpct_strategy_ops *ops,
                              const hpct_strategy_plan *plan)
{
    hpct_status status;
    *out = hpct_context_allocate(plan->context, bytes, &status);
    if (*out != NULL)
        **out = (hpct_strategy){.ops = ops, .model = plan->model, .timeline = plan->timeline};
    return status;
}

hpct_status hpct_strategy_opened(hpct_strategy **out, hpct_status status)
{
    if (status != HPCT_OK) {
        (*out)->ops->close(*out);
        *out = NULL;
    }
    return status;
}

int hpct_strategy_period(const hpct_strategy_ops *ops, const hpct_strategy_options *options)
{
    if (ops != &hpct_strategy_local_sgd)
        return 1;
    return options->local_steps > 0 ? options->local_steps : HPCT_LOCAL_STEPS;
}

int hpct_strategy_replicas(const hpct_strategy_options *options)
{
    return options->replicas > 1 ? options->replicas : 1;
}

hpct_status hpct_strategy_check_device(const hpct_strategy_options *options,
                                       const hpct_model *model)
{
    int replicas = hpct_strategy_replicas(options);
    if (!hpct_model_on_device(model))
        return HPCT_OK;
    if (!hpct_model_has_devices(model, replicas)) /* others may see more GPUs: callers agree */
        return hpct_fail(HPCT_ERR_CONFIG,
                         "%d replicas need as many GPUs, and this task does not see so many: ask "
                         "for more (srun --gpus-per-task), or take --device cpu",
                         replicas);
    return HPCT_OK;
}

/* A part of the step has ended, and the next one begins. */
static double end_part(const hpct_strategy *strategy, hpct_rank_timeline_part part, double began,
                       double *recorded)
{
    double now = hpct_process_clock();
    hpct_rank_timeline_add(strategy->timeline, part, 0, *recorded);
    *recorded = hpct_rank_timeline_now(strategy->timeline);
    return now - began;
}

/* The parts on the device are not observable: all of the step is recorded as forward. */
static hpct_status whole_step(hpct_strategy *strategy, int count, int global_count,
                              hpct_strategy_step_sums *sums)
{
    double began = hpct_process_clock(), recorded = hpct_rank_timeline_now(strategy->timeline);
    hpct_status status = strategy->ops->step(strategy, count, global_count, sums);
    if (status == HPCT_OK && strategy->ops->finish != NULL)
        status = strategy->ops->finish(strategy, sums);
    strategy->times = (hpct_strategy_step_times){
        .forward = end_part(strategy, HPCT_RANK_TIMELINE_FORWARD, began, &recorded)};
    return status;
}

hpct_status hpct_strategy_step(hpct_strategy *strategy, int count, int global_count,
                               hpct_strategy_step_sums *sums)
{
    double began = hpct_process_clock(), recorded = hpct_rank_timeline_now(strategy->timeline);
    hpct_strategy_step_times *times = &strategy->times;
    sums->samples = global_count;
    if (strategy->whole_steps)
        return whole_step(strategy, count, global_count, sums);
    if (strategy->ops->announce != NULL)
        strategy->ops->announce(strategy, sums);
    hpct_status status = strategy->ops->forward(strategy, count, true);
    times->forward = end_part(strategy, HPCT_RANK_TIMELINE_FORWARD, began, &recorded);
    began += times->forward;
    if (status == HPCT_OK)
        status = strategy->ops->backward(strategy, count, global_count, sums);
    times->backward = end_part(strategy, HPCT_RANK_TIMELINE_BACKWARD, began, &recorded);
    began += times->backward;
    if (status == HPCT_OK)
        status = strategy->ops->reduce(strategy, sums);
    times->wait = end_part(strategy, HPCT_RANK_TIMELINE_WAIT, began, &recorded);
    began += times->wait;
    /* a loss that is not finite, where it is known already: the weights that gave it stay */
    if (status == HPCT_OK && sums->failed == 0 && (sums->samples == 0 || isfinite(sums->loss)))
        status = strategy->ops->apply(strategy);
    if (status == HPCT_OK && strategy->ops->finish != NULL)
        status = strategy->ops->finish(strategy, sums);
    times->update = end_part(strategy, HPCT_RANK_TIMELINE_UPDATE, began, &recorded);
    return status;
}
