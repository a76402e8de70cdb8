/* bench: times steps of a model on synthetic images. */
#include "agent/cost/batch.h"
#include "agent/cost/choose.h"
#include "agent/cost/emulate.h"
#include "agent/cost/made_up.h"
#include "agent/cost/profile.h"
#include "agent/data/sampler.h"
#include "agent/rank/context.h"
#include "agent/rank/largest.h"
#include "agent/rank/threads.h"
#include "agent/rank/timeline.h"
#include "agent/results/results.h"
#include "agent/results/summary.h"
#include "agent/strategies/strategies.h"
#include "agent/train/identity.h"
#include "base/process.h"
#include "base/progress.h"
#include "base/sort.h"
#include "base/status.h"
#include "nn/backend/cpu/backend.h"
#include "nn/run/profile.h"
#include "nn/run/slow_ways.h"
#include "nn/run/step.h"

#include <hpctrain/bench.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_STEPS 100
#define WARM_UP 5

typedef struct bench_run {
    hpct_context *context;
    hpct_model *model;
    hpct_bench_options options;
    int count, global_count; /* samples of this rank and of all in a step */
    hpct_cost_strategy_choice strategy_choice;
    hpct_strategy *strategy;
    hpct_rank_timeline *timeline; /* NULL: not requested */
    hpct_run_profile *profile;
    int period;      /* hpct_strategy_period */
    double *seconds; /* [steps] */
    double *periods; /* [steps / period], per step */
    int *order;      /* [steps], sorted by time */
    double start_seconds, total_seconds, peak_mb;
    size_t need;                  /* planned bytes, on a device of its memory */
    size_t left_before, left_now; /* free bytes of the device */
    hpct_metrics last;
} bench_run;

static hpct_status check_options(bench_run *run)
{
    hpct_bench_options *o = &run->options;
    int size = hpct_context_size(run->context);
    if (o->batch_size < 0 || o->global_batch_size < 0 || o->steps < 0)
        return hpct_fail(HPCT_ERR_USAGE, "steps and batch sizes cannot be negative");
    if (o->batch_size > 0 && o->global_batch_size > 0)
        return hpct_fail(HPCT_ERR_USAGE,
                         "batch size (per rank) and global batch size are both given: give one");
    if (o->emulate != NULL && hpct_model_on_device(run->model))
        return hpct_fail(HPCT_ERR_CONFIG, "--emulate works on CPUs only: use --device cpu");
    if (o->emulate != NULL && o->profile)
        return hpct_fail(HPCT_ERR_USAGE, "--profile cannot be used with --emulate");
    if (o->emulate != NULL && hpct_strategy_replicas(&o->strategy) > 1)
        return hpct_fail(HPCT_ERR_USAGE,
                         "--emulate supports one replica per rank: leave out --replicas");
    if (!(o->dilation >= 0) || (o->dilation > 0 && o->emulate == NULL))
        return hpct_fail(
            HPCT_ERR_USAGE,
            "--dilation must be above 0 and is for emulated computation: give --emulate");
    if (o->dilation == 0)
        o->dilation = 1;
    if (o->emulate != NULL && size > 1 &&
        (o->strategy.name == NULL || strcmp(o->strategy.name, "auto") == 0))
        return hpct_fail(HPCT_ERR_USAGE, "--emulate needs a --strategy by name: auto would choose "
                                         "by real steps");
    int64_t global = o->global_batch_size;
    if (global == 0)
        global = (int64_t) (o->batch_size > 0 ? o->batch_size : HPCT_COST_DEFAULT_BATCH) * size;
    if (global > INT_MAX / 2 || global < size)
        return hpct_fail(HPCT_ERR_USAGE,
                         "a global batch of %" PRId64 " samples is not possible with %d ranks",
                         global, size);
    if (o->steps == 0)
        o->steps = DEFAULT_STEPS;
    if (o->strategy.compression.warmup_steps == 0)
        o->strategy.compression.warmup_steps = -1; /* as local_warmup_steps below */
    run->global_count = (int) global;
    const hpct_strategy_ops *ops;
    HPCT_TRY(hpct_strategy_find(&ops, &o->strategy));
    if (ops->in_pieces && (o->emulate != NULL || o->profile))
        return hpct_fail(HPCT_ERR_USAGE,
                         "strategy %s has no --profile and no --emulate: a step is made of several "
                         "small ones",
                         ops->name);
    if (o->profile && hpct_strategy_replicas(&o->strategy) > 1 && hpct_model_on_device(run->model))
        return hpct_fail(HPCT_ERR_USAGE, "--profile times the operations of one GPU: leave out "
                                         "--replicas");
    return hpct_strategy_check_batch(&o->strategy, size, run->global_count);
}

