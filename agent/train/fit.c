/* fit: the training loop of every strategy and model. All allocations are before step 1. What
 * follows from steps and epochs is in the table of observers.c. */
#include "agent/train/fit.h"

#include "agent/cost/batch.h"
#include "agent/data/augment.h"
#include "agent/data/dataset.h"
#include "agent/rank/context.h"
#include "agent/rank/largest.h"
#include "agent/rank/stop.h"
#include "agent/rank/threads.h"
#include "agent/train/evaluate.h"
#include "agent/train/fit_run.h"
#include "agent/train/identity.h"
#include "agent/train/observer.h"
#include "agent/train/targets.h"
#include "base/process.h"
#include "base/progress.h"
#include "base/status.h"
#include "nn/backend/cpu/backend.h"
#include "nn/run/slow_ways.h"
#include "nn/run/step.h"

#include <hpctrain/check.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define LESS_THAN_SIGNALS 0.5

/* ---- before step 1 ---- */

static hpct_status choose_strategy(hpct_fit_run *run)
{
    hpct_train_training *t = &run->training;
    int64_t samples = (int64_t) t->train->size;
    int batch = t->options.steps_per_epoch == 0 && samples < t->global_batch ? (int) samples
                                                                             : t->global_batch;
    HPCT_TRY(hpct_cost_strategy_choose(&run->choice, t->context, t->model, &t->options.strategy,
                                       batch, t->options.global_batch_size > 0));
    t->strategy_name = run->choice.ops->name;
    if (run->choice.line[0] != '\0' && t->options.verbose != 0 && t->leads) {
        puts(run->choice.line);
        fflush(stdout);
    }
    return HPCT_OK;
}

/* Index of the slice of each global batch for this rank's steps. */
static int slice_rank(const hpct_fit_run *run)
{
    return run->choice.ops->whole_batch ? 0 : hpct_context_rank(run->training.context);
}

static int slice_size(const hpct_fit_run *run)
{
    return run->choice.ops->whole_batch ? 1 : run->training.workers;
}

/* Evaluation uses larger batches than training if memory allows. */
static hpct_status admit(hpct_fit_run *run)
{
    const hpct_train_training *t = &run->training;
    int64_t samples = (int64_t) t->train->size, global = t->global_batch, begin;
    if (t->options.steps_per_epoch == 0 && samples < global)
        global = samples;
    hpct_batch_options batch = {
        .data = t->train, .validation = t->validation, .strategy = run->choice.options};
    int size = t->workers, full = (int) hpct_data_slice(global, 0, size, &begin);
    bool fits = false;
    hpct_status status = HPCT_OK;
    run->evaluation_batch = full;
    if (t->validation != NULL && full < HPCT_COST_EVALUATION_BATCH)
        status = hpct_cost_batch_fits(t->context, t->model, &batch, HPCT_COST_EVALUATION_BATCH, 0,
                                      &fits);
    if (fits)
        run->evaluation_batch = HPCT_COST_EVALUATION_BATCH;
    else if (status == HPCT_OK)
        status = hpct_cost_batch_asked(
            hpct_cost_batch_admit(t->context, t->model, &batch, full, NULL), full,
            t->options.global_batch_size, t->global_batch / size, t->train->size);
    return status;
}

static hpct_status open_sampler(hpct_fit_run *run)
{
    const hpct_train_training *t = &run->training;
    hpct_data_sampler_options sampling = {
        .samples = t->train->size,
        .global_batch = t->global_batch,
        .steps_per_epoch = t->options.steps_per_epoch,
        .rank = slice_rank(run),
        .size = slice_size(run),
        .seed = t->options.seed,
    };
    HPCT_TRY(hpct_data_sampler_new(&run->sampler, &sampling));
    int64_t steps;
    if (__builtin_mul_overflow(t->steps_per_epoch, (int64_t) t->options.epochs, &steps) ||
        __builtin_mul_overflow(steps, (int64_t) t->global_batch, &steps))
        return hpct_fail(HPCT_ERR_USAGE, "the number of epochs and steps is too large");
    return HPCT_OK;
}

