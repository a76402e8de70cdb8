/* What a run says of itself: --summary-json, and run.json in the log folder. */
#include "agent/comm/comm.h"
#include "agent/data/dataset.h"
#include "agent/rank/context.h"
#include "agent/rank/largest.h"
#include "agent/results/run_file.h"
#include "agent/train/means.h"
#include "agent/train/observer.h"
#include "base/process.h"
#include "base/sort.h"
#include "base/status.h"
#include "nn/backend/backend.h"
#include "nn/backend/cpu/backend.h"
#include "nn/run/step.h"

#include <hpctrain/info.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct observed {
    hpct_results_run_file *file; /* NULL: no log folder, or another rank's */
    bool ended;                  /* its end is written */
} observed;

static double median_step_seconds(const hpct_train_moment *now)
{
    const hpct_train_training_times *times = &now->times;
    int64_t count = now->steps_done - 1;
    if (count > times->num_steps)
        count = times->num_steps;
    if (count < 1)
        return NAN;
    hpct_sort_numbers(times->steps, (size_t) count);
    return times->steps[count / 2];
}

static void add_rates(hpct_results_summary *summary, const hpct_train_training *t)
{
    const hpct_train_moment *now = &t->now;
    double seconds = 0, step = median_step_seconds(now);
    summary->step_ms = 1e3 * step;
    for (int i = 0; i < now->epochs_done; i++)
        seconds += now->times.epochs[i];
    summary->images_per_second = now->epochs_done > 0 && now->signal == 0
                                     ? (double) now->samples_done / seconds
                                     : (double) t->global_batch / step;
}

static hpct_results_summary describe(const hpct_train_training *t)
{
    const hpct_train_moment *now = &t->now;
    bool known = now->steps_done > 0 || t->parameter_server != NULL;
    hpct_metrics none = HPCT_RESULTS_NO_METRICS;
    hpct_results_summary summary = {
        .model = hpct_model_name(t->model),
        .strategy = t->strategy_name,
        .device = hpct_model_device(t->model),
        .precision = hpct_model_precision(t->model),
        .workers = t->workers,
        .replicas = hpct_strategy_replicas(&t->options.strategy),
        .threads = hpct_cpu_threads(),
        .global_batch = t->global_batch,
        .epochs = now->epochs_done,
        .steps = now->steps_done,
        .parameters = hpct_model_count_parameters(t->model),
        .seed = t->options.seed,
        .start_seconds = now->times.start_seconds,
        .train_seconds = now->result.seconds,
        .epoch_seconds = now->times.epochs,
        .input_wait_seconds =
            t->input_source != NULL ? hpct_train_batch_source_waited(t->input_source) : 0,
        .train = known ? now->result.train : none,
        .validation = known ? now->result.validation : none,
        .choice = hpct_train_metrics_chosen(&t->options, t->model),
        .optimizer = hpct_optimizer_name(hpct_model_optimizer(t->model)->kind),
        .learning_rate = hpct_train_training_rate(t),
        .bytes_sent_per_step =
            t->strategy != NULL ? t->strategy->ops->bytes_per_step(t->strategy) : t->bytes_per_step,
        .signal = now->signal,
        .parameter_server = t->parameter_server,
        .peak_rss_mb = hpct_process_peak_mb(),
        .tally = now->epochs_done > 0 ? t->tally : NULL,
    };
    if (t->parameter_server == NULL) {
        summary.classes = t->train->classes;
        summary.num_classes = t->train->num_classes;
    }
    return summary;
}

/* ---- run.json ---- */

static hpct_status begin(void *own, hpct_train_training *t)
{
    observed *o = own;
    const hpct_results_run_facts facts = {
        .log_dir = t->options.log_dir,
        .host = t->host,
        .job = getenv("SLURM_JOB_ID"),
        .data = t->train->source != NULL ? t->train->source : t->train->path,
        .checkpoint_dir = t->options.checkpoint_dir,
        .nodes = t->nodes,
        .one_dnn = hpct_cpu_library(),
        .mpi = hpct_comm_mpi_version(),
        .version = hpct_version(),
        .ranks = t->workers,
        .samples = (int64_t) t->train->size,
        .steps_per_epoch = t->steps_per_epoch,
        .epochs = t->options.epochs,
        .begin_epoch = (int) t->begin.epoch,
        .begin_step = t->begin.step,
        .continues = t->continues,
        .identity = t->identity,
        .again = t->again,
    };
    return t->leads && facts.log_dir != NULL ? hpct_results_run_file_open(&o->file, &facts)
                                             : HPCT_OK;
}

/* An earlier run's file stays until an epoch has ended well, as its history.csv does. */
static hpct_status settle(void *own, hpct_train_training *t)
{
    const observed *o = own;
    hpct_results_summary summary = describe(t);
    if (hpct_results_run_file_write(o->file, &summary, "running", NULL) != HPCT_OK)
        fprintf(stderr, "hpc-train: %s; it is tried again at the end\n", hpct_last_error());
    return HPCT_OK;
}

/* ---- at the end ---- */

/* Where no step was left to train the file of the run that has trained them stays. */
static bool is_of_earlier_run(const hpct_train_training *t, const char *path)
{
    return t->parameter_server == NULL && t->now.steps_done == 0 && access(path, F_OK) == 0;
}

static hpct_status end_file(observed *o, const hpct_train_training *t,
                            const hpct_results_summary *summary)
{
    if (o->file == NULL)
        return HPCT_OK;
    o->ended = true;
    return hpct_results_run_file_end(o->file, summary, &t->now.end,
                                     t->now.result.stopped_epoch > 0);
}

/* Both, whatever becomes of the first. */
static hpct_status write_files(observed *o, hpct_train_training *t, hpct_results_summary *summary)
{
    const char *path = t->options.summary_json;
    hpct_status status = HPCT_OK;
    add_rates(summary, t);
    if (path != NULL && !is_of_earlier_run(t, path))
        status = hpct_results_write_summary(summary, path, t->now.end.diverged);
    hpct_results_note(&t->now.end, status);
    hpct_status second = end_file(o, t, summary);
    hpct_results_note(&t->now.end, second);
    return status != HPCT_OK ? status : second;
}

static hpct_status end(void *own, hpct_train_training *t)
{
    const hpct_fit_options *options = &t->options;
    if (t->now.how == HPCT_RESULTS_LIVE_FAILED ||
        (options->summary_json == NULL && options->log_dir == NULL))
        return HPCT_OK;
    hpct_results_summary summary = describe(t);
    HPCT_TRY(hpct_rank_largest(t->context, &summary.peak_rss_mb, 1));
    return t->leads ? write_files(own, t, &summary) : HPCT_OK;
}

/* Of a run that an error has ended before its end was written. */
static void close_file(void *own, hpct_train_training *t)
{
    const observed *o = own;
    if (o->file != NULL && t->now.settled && !o->ended && t->now.how != HPCT_RESULTS_LIVE_RUNNING) {
        hpct_results_summary summary = describe(t);
        hpct_results_run_file_fail(o->file, &summary);
    }
    hpct_results_run_file_close(o->file);
}

const hpct_train_observer hpct_train_observe_run_file = {
    .size = sizeof(observed),
    .on = {[HPCT_TRAIN_ON_BEGIN] = begin, [HPCT_TRAIN_ON_SETTLED] = settle},
    .end = end,
    .close = close_file,
};