/* Also sets this rank's local batch; fails if it does not fit in memory. */
static hpct_status choose_strategy(bench_run *run)
{
    int rank = hpct_context_rank(run->context), size = hpct_context_size(run->context);
    int64_t begin;
    hpct_cost_strategy_choice *choice = &run->strategy_choice;
    HPCT_TRY(hpct_cost_strategy_choose(choice, run->context, run->model, &run->options.strategy,
                                       run->global_count, run->options.global_batch_size > 0));
    if (choice->ops == &hpct_strategy_local_sgd && choice->options.local_warmup_steps == 0)
        choice->options.local_warmup_steps = -1; /* as in all steps after warm-up */
    if (choice->line[0] != '\0' && rank == 0)
        printf("%s\n", choice->line);
    run->count = choice->ops->whole_batch
                     ? run->global_count
                     : (int) hpct_data_slice(run->global_count, rank, size, &begin);
    return hpct_cost_batch_admit(
        run->context, run->model, &(hpct_batch_options){.strategy = choice->options},
        (int) hpct_data_slice(run->global_count, 0, size, &begin), &run->need);
}

/* Whole periods are timed, so that periodic work is included. */
static hpct_status make_room(bench_run *run)
{
    run->period = hpct_strategy_period(run->strategy_choice.ops, &run->strategy_choice.options);
    run->options.steps = (run->options.steps + run->period - 1) / run->period * run->period;
    size_t steps = (size_t) run->options.steps;
    run->seconds = calloc(steps, sizeof *run->seconds);
    run->order = calloc(steps, sizeof *run->order);
    run->periods = calloc(steps, sizeof *run->periods);
    return run->seconds != NULL && run->order != NULL && run->periods != NULL
               ? HPCT_OK
               : hpct_fail_memory(steps * sizeof *run->seconds);
}

static hpct_status try_outputs(const bench_run *run)
{
    const hpct_results_file files[] = {{"--summary-json", run->options.summary_json, 0},
                                       {"--timeline", run->options.timeline, 0}};
    return hpct_context_rank(run->context) == 0 ? hpct_results_try(files, 2) : HPCT_OK;
}