static hpct_status open_strategy(hpct_fit_run *run)
{
    hpct_train_training *t = &run->training;
    int sizes[2], evaluation[2], num = 0, num_evaluation = 0;
    int full = hpct_data_sampler_full_count(run->sampler),
        tail = hpct_data_sampler_short_count(run->sampler);
    if (full > 0)
        sizes[num++] = full;
    if (tail > 0 && tail != full)
        sizes[num++] = tail;
    if (t->validation != NULL)
        num_evaluation = hpct_train_evaluate_batch_sizes(t->context, t->validation,
                                                         run->evaluation_batch, evaluation);
    if (t->validation != NULL && num_evaluation == 0)
        evaluation[num_evaluation++] = 1; /* more ranks than samples; all build the same */
    hpct_strategy_plan plan = {
        .context = t->context,
        .model = t->model,
        .batch_sizes = sizes,
        .num_batch_sizes = num,
        .evaluation_sizes = evaluation,
        .num_evaluation_sizes = num_evaluation,
        .options = &run->choice.options,
        .dense_targets = hpct_data_augment_mixes(&t->train->options),
        .timeline = t->timeline,
        /* a log has the sums of each step, a checkpoint those of the epoch so far */
        .late_sums = t->options.log_dir == NULL && run->checkpoints == NULL,
    };
    HPCT_TRY(run->choice.ops->open(&t->strategy, &plan));
    if (t->leads)
        hpct_model_print_slow_ways(t->model, stderr);
    return HPCT_OK;
}

static hpct_data_batch batch_of_step(void *argument, int64_t number)
{
    const hpct_fit_run *run = argument;
    int64_t steps = run->training.steps_per_epoch,
            step = hpct_train_training_first_step(&run->training) + number;
    return hpct_data_sampler_batch(run->sampler, step / steps, step % steps);
}

static hpct_status open_input_source(hpct_fit_run *run)
{
    hpct_train_training *t = &run->training;
    int full = hpct_data_sampler_full_count(run->sampler),
        tail = hpct_data_sampler_short_count(run->sampler);
    hpct_data_pipeline_options options = {
        .dataset = t->train,
        .batches = t->steps_per_epoch * t->options.epochs - hpct_train_training_first_step(t),
        .largest = full > tail ? full : tail,
        .training = true,
        .seed = t->options.seed,
        .threads = hpct_cpu_threads(),
        .batch = batch_of_step,
        .from = run,
    };
    return hpct_context_agree(t->context,
                              hpct_train_batch_source_open(&t->input_source, t->strategy->model,
                                                           &options, 0, t->train->size));
}

static hpct_status open_tally(hpct_train_training *t)
{
    const hpct_fit_options *o = &t->options;
    if ((o->metrics != 0 || o->confusion_matrix != NULL) && t->validation == NULL)
        return hpct_fail(HPCT_ERR_USAGE,
                         "--metrics and --confusion-matrix are of validation data: they need "
                         "--validation-data or --validation-split");
    return hpct_train_evaluate_open_tally(&t->tally, t->model, o->metrics,
                                          o->confusion_matrix != NULL);
}

/* Describes the run, once the ranks have agreed on it. */
static hpct_status compare_ranks(hpct_train_training *t)
{
    hpct_train_identity_of of = {.model = t->model,
                                 .train = t->train,
                                 .validation = t->validation,
                                 .fit = &t->options,
                                 .global_batch = t->global_batch,
                                 .steps = t->steps_per_epoch};
    HPCT_TRY(hpct_train_identity_agree(t->context, &of));
    return hpct_context_agree(t->context, hpct_train_identity_describe(&t->identity, &of));
}

/* Loads what a continued run begins with. Another number of epochs has changed the learning rate.
 */
static hpct_status attach_checkpoints(hpct_fit_run *run)
{
    const hpct_train_training *t = &run->training;
    if (run->checkpoints == NULL)
        return HPCT_OK;
    HPCT_TRY(hpct_train_checkpoints_attach(run->checkpoints, t->strategy));
    bool continued = t->begin.epoch > t->options.initial_epoch || t->begin.step > 0;
    if (continued && hpct_train_training_has_work(t) && hpct_results_rate_spans(t->model) &&
        t->options.verbose != 0 && t->leads)
        printf("the learning rate goes on at %.4g: --schedule spans all %d epochs\n",
               hpct_model_learning_rate(t->strategy->model), t->options.epochs);
    return HPCT_OK;
}

