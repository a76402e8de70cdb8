/* The state of a run under way, for status.json and --metrics-file. */
#include "agent/results/tally.h"
#include "agent/train/means.h"
#include "agent/train/observer.h"
#include "nn/run/step.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

typedef struct observed {
    hpct_results_live *live; /* NULL: not requested, or another rank's */
} observed;

hpct_results_live *hpct_train_observed_live(const hpct_train_training *t)
{
    const observed *o = hpct_train_observed(t, &hpct_train_observe_live);
    return o != NULL ? o->live : NULL;
}

static hpct_status begin(void *own, hpct_train_training *t)
{
    observed *o = own;
    const hpct_results_live_options options = {
        .log_dir = t->options.log_dir,
        .metrics_file = t->options.metrics_file,
        .job = getenv("SLURM_JOB_ID"),
        .model = hpct_model_name(t->model),
        .strategy = t->strategy_name,
        .workers = t->workers,
        .nodes = t->nodes,
        .epochs = t->options.epochs,
    };
    return t->leads && hpct_train_training_has_work(t) ? hpct_results_live_open(&o->live, &options)
                                                       : HPCT_OK;
}

/* Seconds to the end of the last epoch, if steps and evaluations take as long as so far. */
static double seconds_left(const hpct_train_training *t, double step)
{
    const hpct_train_moment *now = &t->now;
    int epochs = t->options.epochs - now->epoch;
    double steps = (double) (now->planned - now->sums.steps) +
                   (double) (epochs - 1) * (double) t->steps_per_epoch;
    return steps * step + epochs * now->times.evaluation;
}

/* step_loss NaN: after an evaluation. */
static void show(const observed *o, const hpct_train_training *t, double step_loss)
{
    const hpct_train_moment *now = &t->now;
    const hpct_fit_result *known = &now->result;
    double left = now->times.job_left;
    double step = now->times.timed > 0 ? hpct_train_training_step_seconds(t) : NAN;
    if (o->live == NULL || now->sums.samples == 0)
        return;
    hpct_results_live_state state = {
        .epoch = now->epoch + 1,
        .epochs = t->options.epochs,
        .step = now->sums.steps,
        .steps = now->planned,
        .loss = known->train.loss,
        .accuracy = known->train.accuracy,
        .step_loss = step_loss,
        .val_loss = known->validation.loss,
        .val_accuracy = known->validation.accuracy,
        .learning_rate = hpct_train_training_rate(t),
        .step_ms = 1e3 * step,
        .images_per_second = t->global_batch / step,
        .seconds_left = seconds_left(t, step),
        .job_ends = isfinite(left) ? (double) time(NULL) + left : NAN,
    };
    hpct_results_metric_choice choice = hpct_train_metrics_chosen(&t->options, t->model);
    hpct_results_live_add_metrics(&state, &choice, &known->train, &known->validation);
    hpct_results_live_update(o->live, &state);
}

static hpct_status step_ended(void *own, hpct_train_training *t)
{
    show(own, t, t->now.end.last_loss);
    return HPCT_OK;
}

static hpct_status epoch_ended(void *own, hpct_train_training *t)
{
    show(own, t, NAN);
    return HPCT_OK;
}

static void close_live(void *own, hpct_train_training *t)
{
    const observed *o = own;
    hpct_results_live_close(o->live, t->now.how);
}

const hpct_train_observer hpct_train_observe_live = {
    .size = sizeof(observed),
    .sees_cut_epochs = true,
    .on = {[HPCT_TRAIN_ON_BEGIN] = begin,
           [HPCT_TRAIN_ON_STEP_ENDED] = step_ended,
           [HPCT_TRAIN_ON_EPOCH_ENDED] = epoch_ended},
    .close = close_live,
};
