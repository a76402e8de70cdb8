#include "agent/cost/trial.h"

#include "agent/cost/made_up.h"
#include "agent/rank/largest.h"
#include "base/process.h"
#include "nn/run/step.h"

#include <math.h>

#define FEWEST 3
#define MOST 24
#define UNSTEADY 2           /* warm-up steps: page faults, rising clocks, ... */
#define UNSTEADY_ON_DEVICE 4 /* ... on a device calls, rehearsal, recording and first replay */

/* Mean of some steps, on the slowest rank. */
static hpct_status time_steps(const hpct_cost_trial *trial, hpct_context *all,
                              hpct_strategy *strategy, int steps, double *seconds)
{
    hpct_status status = HPCT_OK;
    double began = hpct_process_clock();
    for (int i = 0; i < steps && status == HPCT_OK; i++) {
        hpct_strategy_step_sums sums = {0};
        status = hpct_strategy_step(strategy, trial->count, trial->global_count, &sums);
    }
    if (status == HPCT_OK)
        status = hpct_model_wait(strategy->model);
    *seconds = (hpct_process_clock() - began) / steps;
    return status == HPCT_OK ? hpct_rank_largest(all, seconds, 1) : status;
}

static hpct_status run_block(const hpct_cost_trial *trial, hpct_context *all,
                             hpct_strategy *strategy, double duration, double limit,
                             double *seconds)
{
    bool device = hpct_model_on_device(strategy->model);
    hpct_status status = HPCT_OK;
    for (int i = 0; i < (device ? UNSTEADY_ON_DEVICE : UNSTEADY) && status == HPCT_OK; i++)
        status = time_steps(trial, all, strategy, 1, seconds);
    if (status != HPCT_OK || *seconds > limit)
        return status;
    int steps = (int) fmin(fmax(duration / *seconds, FEWEST), MOST);
    steps = (steps + trial->period - 1) / trial->period * trial->period;
    return time_steps(trial, all, strategy, steps, seconds);
}

hpct_status hpct_cost_trial_block(const hpct_cost_trial *trial, hpct_context *all,
                                  hpct_model *model, double duration, double limit, double *seconds)
{
    hpct_strategy *strategy = NULL;
    hpct_strategy_plan plan = {
        .context = trial->context,
        .model = model,
        .batch_sizes = &trial->count,
        .num_batch_sizes = 1,
        .options = &trial->options,
    };
    int seed = trial->ops->whole_batch ? 0 : hpct_context_rank(all);
    hpct_status status = hpct_context_agree(all, trial->ops->open(&strategy, &plan));
    if (status == HPCT_OK)
        status =
            hpct_context_agree(all, hpct_cost_made_up_batch(strategy->model, trial->count, seed));
    if (status == HPCT_OK) /* as with a data set on the device, without sending each step's input */
        hpct_model_keep_input(strategy->model);
    if (status == HPCT_OK)
        status = run_block(trial, all, strategy, duration, limit, seconds);
    if (strategy != NULL)
        trial->ops->close(strategy);
    return status;
}