static hpct_status check(hpct_train_training *t)
{
    int64_t samples = (int64_t) t->train->size, steps = t->options.steps_per_epoch;
    hpct_status status = hpct_fit_check_options(t->context, &t->options, &t->global_batch);
    if (t->options.epochs == 0)
        t->options.epochs = 1;
    if (status == HPCT_OK)
        status = hpct_fit_check_data(t->model, t->train, t->validation);
    if (status == HPCT_OK)
        status = hpct_train_observe(t, HPCT_TRAIN_ON_CHECK);
    if (status == HPCT_OK)
        status = open_tally(t);
    if (status == HPCT_OK && t->leads)
        status = hpct_results_try_fit(&t->options, t->model);
    HPCT_TRY(hpct_context_agree(t->context, status));
    t->steps_per_epoch = steps > 0 ? steps : (samples + t->global_batch - 1) / t->global_batch;
    return HPCT_OK;
}

static hpct_status prepare(hpct_fit_run *run)
{
    hpct_train_training *t = &run->training;
    HPCT_TRY(check(t));
    HPCT_TRY(compare_ranks(t));
    HPCT_TRY(hpct_context_agree(t->context, hpct_fit_check_accumulation(run)));
    HPCT_TRY(hpct_rank_threads_set(t->context));
    if (t->options.check && !t->again)
        HPCT_TRY(hpct_check_nodes(t->context, t->options.verbose != 0 ? stdout : NULL, NULL));
    HPCT_TRY(choose_strategy(run));
    HPCT_TRY(admit(run));
    HPCT_TRY(hpct_context_agree(t->context, open_sampler(run)));
    HPCT_TRY(hpct_fit_open_checkpoints(run));
    HPCT_TRY(hpct_context_agree(t->context, hpct_train_training_allocate(t)));
    HPCT_TRY(hpct_train_observe(t, HPCT_TRAIN_ON_OPEN));
    HPCT_TRY(hpct_rank_timeline_open(&t->timeline, t->context, t->options.timeline));
    HPCT_TRY(open_strategy(run));
    HPCT_TRY(attach_checkpoints(run));
    HPCT_TRY(hpct_train_observe(t, HPCT_TRAIN_ON_BEGIN));
    return hpct_train_training_has_work(t) ? open_input_source(run) : HPCT_OK;
}

/* ---- training ---- */

/* Replaces a failed input. If ranks' steps must be equal, the rank's number of samples, of any
 * content: the whole batch, for collectives within forward, or the slice, for a recording. Else no
 * samples. */
static hpct_data_input stand_in(const hpct_fit_run *run)
{
    const hpct_strategy *strategy = run->training.strategy;
    int64_t global = hpct_data_sampler_global_count(run->sampler, run->training.now.sums.steps),
            first;
    if (!run->choice.ops->whole_batch && !strategy->whole_steps)
        return (hpct_data_input){.global_count = (int) global};
    return (hpct_data_input){
        .pixels = hpct_model_input(strategy->model),
        .labels = hpct_model_labels(strategy->model),
        .count = (int) hpct_data_slice(global, slice_rank(run), slice_size(run), &first),
        .global_count = (int) global};
}

/* Of fp16: a step whose gradients are infinite is left out, and the scale is lowered. */
static bool has_loss_scale(const hpct_train_training *t)
{
    return hpct_model_precision(t->model) == HPCT_FP16;
}

static void note_parts(hpct_train_training *t, double step, double input)
{
    const hpct_strategy_step_times *times = &t->strategy->times;
    double *parts = t->now.times.parts;
    parts[HPCT_TRAIN_PACE_STEP] = step;
    parts[HPCT_TRAIN_PACE_INPUT] = input;
    parts[HPCT_TRAIN_PACE_FORWARD] = times->forward;
    parts[HPCT_TRAIN_PACE_BACKWARD] = times->backward;
    parts[HPCT_TRAIN_PACE_WAIT] = times->wait;
    parts[HPCT_TRAIN_PACE_UPDATE] = times->update;
}