static hpct_status prepare(bench_run *run)
{
    hpct_strategy_plan plan = {
        .context = run->context,
        .model = run->model,
        .batch_sizes = &run->count,
        .num_batch_sizes = 1,
        .options = &run->strategy_choice.options,
        .late_sums = !run->options.profile,
    };
    hpct_status status = check_options(run);
    if (status == HPCT_OK)
        status = try_outputs(run);
    HPCT_TRY(hpct_context_agree(run->context, status));
    HPCT_TRY(hpct_train_identity_agree(run->context,
                                       &(hpct_train_identity_of){.model = run->model,
                                                                 .strategy = &run->options.strategy,
                                                                 .global_batch = run->global_count,
                                                                 .steps = run->options.steps}));
    HPCT_TRY(hpct_rank_threads_set(run->context));
    HPCT_TRY(choose_strategy(run));
    HPCT_TRY(hpct_context_agree(run->context, make_room(run)));
    HPCT_TRY(hpct_rank_timeline_open(&run->timeline, run->context, run->options.timeline));
    plan.timeline = run->timeline;
    HPCT_TRY(run->strategy_choice.ops->open(&run->strategy, &plan));
    if (hpct_context_rank(run->context) == 0)
        hpct_model_print_slow_ways(run->model, stderr);
    int part = run->strategy_choice.ops->whole_batch ? 0 : hpct_context_rank(run->context);
    HPCT_TRY(hpct_context_agree(run->context,
                                hpct_cost_made_up_batch(run->strategy->model, run->count, part)));
    hpct_model_keep_input(run->strategy->model);
    if (run->options.emulate == NULL)
        return HPCT_OK;
    int64_t begin,
        share = hpct_data_slice(run->global_count, 0, hpct_context_size(run->context), &begin);
    return hpct_cost_emulate(run->context, &(hpct_cost_emulate_options){
                                               .model = run->strategy->model,
                                               .whole = run->model,
                                               .count = run->count,
                                               .share = (int) share,
                                               .path = run->options.emulate,
                                               .dilation = run->options.dilation,
                                           });
}

/* last: waits for the device. */
static hpct_status one_step(bench_run *run, bool last, double *seconds)
{
    hpct_strategy_step_sums sums = {.last = last && hpct_model_on_device(run->model)};
    double began = hpct_process_clock();
    hpct_rank_timeline_step(run->timeline);
    hpct_status status = hpct_strategy_step(run->strategy, run->count, run->global_count, &sums);
    *seconds = hpct_process_clock() - began;
    if (sums.samples > 0)
        run->last = (hpct_metrics){.loss = sums.loss / (double) sums.samples,
                                   .accuracy = sums.correct / (double) sums.samples};
    if (run->options.emulate != NULL)
        run->last = (hpct_metrics) HPCT_RESULTS_NO_METRICS;
    return status;
}

static hpct_status train(bench_run *run)
{
    double ignored;
    hpct_status status = HPCT_OK;
    run->start_seconds = hpct_process_age();
    for (int i = 0; i < WARM_UP && status == HPCT_OK; i++)
        status = one_step(run, i == WARM_UP - 1, &ignored);
    if (status == HPCT_OK && run->options.profile)
        status = hpct_context_agree(
            run->context,
            hpct_run_profile_start(&run->profile, run->strategy->model, run->options.steps));
    double began = hpct_process_clock();
    for (int i = 0; i < run->options.steps && status == HPCT_OK; i++)
        status = one_step(run, i == run->options.steps - 1, &run->seconds[i]);
    run->total_seconds = hpct_process_clock() - began;
    return status;
}

/* ---- results ---- */

static int compare_steps(const void *a, const void *b, void *seconds)
{
    double x = ((double *) seconds)[*(const int *) a], y = ((double *) seconds)[*(const int *) b];
    return (x > y) - (x < y);
}

static void sort_steps(bench_run *run)
{
    for (int i = 0; i < run->options.steps; i++)
        run->order[i] = i;
    qsort_r(run->order, (size_t) run->options.steps, sizeof *run->order, compare_steps,
            run->seconds);
}

/* The median of the periods, per step. The host runs ahead of a device, so that its clock does not
 * show step times: the mean of all steps, until the last one is complete. */
static double one_of(bench_run *run)
{
    if (hpct_model_on_device(run->model))
        return run->total_seconds / run->options.steps;
    int num = run->options.steps / run->period;
    for (int i = 0; i < num; i++) {
        run->periods[i] = 0;
        for (int k = 0; k < run->period; k++)
            run->periods[i] += run->seconds[i * run->period + k] / run->period;
    }
    hpct_sort_numbers(run->periods, (size_t) num);
    return run->periods[num / 2];
}

