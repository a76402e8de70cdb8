/* What a run says of itself: --summary-json, and run.json in the log folder. */
#include "agent/train/fit_run.h"

#include "agent/comm/comm.h"
#include "agent/data/dataset.h"
#include "agent/rank/largest.h"
#include "agent/rank/stop.h"
#include "agent/results/status_file.h"
#include "agent/results/summary.h"
#include "agent/train/means.h"
#include "base/process.h"
#include "base/status.h"
#include "nn/backend/backend.h"

#include <hpctrain/info.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;
    return (x > y) - (x < y);
}

static double median_step_seconds(hpct_fit_run *run)
{
    int64_t count = run->steps_done - 1;
    if (count > run->num_step_times)
        count = run->num_step_times;
    if (count < 1)
        return NAN;
    qsort(run->step_times, (size_t) count, sizeof *run->step_times, compare_doubles);
    return run->step_times[count / 2];
}

/* Where no step was left to train the file of the run that has trained them stays. */
static bool is_of_earlier_run(const hpct_fit_run *run, const char *path)
{
    return run->steps_done == 0 && access(path, F_OK) == 0;
}

static hpct_summary describe(const hpct_fit_run *run)
{
    hpct_summary summary = {
        .model = hpct_model_name(run->model),
        .strategy = run->choice.ops->name,
        .device = hpct_model_device(run->model),
        .precision = hpct_model_precision(run->model),
        .workers = hpct_context_size(run->context),
        .replicas = hpct_strategy_replicas(&run->options.strategy),
        .threads = hpct_cpu_threads(),
        .global_batch = run->global_batch,
        .epochs = run->epochs_done,
        .steps = run->steps_done,
        .parameters = hpct_model_count_parameters(run->model),
        .seed = run->options.seed,
        .start_seconds = run->start_seconds,
        .train_seconds = run->result.seconds,
        .epoch_seconds = run->epoch_seconds,
        .input_wait_seconds = run->feed != NULL ? hpct_feed_waited(run->feed) : 0,
        .train = run->result.train,
        .validation = run->result.validation,
        .choice = hpct_metrics_chosen(&run->options, run->model),
        .optimizer = hpct_optimizer_name(hpct_model_optimizer(run->model)->kind),
        .learning_rate = hpct_model_learning_rate(run->model),
        .bytes_sent_per_step = run->strategy->ops->bytes_per_step(run->strategy),
        .signal = run->signal,
        .peak_rss_mb = hpct_process_peak_mb(),
        .classes = run->train->classes,
        .num_classes = run->train->num_classes,
        .tally = run->epochs_done > 0 ? run->tally : NULL,
    };
    if (run->steps_done == 0)
        summary.train = summary.validation = (hpct_metrics) HPCT_NO_METRICS;
    return summary;
}

static void add_rates(hpct_fit_run *run, hpct_summary *summary)
{
    double seconds = 0, step = median_step_seconds(run);
    summary->step_ms = 1e3 * step;
    for (int i = 0; i < run->epochs_done; i++)
        seconds += run->epoch_seconds[i];
    summary->images_per_second = run->epochs_done > 0 && run->signal == 0
                                     ? (double) run->samples_done / seconds
                                     : (double) run->global_batch / step;
}

/* ---- run.json ---- */

void hpct_fit_add_versions(hpct_run_facts *facts)
{
    facts->one_dnn = hpct_cpu_library();
    facts->mpi = hpct_comm_mpi_version();
    facts->version = hpct_version();
}

hpct_status hpct_fit_open_run_file(hpct_fit_run *run)
{
    hpct_run_facts facts = {
        .log_dir = run->options.log_dir,
        .host = hpct_context_node(run->context),
        .job = getenv("SLURM_JOB_ID"),
        .data = run->train->source != NULL ? run->train->source : run->train->path,
        .checkpoint_dir = run->options.checkpoint_dir,
        .nodes = hpct_pace_nodes(run->pace),
        .ranks = hpct_context_size(run->context),
        .samples = (int64_t) run->train->size,
        .steps_per_epoch = hpct_sampler_steps_per_epoch(run->sampler),
        .epochs = run->options.epochs,
        .begin_epoch = (int) run->begin.epoch,
        .begin_step = run->begin.step,
        .continues = run->history != NULL && hpct_history_continues(run->history),
        .identity = run->identity,
        .again = run->again,
    };
    hpct_fit_add_versions(&facts);
    return run->options.log_dir != NULL && hpct_context_rank(run->context) == 0
               ? hpct_run_file_open(&run->file, &facts)
               : HPCT_OK;
}

/* An earlier run's files stay until an epoch has ended well, as its history.csv does. */
void hpct_fit_settle(hpct_fit_run *run)
{
    hpct_pace_settle(run->pace);
    if (run->file == NULL || run->settled)
        return;
    run->settled = true;
    hpct_summary summary = describe(run);
    if (hpct_run_file_write(run->file, &summary, "running", NULL) != HPCT_OK)
        fprintf(stderr, "hpc-train: %s; it is tried again at the end\n", hpct_last_error());
}

static hpct_status end_run_file(hpct_fit_run *run, const hpct_summary *summary)
{
    if (run->file == NULL)
        return HPCT_OK;
    run->told = true;
    return hpct_run_file_end(run->file, summary, &run->end, run->result.stopped_epoch > 0);
}

/* ---- at the end ---- */

/* Rank 0. */
static hpct_status write_files(hpct_fit_run *run, hpct_summary *summary)
{
    const char *path = run->options.summary_json;
    hpct_status status = HPCT_OK;
    add_rates(run, summary);
    if (path != NULL && !is_of_earlier_run(run, path))
        status = hpct_results_write_summary(summary, path, run->end.diverged);
    hpct_results_note(&run->end, status);
    hpct_status second = end_run_file(run, summary);
    hpct_results_note(&run->end, second);
    return status != HPCT_OK ? status : second;
}

hpct_status hpct_fit_write_summary(hpct_fit_run *run)
{
    hpct_summary summary = describe(run);
    HPCT_TRY(hpct_largest(run->context, &summary.peak_rss_mb, 1));
    return hpct_context_agree(
        run->context, hpct_context_rank(run->context) == 0 ? write_files(run, &summary) : HPCT_OK);
}

/* The first part has left both files as those of a run that goes on. */
void hpct_fit_restate_failed(const hpct_fit_run *run, bool settled)
{
    const char *log_dir = run->options.log_dir;
    if (log_dir == NULL || hpct_context_rank(run->context) != 0)
        return;
    char *kept = hpct_error_keep();
    if (hpct_status_file_end(log_dir, HPCT_LIVE_FAILED) != HPCT_OK ||
        (settled && hpct_run_file_restate(log_dir, "failed", kept) != HPCT_OK))
        fprintf(stderr, "hpc-train: %s\n", hpct_last_error());
    hpct_error_restore(kept);
}

/* Of a run that an error has ended before its end was written; local to rank 0. */
void hpct_fit_fail_run_file(hpct_fit_run *run)
{
    if (run->file == NULL || !run->settled || run->told)
        return;
    hpct_summary summary = describe(run);
    hpct_run_file_fail(run->file, &summary);
}