/* The next batch. After an error the rank still takes part, without samples, so that all ranks
 * learn of the error and end together: it is in run->input_failed. */
static hpct_data_input next_input(hpct_fit_run *run)
{
    hpct_data_input input;
    hpct_train_training *t = &run->training;
    double asked = hpct_rank_timeline_now(t->timeline);
    if (run->input_failed == HPCT_OK) /* else the others have not been informed yet */
        run->input_failed = hpct_train_batch_source_next(t->input_source, &input);
    hpct_rank_timeline_add(t->timeline, HPCT_RANK_TIMELINE_INPUT, 0, asked);
    return run->input_failed == HPCT_OK ? input : stand_in(run);
}

/* Adds a step to the epoch's sums. */
static hpct_status note_step(hpct_fit_run *run, const hpct_data_input *input,
                             const hpct_strategy_step_sums *sums, double began)
{
    hpct_train_training *t = &run->training;
    const hpct_train_training_sums step = {.loss = sums->loss,
                                           .correct = sums->correct,
                                           .in_top_k = sums->in_top_k,
                                           .samples = sums->samples};
    double ended = hpct_process_clock();
    hpct_train_training_add_step(t, &step, ended, ended - began);
    t->now.samples_done += input->global_count;
    if (sums->interrupted > 0 || sums->terminated > 0)
        t->now.signal = sums->terminated > 0 ? SIGTERM : SIGINT;
    if (step.samples == 0 || isfinite(t->now.end.last_loss) || has_loss_scale(t))
        return HPCT_OK;
    run->nan = true; /* no later step would be better */
    return hpct_fit_note_nan(run, input->count, input->global_count);
}

static hpct_status train_step(hpct_fit_run *run)
{
    hpct_train_training *t = &run->training;
    hpct_train_moment *now = &t->now;
    double began = hpct_process_clock();
    hpct_data_input input = next_input(run);
    double waited = hpct_process_clock() - began;
    if (run->input_failed != HPCT_OK && t->workers == 1)
        return run->input_failed;
    int64_t first;
    hpct_data_slice(input.global_count, slice_rank(run), slice_size(run), &first);
    hpct_model_set_position(t->strategy->model, t->options.seed,
                            hpct_train_training_first_step(t) + now->steps_done, first);
    int signal = hpct_rank_stop_signal();
    hpct_strategy_step_sums sums = {.interrupted = signal == SIGINT,
                                    .terminated = signal != 0 && signal != SIGINT,
                                    .failed = run->input_failed != HPCT_OK,
                                    .last = now->sums.steps + 1 == now->planned ||
                                            (signal != 0 && t->workers == 1)};
    HPCT_TRY(hpct_strategy_step(t->strategy, input.count, input.global_count, &sums));
    if (sums.failed > 0)
        HPCT_TRY(hpct_context_agree(t->context, run->input_failed));
    note_parts(t, hpct_process_clock() - began, waited);
    return note_step(run, &input, &sums, began);
}

static hpct_status train_and_observe(hpct_fit_run *run)
{
    hpct_train_training *t = &run->training;
    HPCT_TRY(hpct_train_observe(t, HPCT_TRAIN_ON_STEP));
    HPCT_TRY(train_step(run));
    HPCT_TRY(hpct_train_observe(t, HPCT_TRAIN_ON_STEP_ENDED));
    HPCT_TRY(hpct_fit_save_step(run));
    t->now.times.save = hpct_train_checkpoints_seconds(run->checkpoints);
    return HPCT_OK;
}

/* Agrees on the signal among ranks; first on input errors, of which other ranks may not know
 * yet. A callback's stop request is reported like a signal. */
