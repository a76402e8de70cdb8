/* The state of a run under way, for status.json and --metrics-file. */
#include "agent/train/fit_run.h"

#include "agent/rank/context.h"
#include "agent/train/means.h"
#include "base/process.h"

#include <hpctrain/model.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

hpct_status hpct_fit_open_live(hpct_fit_run *run)
{
    const hpct_live_options options = {
        .log_dir = run->options.log_dir,
        .metrics_file = run->options.metrics_file,
        .job = getenv("SLURM_JOB_ID"),
        .model = hpct_model_name(run->model),
        .strategy = run->choice.ops->name,
        .workers = hpct_context_size(run->context),
        .nodes = hpct_pace_nodes(run->pace),
        .epochs = run->options.epochs,
    };
    return hpct_context_rank(run->context) == 0 ? hpct_live_open(&run->live, &options) : HPCT_OK;
}

/* Seconds to the end of the last epoch, if steps and evaluations take as long as so far. */
static double seconds_left(const hpct_fit_run *run, int epoch, const hpct_fit_sums *sums,
                           double step)
{
    double steps = (double) (sums->planned - sums->steps) +
                   (double) (run->options.epochs - epoch - 1) *
                       (double) hpct_sampler_steps_per_epoch(run->sampler);
    return steps * step + (run->options.epochs - epoch) * run->evaluation_seconds;
}

void hpct_fit_show_live(hpct_fit_run *run, int epoch, const hpct_fit_sums *sums, double step_loss,
                        double step)
{
    if (run->live == NULL || sums->samples == 0)
        return;
    double left = hpct_job_end_left(run->deadline.job_end);
    hpct_metrics mean =
        hpct_metrics_of(run->model, sums->loss, sums->correct, sums->in_top_k, sums->samples);
    hpct_live_state state = {
        .epoch = epoch + 1,
        .epochs = run->options.epochs,
        .step = sums->steps,
        .steps = sums->planned,
        .loss = mean.loss,
        .accuracy = mean.accuracy,
        .step_loss = step_loss,
        .val_loss = run->result.validation.loss,
        .val_accuracy = run->result.validation.accuracy,
        .learning_rate = hpct_model_learning_rate(run->model),
        .step_ms = 1e3 * step,
        .images_per_second = run->global_batch / step,
        .seconds_left = seconds_left(run, epoch, sums, step),
        .job_ends = isfinite(left) ? (double) time(NULL) + left : NAN,
    };
    hpct_metric_choice choice = hpct_metrics_chosen(&run->options, run->model);
    hpct_live_add_metrics(&state, &choice, &mean, &run->result.validation);
    hpct_live_update(run->live, &state);
}

void hpct_fit_show_ranks(hpct_fit_run *run)
{
    if (run->live != NULL)
        hpct_live_ranks(
            run->live, hpct_context_size(run->context), hpct_pace_known(run->pace, HPCT_PACE_STEP),
            hpct_pace_known(run->pace, HPCT_PACE_WAIT), hpct_pace_known(run->pace, HPCT_PACE_INPUT),
            hpct_pace_known(run->pace, HPCT_PACE_MEMORY), hpct_pace_busy(run->pace));
}

void hpct_fit_close_live(hpct_fit_run *run, hpct_status status, bool goes_back)
{
    bool stopped = status == HPCT_ERR_STOPPED || run->signal != 0;
    hpct_live_close(run->live, goes_back           ? HPCT_LIVE_RUNNING
                               : status == HPCT_OK ? HPCT_LIVE_FINISHED
                               : stopped           ? HPCT_LIVE_STOPPED
                                                   : HPCT_LIVE_FAILED);
    run->live = NULL;
}