static hpct_status print_profile(bench_run *run)
{
    int steps = run->options.steps, quarter = steps / 4, count = steps - 2 * quarter, num_rows;
    hpct_backend_rates rates;
    double sum = 0;
    sort_steps(run);
    HPCT_TRY(hpct_model_measure_rates(run->model, &rates));
    if (hpct_context_rank(run->context) != 0)
        return HPCT_OK;
    for (int i = 0; i < count; i++)
        sum += run->seconds[run->order[quarter + i]];
    const hpct_run_profile_row *rows =
        hpct_run_profile_rows(run->profile, run->order + quarter, count, &num_rows);
    hpct_cost_profile_print(stdout, rows, num_rows, sum / count, &rates);
    return HPCT_OK;
}

static hpct_status write_summary(const bench_run *run, const hpct_bench_result *result)
{
    hpct_status status = HPCT_OK;
    hpct_results_summary summary = {
        .model = hpct_model_name(run->model),
        .strategy = run->strategy_choice.ops->name,
        .device = hpct_model_device(run->model),
        .precision = hpct_model_precision(run->model),
        .workers = hpct_context_size(run->context),
        .replicas = hpct_strategy_replicas(&run->options.strategy),
        .threads = hpct_cpu_threads(),
        .global_batch = run->global_count,
        .epochs = 0,
        .steps = run->options.steps,
        .parameters = hpct_model_count_parameters(run->model),
        .start_seconds = run->start_seconds,
        .train_seconds = run->total_seconds,
        .step_ms = 1e3 * result->step_seconds,
        .images_per_second = result->images_per_second,
        .train = run->last,
        .optimizer = hpct_optimizer_name(hpct_model_optimizer(run->model)->kind),
        .learning_rate = hpct_model_learning_rate(run->model),
        .validation = HPCT_RESULTS_NO_METRICS,
        .peak_rss_mb = run->peak_mb,
        .bytes_sent_per_step = run->strategy->ops->bytes_per_step(run->strategy),
        .emulated = run->options.emulate != NULL,
        .dilation = run->options.dilation,
        .predicted_mb = result->predicted_mb,
        .device_used_mb = result->device_used_mb,
    };
    if (hpct_context_rank(run->context) == 0)
        status = hpct_results_write_summary(&summary, run->options.summary_json, false);
    return hpct_context_agree(run->context, status);
}

static hpct_status measure(bench_run *run, hpct_bench_result *result)
{
    hpct_context *context = run->context;
    HPCT_TRY(hpct_context_agree(context, hpct_model_memory_left(run->model, &run->left_before)));
    HPCT_TRY(prepare(run));
    HPCT_TRY(train(run));
    HPCT_TRY(hpct_context_agree(context, hpct_model_memory_left(run->model, &run->left_now)));
    run->peak_mb = hpct_process_peak_mb(); /* before rates are measured, which allocates memory */
    HPCT_TRY(hpct_rank_largest(context, &run->peak_mb, 1));
    result->step_seconds = one_of(run);
    result->images_per_second = run->global_count / result->step_seconds;
    result->predicted_mb = (double) run->need / (1 << 20);
    result->device_used_mb = hpct_model_on_device(run->model)
                                 ? ((double) run->left_before - (double) run->left_now) / (1 << 20)
                                 : NAN;
    if (run->options.profile)
        HPCT_TRY(hpct_context_agree(context, print_profile(run)));
    if (run->options.summary_json != NULL)
        HPCT_TRY(write_summary(run, result));
    return hpct_rank_timeline_write(run->timeline, context);
}

hpct_status hpct_bench(hpct_context *context, hpct_model *model, const hpct_bench_options *options,
                       hpct_bench_result *result)
{
    bench_run run = {.context = context, .model = model, .options = *options};
    hpct_waits before = hpct_enter_wait(HPCT_WAITS_FOR_NOBODY);
    hpct_status status = measure(&run, result);
    hpct_run_profile_stop(run.profile);
    if (run.strategy != NULL)
        run.strategy->ops->close(run.strategy);
    hpct_rank_timeline_close(run.timeline);
    free(run.seconds);
    free(run.order);
    free(run.periods);
    hpct_enter_wait(before);
    return status;
}