static hpct_status end_by_signal(hpct_fit_run *run)
{
    hpct_train_training *t = &run->training;
    double signal = hpct_rank_stop_signal();
    if (signal == HPCT_RANK_STOP_CALLBACK)
        signal = LESS_THAN_SIGNALS;
    HPCT_TRY(hpct_context_agree(t->context, run->input_failed));
    HPCT_TRY(hpct_rank_largest(t->context, &signal, 1));
    t->now.signal = (int) signal;
    if (t->now.signal == 0) {
        t->now.result.stopped_epoch = t->now.epoch + 1;
        t->now.called = t->now.over = true;
    }
    return HPCT_OK;
}

static hpct_status evaluate(hpct_fit_run *run)
{
    hpct_train_training *t = &run->training;
    HPCT_TRY(hpct_train_training_gather(t));
    return hpct_train_evaluate_built(t->context, t->model, t->strategy, t->validation,
                                     run->evaluation_batch, t->tally, &t->now.result.validation);
}

static void say_diverged(const hpct_train_training *t)
{
    if (!t->now.end.diverged && t->options.verbose != 0 && t->leads)
        puts("training has diverged: the loss is not finite or 100 times that of step 1");
}

/* Evaluates the epoch, unless it was cut, and has it observed. */
static hpct_status end_epoch(hpct_fit_run *run)
{
    hpct_train_training *t = &run->training;
    hpct_train_moment *now = &t->now;
    double ended = hpct_process_clock();
    bool diverged = hpct_results_diverged(&now->end);
    now->cut = now->sums.steps < now->planned || run->nan;
    now->result.train = hpct_train_training_mean(t, &now->sums);
    now->good = !diverged && isfinite(now->result.train.loss);
    if (t->validation != NULL && !now->cut)
        HPCT_TRY(evaluate(run));
    now->times.evaluation = hpct_process_clock() - ended;
    if (!now->cut)
        now->times.epochs[now->epochs_done++] = ended - now->times.epoch_began;
    HPCT_TRY(hpct_train_observe(t, HPCT_TRAIN_ON_EPOCH_ENDED));
    if (run->nan || (!now->cut && diverged))
        say_diverged(t);
    fflush(stdout);
    if (now->cut)
        return HPCT_OK;
    now->end.diverged = diverged;
    hpct_train_training_end_epoch(t);
    return hpct_fit_save_epoch(run);
}

static hpct_status train_epoch(hpct_fit_run *run, int epoch)
{
    hpct_train_training *t = &run->training;
    int64_t left = run->max_steps - t->now.steps_done;
    hpct_train_training_begin_epoch(t, epoch,
                                    left < t->steps_per_epoch ? left : t->steps_per_epoch);
    HPCT_TRY(hpct_train_observe(t, HPCT_TRAIN_ON_EPOCH));
    while (t->now.sums.steps < t->now.planned && t->now.signal == 0 && !run->nan)
        HPCT_TRY(train_and_observe(run));
    if (t->now.signal != 0)
        HPCT_TRY(end_by_signal(run));
    return end_epoch(run);
}

static hpct_status train(hpct_fit_run *run)
{
    const hpct_train_training *t = &run->training;
    bool has_work = hpct_train_training_has_work(t);
    for (int epoch = (int) t->begin.epoch; has_work && epoch < t->options.epochs; epoch++) {
        HPCT_TRY(train_epoch(run, epoch));
        has_work = t->now.signal == 0 && !run->nan && t->now.result.stopped_epoch == 0;
    }
    return HPCT_OK;
}

/* ---- at the end ---- */

/* After an error no weights are saved: an earlier run's file stays. */
static hpct_status save_weights(hpct_train_training *t)
{
    const char *path = t->options.save_weights;
    hpct_status status = HPCT_OK;
    if (path != NULL || t->strategy->model != t->model)
        status = t->strategy->ops->gather(t->strategy);
    if (status == HPCT_OK)
        status = hpct_train_observed_restore_best(t);
    if (path == NULL || status != HPCT_OK)
        return status;
    /* No timeout: ending now would lose the weights. */
    hpct_waits before = hpct_enter_wait(HPCT_WAITS_UNSEEN);
    if (t->leads)
        status = hpct_results_save(t->model, path, &t->now.end);
    hpct_enter_wait(before);
    return hpct_context_agree(t->context, status);
}

/* The last checkpoint, first: saving weights averages the moving statistics. One that cannot be
 * written says nothing against the weights. */
