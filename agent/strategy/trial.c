#include "agent/strategy/trial.h"

#include "agent/largest.h"
#include "agent/made_up.h"
#include "agent/process.h"
#include "nn/step.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FEWEST 3
#define MOST 24

/* The mean of so many steps, on the slowest rank. */
static hpct_status time_steps(const hpct_trial *trial, hpct_context *all, hpct_strategy *strategy,
                              int steps, double *seconds)
{
    hpct_status status = HPCT_OK;
    double began = hpct_process_clock();
    for (int i = 0; i < steps && status == HPCT_OK; i++) {
        hpct_step_sums sums = {0};
        status = hpct_strategy_step(strategy, trial->count, trial->global_count, &sums);
    }
    *seconds = (hpct_process_clock() - began) / steps;
    return status == HPCT_OK ? hpct_largest(all, seconds, 1) : status;
}

static hpct_status run_block(hpct_trial *trial, hpct_context *all, hpct_strategy *strategy,
                             double duration, double hopeless)
{
    double step, *noted = &trial->seconds[trial->num_blocks];
    hpct_status status =
        time_steps(trial, all, strategy, 1, &step); /* the first one takes longer */
    if (status == HPCT_OK)
        status = time_steps(trial, all, strategy, 1, &step);
    *noted = step;
    if (status == HPCT_OK && step <= hopeless) {
        int steps = (int) fmin(fmax(duration / step, FEWEST), MOST);
        steps = (steps + trial->multiple - 1) / trial->multiple * trial->multiple;
        status = time_steps(trial, all, strategy, steps, noted);
    }
    trial->num_blocks += status == HPCT_OK;
    return status;
}

hpct_status hpct_trial_block(hpct_trial *trial, hpct_context *all, hpct_model *model,
                             double duration, double hopeless)
{
    hpct_strategy *strategy = NULL;
    hpct_strategy_plan plan = {
        .context = trial->context,
        .model = model,
        .backend = "cpu",
        .batch_sizes = &trial->count,
        .num_batch_sizes = 1,
        .options = &trial->options,
    };
    int seed = trial->ops->whole_batch ? 0 : hpct_context_rank(all);
    hpct_status status = trial->ops->open(&strategy, &plan);
    if (status == HPCT_OK)
        status = hpct_context_agree(all, hpct_made_up_batch(strategy->model, trial->count, seed));
    if (status == HPCT_OK)
        status = run_block(trial, all, strategy, duration, hopeless);
    if (strategy != NULL)
        trial->ops->close(strategy);
    return status;
}

/* ---- what was noted ---- */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;
    return (x > y) - (x < y);
}

/* The block at this share of the way from the fastest to the slowest. */
static double quantile(const hpct_trial *trial, double share)
{
    double sorted[HPCT_TRIAL_BLOCKS];
    int num = trial->num_blocks;
    if (num == 0)
        return NAN;
    memcpy(sorted, trial->seconds, sizeof sorted);
    qsort(sorted, (size_t) num, sizeof *sorted, by_size);
    return sorted[(int) (share * (num - 1))];
}

double hpct_trial_median(const hpct_trial *trial)
{
    return quantile(trial, 0.5);
}

double hpct_trial_fastest(const hpct_trial *trial)
{
    return quantile(trial, 0);
}

double hpct_trial_slowest(const hpct_trial *trial)
{
    return quantile(trial, 1);
}