static hpct_status save_checkpoint_and_weights(hpct_fit_run *run)
{
    hpct_train_training *t = &run->training;
    hpct_status last = HPCT_OK;
    if (run->checkpoints != NULL)
        last = hpct_context_agree(t->context, hpct_fit_save_last(run));
    if (last == HPCT_ERR_PEER || (last != HPCT_OK && !hpct_context_all_know(t->context, last)))
        return last;
    char *why = hpct_error_keep();
    hpct_status status = save_weights(t);
    char *later = hpct_error_keep();
    hpct_error_restore(why);
    hpct_results_note(&t->now.end, last);
    hpct_error_restore(later);
    return status;
}

/* `failed`: the status that ended training. Nothing is saved after an error that other ranks do not
 * know of, or after an aborted step. */
static hpct_status finish(hpct_fit_run *run, hpct_status failed)
{
    hpct_train_training *t = &run->training;
    if (failed != HPCT_OK && (failed == HPCT_ERR_INTERNAL || t->now.steps_done == 0 ||
                              !hpct_train_training_went(t, failed)))
        return failed;
    t->now.how = failed == HPCT_OK ? HPCT_RESULTS_LIVE_FINISHED : HPCT_RESULTS_LIVE_FAILED;
    hpct_train_training_note_end(t);
    hpct_status status = save_checkpoint_and_weights(run);
    if (!hpct_train_training_went(t, status))
        return status;
    return hpct_train_training_finish(t);
}

static void run_free(hpct_fit_run *run)
{
    hpct_train_training *t = &run->training;
    hpct_train_checkpoints_close(run->checkpoints);
    hpct_results_tally_close(t->tally);
    hpct_train_batch_source_close(t->input_source); /* uses the strategy's model */
    if (t->strategy != NULL)
        t->strategy->ops->close(t->strategy);
    hpct_data_sampler_free(run->sampler);
    hpct_rank_timeline_close(t->timeline);
    json_decref(t->identity);
    hpct_train_training_free(t);
}

/* A whole run, or, if it goes back, the part until then: *path is the checkpoint. */
static hpct_status train_whole(hpct_fit_run *run, char **path)
{
    bool back = false;
    hpct_train_training_start(&run->training);
    hpct_status status = train(run);
    if (status == HPCT_OK)
        status = hpct_fit_goes_back(run, &back, path);
    if (status != HPCT_OK || !back)
        return finish(run, status);
    hpct_train_observe_close(&run->training);
    return HPCT_OK;
}

static hpct_status run_once(hpct_fit_run *run, char **path)
{
    hpct_status status = prepare(run);
    bool prepared = status == HPCT_OK;
    if (prepared) {
        hpct_rank_stop_begin();
        status = train_whole(run, path);
    }
    hpct_train_training_close(&run->training, status);
    if (prepared)
        hpct_rank_stop_end();
    return status;
}

hpct_status hpct_fit_together(hpct_context *context, hpct_model *model, const hpct_dataset *train,
                              const hpct_fit_options *options, int64_t max_steps,
                              hpct_fit_result *result)
{
    const hpct_fit_run first = {
        .max_steps = max_steps,
        .training = {.context = context,
                     .model = model,
                     .train = train,
                     .validation = options->validation,
                     .options = *options,
                     .host = hpct_context_node(context),
                     .workers = hpct_context_size(context),
                     .leads = hpct_context_rank(context) == 0,
                     .now.result = {.train = HPCT_RESULTS_NO_METRICS,
                                    .validation = HPCT_RESULTS_NO_METRICS}},
    };
    char *path = NULL;
    hpct_fit_run run = first;
    hpct_status status = run_once(&run, &path);
    if (path != NULL) {
        bool settled = run.training.now.settled;
        run_free(&run);
        run = first;
        run.training.options.resume = path;
        run.training.again = true;
        status = run_once(&run, NULL);
        if (status != HPCT_OK && status != HPCT_ERR_STOPPED)
            hpct_fit_restate_failed(&run.training, settled);
    }
    if (result != NULL)
        *result = run.training.now.result;
    run_free(&run);
    free(path);
    return status;
}
