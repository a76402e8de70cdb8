/* fit: the training loop of every strategy and model. All allocations are before step 1. */
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
#include "agent/train/means.h"
#include "agent/train/targets.h"
#include "base/headway.h"
#include "base/process.h"
#include "base/status.h"
#include "nn/run/slow_ways.h"
#include "nn/run/step.h"

#include <hpctrain/check.h>
#include <hpctrain/train.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LESS_THAN_SIGNALS 0.5
#define MAX_STEP_TIMES ((int64_t) 1 << 20) /* most recent steps used for the median */

/* ---- before step 1 ---- */

/* *global_batch: samples per step. */
static hpct_status check_options(const hpct_context *context, const hpct_fit_options *o,
                                 int *global_batch)
{
    int size = hpct_context_size(context);
    if (o->epochs < 0 || o->steps_per_epoch < 0 || o->batch_size < 0 || o->global_batch_size < 0)
        return hpct_fail(HPCT_ERR_USAGE,
                         "epochs, steps per epoch and batch sizes cannot be negative");
    if (o->batch_size > 0 && o->global_batch_size > 0)
        return hpct_fail(HPCT_ERR_USAGE,
                         "batch size (per rank) and global batch size are both given: give one");
    if (o->verbose < HPCT_VERBOSE_AUTO || o->verbose > 2)
        return hpct_fail(HPCT_ERR_USAGE, "verbose is %d, it must be 0, 1 or 2", o->verbose);
    if (o->initial_epoch < 0 || o->initial_epoch >= (o->epochs == 0 ? 1 : o->epochs))
        return hpct_fail(HPCT_ERR_USAGE,
                         "the initial epoch is %d of %d in all: none would be left to train",
                         o->initial_epoch, o->epochs == 0 ? 1 : o->epochs);
    int64_t global = o->global_batch_size;
    if (global == 0)
        global = (int64_t) (o->batch_size > 0 ? o->batch_size : HPCT_DEFAULT_BATCH) *
                 hpct_context_first_workers(context);
    if (global > INT_MAX / 2)
        return hpct_fail(HPCT_ERR_USAGE, "a global batch of %" PRId64 " samples is too large",
                         global);
    if (global < size)
        return hpct_fail(HPCT_ERR_USAGE,
                         "a global batch of %" PRId64 " cannot be shared among %d ranks: give at "
                         "least one sample to each",
                         global, size);
    *global_batch = (int) global;
    if (o->histogram_every < 0 || (o->histogram_every > 0 && o->log_dir == NULL))
        return hpct_fail(HPCT_ERR_USAGE,
                         "--histogram-every is a number of epochs, for runs with --log-dir");
    HPCT_TRY(hpct_checkpoints_check(o->checkpoint_dir, o->checkpoint_every, o->resume,
                                    o->checkpoint_keep));
    if (o->save_best == NULL && o->checkpoint_dir == NULL &&
        (o->monitor != NULL || o->monitor_mode != NULL))
        return hpct_fail(HPCT_ERR_USAGE, "--monitor and --mode are for runs with --save-best or "
                                         "--checkpoint-dir");
    HPCT_TRY(hpct_control_check(o));
    bool stop = o->on_nan == NULL || strcmp(o->on_nan, "stop") == 0;
    if (!stop && strcmp(o->on_nan, "resume") != 0)
        return hpct_fail(HPCT_ERR_USAGE, "--on-nan is '%s', it must be stop or resume", o->on_nan);
    if (!stop && o->checkpoint_dir == NULL)
        return hpct_fail(HPCT_ERR_USAGE, "--on-nan resume is for runs with --checkpoint-dir");
    HPCT_TRY(hpct_strategy_check(&o->strategy));
    return hpct_strategy_check_batch(&o->strategy, size, *global_batch);
}

/* Parameter servers have a loop of their own. */
static hpct_status check_apart(const hpct_fit_options *o)
{
    const char *option = o->metrics != 0               ? "--metrics"
                         : o->confusion_matrix != NULL ? "--confusion-matrix"
                                                       : NULL;
    return option == NULL ? HPCT_OK
                          : hpct_fail(HPCT_ERR_USAGE,
                                      "%s is not for --strategy parameter-server, whose workers "
                                      "report loss and accuracy only: hpc-train evaluate has it, "
                                      "for the weights of --save-weights",
                                      option);
}

hpct_status hpct_fit_check(const hpct_context *context, const hpct_fit_options *options)
{
    int ignored;
    if (hpct_context_is_apart(context) && options->check)
        return hpct_fail(HPCT_ERR_USAGE,
                         "--check compares nodes whose ranks step together: those of --strategy "
                         "parameter-server do not");
    if (hpct_context_is_apart(context))
        HPCT_TRY(check_apart(options));
    return hpct_context_is_apart(context) ? hpct_strategy_check(&options->strategy)
                                          : check_options(context, options, &ignored);
}

static hpct_status choose_strategy(hpct_fit_run *run)
{
    int64_t samples = (int64_t) run->train->size;
    int batch = run->options.steps_per_epoch == 0 && samples < run->global_batch
                    ? (int) samples
                    : run->global_batch;
    HPCT_TRY(hpct_strategy_choose(&run->choice, run->context, run->model, &run->options.strategy,
                                  batch, run->options.global_batch_size > 0));
    if (run->choice.line[0] != '\0' && run->options.verbose != 0 &&
        hpct_context_rank(run->context) == 0) {
        puts(run->choice.line);
        fflush(stdout);
    }
    return HPCT_OK;
}

/* Index of the slice of each global batch for this rank's steps. */
static int slice_rank(const hpct_fit_run *run)
{
    return run->choice.ops->whole_batch ? 0 : hpct_context_rank(run->context);
}

static int slice_size(const hpct_fit_run *run)
{
    return run->choice.ops->whole_batch ? 1 : hpct_context_size(run->context);
}

/* Mixed pictures have rows of targets. */
static hpct_status check_mixing(const hpct_model *model, const hpct_dataset *train)
{
    hpct_loss loss = hpct_model_loss_kind(model);
    bool categorical = loss <= HPCT_CATEGORICAL_CROSSENTROPY_FROM_LOGITS ||
                       loss == HPCT_CATEGORICAL_FOCAL_CROSSENTROPY ||
                       loss == HPCT_CATEGORICAL_FOCAL_CROSSENTROPY_FROM_LOGITS;
    if (!hpct_augment_mixes(&train->options) || categorical)
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_USAGE,
                     "--augment mixup and cutmix need a categorical cross-entropy, which takes "
                     "shares of classes: not %s",
                     hpct_loss_name(loss));
}

hpct_status hpct_fit_check_data(const hpct_model *model, const hpct_dataset *train,
                                const hpct_dataset *validation)
{
    hpct_shape input = hpct_model_input_shape(model);
    int labels = hpct_model_count_labels(model);
    if (hpct_model_count_trainable(model) == 0 && hpct_model_count_parameters(model) > 0)
        return hpct_fail(HPCT_ERR_USAGE,
                         "model %s: all layers with weights are frozen (--freeze, or trainable "
                         "false in its JSON): nothing is left to train",
                         hpct_model_name(model));
    HPCT_TRY(check_mixing(model, train));
    HPCT_TRY(hpct_dataset_check(train, input, labels));
    HPCT_TRY(hpct_dataset_check_targets(train, model));
    if (validation == NULL)
        return HPCT_OK;
    HPCT_TRY(hpct_dataset_check(validation, input, labels));
    HPCT_TRY(hpct_dataset_check_targets(validation, model));
    return hpct_dataset_check_classes(validation, train);
}

/* Evaluation uses larger batches than training if memory allows. */
static hpct_status admit(hpct_fit_run *run)
{
    int64_t samples = (int64_t) run->train->size, global = run->global_batch, begin;
    if (run->options.steps_per_epoch == 0 && samples < global)
        global = samples;
    hpct_batch_options batch = {
        .data = run->train, .validation = run->validation, .strategy = run->choice.options};
    int size = hpct_context_size(run->context), full = (int) hpct_slice(global, 0, size, &begin);
    bool fits = false;
    hpct_status status = HPCT_OK;
    run->evaluation_batch = full;
    if (run->validation != NULL && full < HPCT_EVALUATION_BATCH)
        status = hpct_batch_fits(run->context, run->model, &batch, HPCT_EVALUATION_BATCH, 0, &fits);
    if (fits)
        run->evaluation_batch = HPCT_EVALUATION_BATCH;
    else if (status == HPCT_OK)
        status = hpct_batch_asked(hpct_batch_admit(run->context, run->model, &batch, full, NULL),
                                  full, run->options.global_batch_size, run->global_batch / size,
                                  run->train->size);
    return status;
}

static hpct_status allocate(hpct_fit_run *run)
{
    hpct_sampler_options sampling = {
        .samples = run->train->size,
        .global_batch = run->global_batch,
        .steps_per_epoch = run->options.steps_per_epoch,
        .rank = slice_rank(run),
        .size = slice_size(run),
        .seed = run->options.seed,
    };
    hpct_status status = hpct_sampler_new(&run->sampler, &sampling);
    if (status != HPCT_OK)
        return status;
    int64_t steps;
    if (__builtin_mul_overflow(hpct_sampler_steps_per_epoch(run->sampler),
                               (int64_t) run->options.epochs, &steps) ||
        __builtin_mul_overflow(steps, (int64_t) run->global_batch, &steps))
        return hpct_fail(HPCT_ERR_USAGE, "the number of epochs and steps is too large");
    steps /= run->global_batch;
    run->num_step_times = steps < MAX_STEP_TIMES ? steps : MAX_STEP_TIMES;
    run->step_times = calloc((size_t) run->num_step_times, sizeof *run->step_times);
    run->epoch_seconds = calloc((size_t) run->options.epochs, sizeof *run->epoch_seconds);
    if (run->step_times == NULL || run->epoch_seconds == NULL)
        return hpct_fail_memory((size_t) run->num_step_times * sizeof *run->step_times);
    return HPCT_OK;
}

static int64_t count_steps_per_epoch(const hpct_fit_run *run)
{
    int64_t samples = (int64_t) run->train->size, steps = run->options.steps_per_epoch;
    return steps > 0 ? steps : (samples + run->global_batch - 1) / run->global_batch;
}

/* Gradients that are accumulated need a step that applies them. */
static hpct_status check_accumulation(const hpct_fit_run *run)
{
    int every = hpct_model_gradient_accumulation(run->model);
    int64_t epochs = run->options.epochs - run->options.initial_epoch, steps;
    if (__builtin_mul_overflow(count_steps_per_epoch(run), epochs, &steps) ||
        steps > run->max_steps)
        steps = run->max_steps;
    if (every > steps)
        return hpct_fail(HPCT_ERR_USAGE,
                         "--gradient-accumulation %d: the whole run has %" PRId64
                         " steps, so that no weight would change: give at most that many",
                         every, steps);
    if (steps % every != 0 && run->options.verbose != 0 && hpct_context_rank(run->context) == 0)
        printf("--gradient-accumulation %d: the gradients of the last %" PRId64 " of %" PRId64
               " steps are not applied\n",
               every, steps % every, steps);
    return HPCT_OK;
}

static hpct_status open_history(hpct_fit_run *run)
{
    hpct_metric_choice choice = hpct_metrics_chosen(&run->options, run->model);
    if (hpct_context_rank(run->context) != 0 || run->options.log_dir == NULL)
        return HPCT_OK;
    return hpct_history_open(&run->history, run->options.log_dir, &choice, &run->begin.logs);
}

static hpct_status open_strategy(hpct_fit_run *run)
{
    int sizes[2], evaluation[2], num = 0, num_evaluation = 0;
    int full = hpct_sampler_full_count(run->sampler), tail = hpct_sampler_short_count(run->sampler);
    if (full > 0)
        sizes[num++] = full;
    if (tail > 0 && tail != full)
        sizes[num++] = tail;
    if (run->validation != NULL)
        num_evaluation = hpct_evaluate_batch_sizes(run->context, run->validation,
                                                   run->evaluation_batch, evaluation);
    if (run->validation != NULL && num_evaluation == 0)
        evaluation[num_evaluation++] = 1; /* more ranks than samples; all build the same */
    hpct_strategy_plan plan = {
        .context = run->context,
        .model = run->model,
        .batch_sizes = sizes,
        .num_batch_sizes = num,
        .evaluation_sizes = evaluation,
        .num_evaluation_sizes = num_evaluation,
        .options = &run->choice.options,
        .dense_targets = hpct_augment_mixes(&run->train->options),
        .timeline = run->timeline,
        /* a log has the sums of each step, a checkpoint those of the epoch so far */
        .late_sums = run->options.log_dir == NULL && run->checkpoints == NULL,
    };
    HPCT_TRY(run->choice.ops->open(&run->strategy, &plan));
    if (hpct_context_rank(run->context) == 0)
        hpct_model_print_slow_ways(run->model, stderr);
    return HPCT_OK;
}

static hpct_batch batch_of_step(void *argument, int64_t number)
{
    hpct_fit_run *run = argument;
    int64_t steps = hpct_sampler_steps_per_epoch(run->sampler);
    int64_t step = hpct_fit_global_step(run, &run->begin) + number;
    return hpct_sampler_batch(run->sampler, step / steps, step % steps);
}

static hpct_status open_feed(hpct_fit_run *run)
{
    int full = hpct_sampler_full_count(run->sampler), tail = hpct_sampler_short_count(run->sampler);
    hpct_pipeline_options options = {
        .dataset = run->train,
        .batches = hpct_sampler_steps_per_epoch(run->sampler) * run->options.epochs -
                   hpct_fit_global_step(run, &run->begin),
        .largest = full > tail ? full : tail,
        .training = true,
        .seed = run->options.seed,
        .threads = hpct_cpu_threads(),
        .batch = batch_of_step,
        .from = run,
    };
    return hpct_context_agree(run->context, hpct_feed_open(&run->feed, run->strategy->model,
                                                           &options, 0, run->train->size));
}

/* A run that is continued may be complete. */
static bool has_work(const hpct_fit_run *run)
{
    return run->begin.epoch < run->options.epochs && !hpct_control_is_over(&run->control);
}

static hpct_status open_pace(hpct_fit_run *run)
{
    const hpct_strategy_ops *ops = run->strategy->ops;
    hpct_pace_options options = {
        .model = run->strategy->model,
        .log_dir = run->options.log_dir,
        .continues = run->history != NULL && hpct_history_continues(run->history),
        .speaks = hpct_context_rank(run->context) == 0,
        .waits_apart = !ops->in_pieces && !run->strategy->whole_steps,
    };
    return hpct_pace_open(&run->pace, run->context, &options);
}

static hpct_status open_tally(hpct_fit_run *run)
{
    const hpct_fit_options *o = &run->options;
    if ((o->metrics != 0 || o->confusion_matrix != NULL) && run->validation == NULL)
        return hpct_fail(HPCT_ERR_USAGE,
                         "--metrics and --confusion-matrix are of validation data: they need "
                         "--validation-data or --validation-split");
    return hpct_evaluate_open_tally(&run->tally, run->model, o->metrics,
                                    o->confusion_matrix != NULL);
}

/* Describes the run, once the ranks have agreed on it. */
static hpct_status compare_ranks(hpct_fit_run *run)
{
    hpct_identity_of of = {.model = run->model,
                           .train = run->train,
                           .validation = run->validation,
                           .fit = &run->options,
                           .global_batch = run->global_batch,
                           .steps = count_steps_per_epoch(run)};
    HPCT_TRY(hpct_identity_agree(run->context, &of));
    return hpct_context_agree(run->context, hpct_identity_describe(&run->identity, &of));
}

/* Loads what a continued run begins with. Another number of epochs has changed the learning rate.
 */
static hpct_status attach_checkpoints(hpct_fit_run *run)
{
    if (run->checkpoints == NULL)
        return HPCT_OK;
    HPCT_TRY(hpct_checkpoints_attach(run->checkpoints, run->strategy));
    bool continued = run->begin.epoch > run->options.initial_epoch || run->begin.step > 0;
    if (continued && has_work(run) && hpct_results_rate_spans(run->model) &&
        run->options.verbose != 0 && hpct_context_rank(run->context) == 0)
        printf("the learning rate goes on at %.4g: --schedule spans all %d epochs\n",
               hpct_model_learning_rate(run->strategy->model), run->options.epochs);
    return HPCT_OK;
}

static hpct_status prepare(hpct_fit_run *run)
{
    hpct_status status = check_options(run->context, &run->options, &run->global_batch);
    if (run->options.epochs == 0)
        run->options.epochs = 1;
    if (status == HPCT_OK)
        status = hpct_fit_check_data(run->model, run->train, run->validation);
    if (status == HPCT_OK)
        status = hpct_best_monitor(&run->monitor, &run->options,
                                   hpct_metrics_chosen(&run->options, run->model));
    if (status == HPCT_OK)
        status = open_tally(run);
    if (status == HPCT_OK && hpct_context_rank(run->context) == 0)
        status = hpct_results_try_fit(&run->options, run->model);
    HPCT_TRY(hpct_context_agree(run->context, status));
    HPCT_TRY(compare_ranks(run));
    HPCT_TRY(hpct_fit_open_control(run)); /* checks options, so before nodes and trials */
    HPCT_TRY(hpct_context_agree(run->context, check_accumulation(run)));
    HPCT_TRY(hpct_threads_set(run->context));
    if (run->options.check && !run->again)
        HPCT_TRY(hpct_check_nodes(run->context, run->options.verbose != 0 ? stdout : NULL, NULL));
    HPCT_TRY(choose_strategy(run));
    HPCT_TRY(admit(run));
    HPCT_TRY(hpct_context_agree(run->context, allocate(run)));
    HPCT_TRY(hpct_fit_open_checkpoints(run));
    HPCT_TRY(hpct_fit_recall_control(run));
    HPCT_TRY(hpct_context_agree(run->context, open_history(run)));
    HPCT_TRY(hpct_context_agree(run->context, hpct_fit_open_board(run)));
    HPCT_TRY(hpct_timeline_open(&run->timeline, run->context, run->options.timeline));
    HPCT_TRY(open_strategy(run));
    HPCT_TRY(attach_checkpoints(run));
    HPCT_TRY(open_pace(run));
    HPCT_TRY(hpct_context_agree(run->context, hpct_fit_open_run_file(run)));
    return has_work(run) ? open_feed(run) : HPCT_OK;
}

/* ---- training ---- */

static hpct_metrics mean_of(const hpct_fit_run *run, const hpct_fit_sums *sums)
{
    return hpct_metrics_of(run->model, sums->loss, sums->correct, sums->in_top_k, sums->samples);
}

/* Replaces a failed input. If ranks' steps must be equal, the rank's number of samples, of any
 * content: the whole batch, for collectives within forward, or the slice, for a recording. Else no
 * samples. */
static hpct_input stand_in(const hpct_fit_run *run, int64_t step)
{
    int64_t global = hpct_sampler_global_count(run->sampler, step), first;
    if (!run->choice.ops->whole_batch && !run->strategy->whole_steps)
        return (hpct_input){.global_count = (int) global};
    return (hpct_input){.pixels = hpct_model_input(run->strategy->model),
                        .labels = hpct_model_labels(run->strategy->model),
                        .count = (int) hpct_slice(global, slice_rank(run), slice_size(run), &first),
                        .global_count = (int) global};
}

/* Of fp16: a step whose gradients are infinite is left out, and the scale is lowered. */
static bool has_loss_scale(const hpct_fit_run *run)
{
    return hpct_model_precision(run->model) == HPCT_FP16;
}

static void note_parts(hpct_fit_run *run, double step, double input)
{
    const hpct_step_times *times = &run->strategy->times;
    const double parts[HPCT_PACE_PARTS] = {
        [HPCT_PACE_STEP] = step,
        [HPCT_PACE_INPUT] = input,
        [HPCT_PACE_FORWARD] = times->forward,
        [HPCT_PACE_BACKWARD] = times->backward,
        [HPCT_PACE_WAIT] = times->wait,
        [HPCT_PACE_UPDATE] = times->update,
    };
    memcpy(run->parts, parts, sizeof parts);
}

/* One step; adds to the epoch's sums. After an input error the rank still takes part, without
 * samples, so that all ranks learn of the error and end together. */
static hpct_status train_step(hpct_fit_run *run, int epoch, int64_t step, hpct_fit_sums *sums)
{
    double began = hpct_process_clock();
    hpct_input input;
    hpct_timeline_step(run->timeline);
    double asked = hpct_timeline_now(run->timeline);
    hpct_status fetched = run->input_failed, status;
    if (fetched == HPCT_OK) /* else the others have not been informed yet */
        fetched = run->input_failed = hpct_feed_next(run->feed, &input);
    double waited = hpct_process_clock() - began;
    hpct_timeline_add(run->timeline, HPCT_TIMELINE_INPUT, 0, asked);
    if (fetched != HPCT_OK && hpct_context_size(run->context) == 1)
        return fetched;
    if (fetched != HPCT_OK)
        input = stand_in(run, step);
    int64_t first;
    hpct_slice(input.global_count, slice_rank(run), slice_size(run), &first);
    hpct_model_set_position(run->strategy->model, run->options.seed,
                            hpct_fit_global_step(run, &run->begin) + run->steps_done, first);
    hpct_fit_show_gradients(run, epoch, step + 1 == sums->planned);
    int signal = hpct_stop_signal();
    hpct_step_sums step_sums = {.interrupted = signal == SIGINT,
                                .terminated = signal != 0 && signal != SIGINT,
                                .failed = fetched != HPCT_OK,
                                .last = step + 1 == sums->planned ||
                                        (signal != 0 && hpct_context_size(run->context) == 1)};
    status = hpct_strategy_step(run->strategy, input.count, input.global_count, &step_sums);
    if (status == HPCT_OK && step_sums.failed > 0)
        status = hpct_context_agree(run->context, fetched);
    if (status != HPCT_OK)
        return status;
    double ended = hpct_process_clock();
    if (run->steps_done > 0)
        run->step_times[(run->steps_done - 1) % run->num_step_times] = ended - began;
    note_parts(run, ended - began, waited);
    run->steps_done++;
    run->samples_done += input.global_count;
    sums->loss += step_sums.loss;
    sums->correct += step_sums.correct;
    sums->in_top_k += step_sums.in_top_k;
    sums->samples += step_sums.samples;
    sums->steps++;
    if (++sums->timed == 1)
        sums->first_step_ended = ended;
    if (step_sums.interrupted > 0 || step_sums.terminated > 0)
        run->signal = step_sums.terminated > 0 ? SIGTERM : SIGINT;
    if (step_sums.samples == 0)
        return HPCT_OK;
    hpct_metrics one = hpct_metrics_of(run->model, step_sums.loss, step_sums.correct,
                                       step_sums.in_top_k, step_sums.samples);
    hpct_results_note_loss(&run->end, one.loss, sums->loss / (double) sums->samples);
    if (!isfinite(one.loss) && !has_loss_scale(run)) /* no later step would be better */
        status = hpct_fit_note_nan(run, input.count, input.global_count);
    if (run->history != NULL)
        hpct_history_step(run->history, epoch + 1, step + 1, &one);
    return status;
}

/* Seconds per step, without the epoch's first if there are others. */
static double step_seconds(const hpct_fit_sums *sums, double now)
{
    if (sums->timed < 2)
        return now - sums->began;
    return (now - sums->first_step_ended) / (double) (sums->timed - 1);
}

/* Agrees on the signal among ranks; first on input errors, of which other ranks may not know
 * yet. */
static hpct_status name_signal(hpct_fit_run *run)
{
    double signal = hpct_stop_signal();
    if (signal == HPCT_STOP_CALLBACK)
        signal = LESS_THAN_SIGNALS;
    HPCT_TRY(hpct_context_agree(run->context, run->input_failed));
    HPCT_TRY(hpct_largest(run->context, &signal, 1));
    if (signal > 0)
        run->signal = (int) signal; /* 0: only a callback's wish */
    return HPCT_OK;
}

static void say_diverged(const hpct_fit_run *run)
{
    if (!run->end.diverged && run->progress.verbose != 0)
        puts("training has diverged: the loss is not finite or 100 times that of step 1");
}

/* An error of the log is printed now and retried; it is reported again at the end. */
static bool note_epoch(hpct_fit_run *run, int epoch, const hpct_fit_sums *sums, double seconds)
{
    bool diverged = hpct_results_diverged(&run->end);
    bool good = !diverged && isfinite(run->result.train.loss);
    hpct_status status = HPCT_OK;
    hpct_fit_note_board(run, epoch, sums, seconds, good);
    if (run->history != NULL)
        status =
            hpct_history_epoch(run->history, epoch, &run->result.train, &run->result.validation,
                               hpct_model_last_learning_rate(run->model), good);
    if (status != HPCT_OK && run->progress.verbose != 0)
        printf("%s; it is tried again\n", hpct_last_error());
    if (diverged)
        say_diverged(run);
    run->end.diverged = diverged;
    fflush(stdout);
    return good;
}

static void heed_deadline(hpct_fit_run *run, int epoch, int64_t step, const hpct_fit_sums *sums,
                          double seconds)
{
    hpct_deadline_heed(
        &run->deadline,
        &(hpct_deadline_place){.epoch = epoch,
                               .step = step,
                               .timed = sums->timed,
                               .epoch_ended = step + 1 == sums->planned,
                               .seconds = seconds,
                               .evaluation = run->evaluation_seconds,
                               .save_seconds = hpct_checkpoints_seconds(run->checkpoints)});
}

static hpct_status train_and_call(hpct_fit_run *run, int epoch, int64_t step, hpct_fit_sums *sums)
{
    if (!run->control.has_calls)
        return train_step(run, epoch, step, sums);
    hpct_metrics before = mean_of(run, sums);
    HPCT_TRY(hpct_fit_call_back(run, HPCT_CONTROL_BATCH_BEGIN, epoch, step, &before));
    HPCT_TRY(train_step(run, epoch, step, sums));
    hpct_metrics after = mean_of(run, sums);
    return hpct_fit_call_back(run, HPCT_CONTROL_BATCH_END, epoch, step, &after);
}

/* A callback's wish to end is told as a signal is, and is none. */
static hpct_status end_by_signal(hpct_fit_run *run, int epoch)
{
    run->signal = 0;
    HPCT_TRY(name_signal(run));
    if (run->signal == 0) {
        run->result.stopped_epoch = epoch + 1;
        run->control.notes.called = run->place.watch.called = true;
    }
    return HPCT_OK;
}

static hpct_status train_epoch(hpct_fit_run *run, int epoch)
{
    int64_t steps = hpct_sampler_steps_per_epoch(run->sampler);
    if (steps > run->max_steps - run->steps_done)
        steps = run->max_steps - run->steps_done;
    hpct_fit_sums sums = hpct_fit_begin_epoch(run, epoch, steps);
    hpct_metrics *train = &run->result.train, *validation = &run->result.validation;
    hpct_status status = HPCT_OK;
    hpct_progress_begin(&run->progress, epoch + 1, run->options.epochs, steps);
    HPCT_TRY(hpct_fit_control_epoch(run, epoch));
    for (int64_t step = sums.steps; step < steps && run->signal == 0 && !run->nan; step++) {
        status = train_and_call(run, epoch, step, &sums);
        if (status == HPCT_OK)
            status = hpct_fit_step_ended(run, epoch, step, &sums);
        if (status != HPCT_OK)
            return status;
        bool known;
        HPCT_TRY(
            hpct_pace_step(run->pace, run->parts, epoch + 1, step + 1, step + 1 == steps, &known));
        double now = hpct_process_clock();
        heed_deadline(run, epoch, step, &sums, step_seconds(&sums, now));
        hpct_fit_show_live(run, epoch, &sums, run->end.last_loss, step_seconds(&sums, now));
        if (known)
            hpct_fit_show_ranks(run);
        if (run->progress.verbose != 0 && sums.samples > 0) {
            *train = mean_of(run, &sums);
            hpct_progress_step(&run->progress, sums.steps, now - sums.began,
                               step_seconds(&sums, now), train);
        }
    }
    if (run->signal != 0)
        HPCT_TRY(end_by_signal(run, epoch));
    double ended = hpct_process_clock();
    bool stopped = sums.steps < steps || run->nan, validated = run->validation != NULL && !stopped;
    *train = mean_of(run, &sums);
    if (validated)
        status = run->strategy->ops->gather(run->strategy);
    if (validated && status == HPCT_OK)
        status = hpct_evaluate_built(run->context, run->model, run->strategy, run->validation,
                                     run->evaluation_batch, run->tally, validation);
    if (status != HPCT_OK)
        return status;
    run->evaluation_seconds = hpct_process_clock() - ended;
    hpct_fit_show_live(run, epoch, &sums, NAN, step_seconds(&sums, ended));
    hpct_progress_end(&run->progress, sums.steps, hpct_process_clock() - sums.began,
                      step_seconds(&sums, ended), train, validated ? validation : NULL);
    if (run->nan)
        say_diverged(run);
    if (stopped)
        return HPCT_OK;
    run->epoch_seconds[run->epochs_done++] = ended - sums.began;
    bool gathered = validated;
    HPCT_TRY(hpct_fit_note_histograms(run, epoch, &gathered));
    if (note_epoch(run, epoch, &sums, step_seconds(&sums, ended)))
        hpct_fit_settle(run);
    HPCT_TRY(hpct_fit_note_best(run, gathered));
    HPCT_TRY(hpct_fit_control_epoch_ended(run, epoch, gathered));
    return hpct_fit_epoch_ended(run, epoch);
}

/* ---- at the end ---- */

/* After an error no weights are saved: an earlier run's file stays. */
static hpct_status save_weights(hpct_fit_run *run)
{
    hpct_results_end *end = &run->end;
    const char *path = run->options.save_weights;
    hpct_status status = HPCT_OK;
    if (path != NULL || run->strategy->model != run->model)
        status = run->strategy->ops->gather(run->strategy);
    if (status == HPCT_OK)
        status = hpct_fit_restore_best(run);
    if (path == NULL || status != HPCT_OK)
        return status;
    /* No timeout: ending now would lose the weights. */
    hpct_waits before = hpct_headway_enter(HPCT_WAITS_UNSEEN);
    if (hpct_context_rank(run->context) == 0)
        status = hpct_results_save(run->model, path, end);
    hpct_headway_enter(before);
    return hpct_context_agree(run->context, status);
}

/* Of the last epoch that was evaluated; a run without one keeps an earlier file. */
static hpct_status write_matrix(const hpct_fit_run *run)
{
    const char *path = run->options.confusion_matrix;
    if (path == NULL || run->epochs_done == 0)
        return HPCT_OK;
    return hpct_context_agree(run->context, hpct_context_rank(run->context) == 0
                                                ? hpct_tally_write(run->tally, run->train->classes,
                                                                   run->train->num_classes, path)
                                                : HPCT_OK);
}

/* Broadcasts rank 0's results, so that all ranks return the same message. */
static hpct_status tell(hpct_fit_run *run)
{
    struct {
        char where[HPCT_RESULTS_WHERE];
        double first_loss, last_loss;
        int diverged;
    } known = {.first_loss = run->end.first_loss,
               .last_loss = run->end.last_loss,
               .diverged = run->end.diverged};
    hpct_comm *comm = hpct_context_comm(run->context);
    memcpy(known.where, run->end.where, sizeof known.where);
    HPCT_TRY(comm->ops->broadcast(comm, &known, sizeof known, 0));
    memcpy(run->end.where, known.where, sizeof known.where);
    run->end.first_loss = known.first_loss;
    run->end.last_loss = known.last_loss;
    run->end.diverged = known.diverged != 0;
    return hpct_context_agree(run->context, hpct_results_tell(&run->end));
}

/* Whether the next steps should be done all the same, as all ranks know of it and can still
 * communicate. */
static bool goes_on(const hpct_fit_run *run, hpct_status status)
{
    return status == HPCT_OK ||
           (status != HPCT_ERR_PEER && hpct_context_all_know(run->context, status));
}

/* Records an error. */
static bool went(hpct_fit_run *run, hpct_status status)
{
    hpct_results_note(&run->end, status);
    return goes_on(run, status);
}

/* The last checkpoint, first: saving weights averages the moving statistics. One that cannot be
 * written says nothing against the weights. */
static hpct_status save_checkpoint_and_weights(hpct_fit_run *run)
{
    hpct_status last = HPCT_OK;
    if (run->checkpoints != NULL)
        last = hpct_context_agree(run->context, hpct_fit_save_last(run));
    if (last == HPCT_OK || !goes_on(run, last))
        return last == HPCT_OK ? save_weights(run) : last;
    char *why = hpct_error_keep();
    hpct_status status = save_weights(run);
    char *later = hpct_error_keep();
    hpct_error_restore(why);
    hpct_results_note(&run->end, last);
    hpct_error_restore(later);
    return status;
}

/* `failed`: the status that ended training. Nothing is saved after an error that other ranks do not
 * know of, or after an aborted step. */
static hpct_status finish(hpct_fit_run *run, hpct_status failed)
{
    bool whole = failed == HPCT_OK;
    if (!whole && (failed == HPCT_ERR_INTERNAL || run->steps_done == 0 || !went(run, failed)))
        return failed;
    run->result.seconds = hpct_process_clock() - run->began;
    run->result.steps = run->steps_done;
    run->result.signal = run->signal;
    run->end.diverged = hpct_results_diverged(&run->end);
    run->end.signal = run->signal;
    run->end.steps = hpct_fit_global_step(run, &run->begin) + run->steps_done;
    run->end.epoch = (int) run->begin.epoch + run->epochs_done + 1;
    run->end.epochs = run->options.epochs;
    hpct_status status = save_checkpoint_and_weights(run);
    if (went(run, status))
        status = hpct_fit_best_saved(run);
    if (went(run, status) && whole)
        status = write_matrix(run);
    if (went(run, status) && whole &&
        (run->options.summary_json != NULL || run->options.log_dir != NULL))
        status = hpct_fit_write_summary(run);
    if (went(run, status) && whole && run->steps_done > 0)
        status = hpct_timeline_write(run->timeline, run->context);
    if (went(run, status) && run->options.log_dir != NULL) {
        status = hpct_context_agree(run->context, hpct_history_close(run->history));
        run->history = NULL;
    }
    if (went(run, status) && run->options.log_dir != NULL)
        status = hpct_fit_close_board(run);
    if (!went(run, status))
        return status;
    HPCT_TRY(tell(run));
    if (hpct_context_rank(run->context) == 0 && run->options.verbose != 0)
        hpct_results_say_written(&run->options, run->model, hpct_control_is_over(&run->control),
                                 stdout);
    return HPCT_OK;
}

static void run_free(hpct_fit_run *run)
{
    hpct_history_close(run->history);
    hpct_live_close(run->live, HPCT_LIVE_FAILED);
    hpct_board_close(run->board, false);
    hpct_checkpoints_close(run->checkpoints);
    hpct_deadline_close(&run->deadline);
    hpct_control_close(&run->control);
    hpct_run_file_close(run->file);
    hpct_pace_close(run->pace);
    hpct_kept_weights_free(&run->kept);
    hpct_tally_close(run->tally);
    hpct_feed_close(run->feed); /* uses the strategy's model */
    if (run->strategy != NULL)
        run->strategy->ops->close(run->strategy);
    hpct_sampler_free(run->sampler);
    hpct_timeline_close(run->timeline);
    json_decref(run->identity);
    free(run->step_times);
    free(run->epoch_seconds);
    free(run->end.why);
}

static void say_augmented_on_host(const hpct_fit_run *run)
{
    if (hpct_context_rank(run->context) == 0 && run->progress.verbose == 2 &&
        hpct_model_on_device(run->model) && hpct_augment_is_deep(&run->train->options))
        puts("--augment: pictures are prepared on the host, not on the GPU, which only flips and "
             "crops");
}

/* A whole run, or, if it goes back, the part until then: *path is the checkpoint. */
static hpct_status run_once(hpct_fit_run *run, char **path)
{
    bool back = false;
    hpct_status status = prepare(run);
    if (status != HPCT_OK)
        return status;
    hpct_metric_choice choice = hpct_metrics_chosen(&run->options, run->model);
    hpct_progress_init(&run->progress, stdout,
                       hpct_context_rank(run->context) == 0 ? run->options.verbose : 0, &choice);
    say_augmented_on_host(run);
    bool leads = hpct_context_rank(run->context) == 0;
    run->deadline = (hpct_deadline){.speaks = leads && run->options.verbose != 0,
                                    .saves = leads && run->checkpoints != NULL,
                                    .epochs = run->options.epochs,
                                    .steps_per_epoch = hpct_sampler_steps_per_epoch(run->sampler)};
    status = hpct_deadline_open(&run->deadline);
    if (status == HPCT_OK && has_work(run))
        status = hpct_fit_open_live(run);
    HPCT_TRY(hpct_context_agree(run->context, status));
    hpct_stop_begin();
    run->start_seconds = hpct_process_age();
    run->began = hpct_process_clock();
    for (int epoch = (int) run->begin.epoch;
         has_work(run) && epoch < run->options.epochs && run->signal == 0 && !run->nan &&
         run->result.stopped_epoch == 0 && status == HPCT_OK;
         epoch++)
        status = train_epoch(run, epoch);
    if (status == HPCT_OK)
        status = hpct_fit_goes_back(run, &back, path);
    if (!back)
        status = finish(run, status);
    if (status != HPCT_OK && status != HPCT_ERR_STOPPED)
        hpct_fit_fail_run_file(run);
    hpct_fit_close_live(run, status, back);
    hpct_stop_end();
    return status;
}

static hpct_status run_all(const hpct_fit_run *first, hpct_fit_result *result)
{
    char *path = NULL;
    hpct_fit_run run = *first;
    hpct_status status = run_once(&run, &path);
    if (path != NULL) {
        bool settled = run.settled;
        run_free(&run);
        run = *first;
        run.options.resume = path;
        run.again = true;
        status = run_once(&run, NULL);
        if (status != HPCT_OK && status != HPCT_ERR_STOPPED)
            hpct_fit_restate_failed(&run, settled);
    }
    if (result != NULL)
        *result = run.result;
    run_free(&run);
    free(path);
    return status;
}

hpct_status hpct_fit(hpct_context *context, hpct_model *model, const hpct_dataset *train,
                     const hpct_fit_options *options, hpct_fit_result *result)
{
    return hpct_fit_until(context, model, train, options, INT64_MAX, result);
}

hpct_status hpct_fit_until(hpct_context *context, hpct_model *model, const hpct_dataset *train,
                           const hpct_fit_options *options, int64_t max_steps,
                           hpct_fit_result *result)
{
    const hpct_fit_run run = {
        .context = context,
        .model = model,
        .train = train,
        .options = *options,
        .max_steps = max_steps,
        .validation = options->validation,
        .result = {.train = HPCT_NO_METRICS, .validation = HPCT_NO_METRICS},
    };
    const hpct_strategy_ops *ops;
    hpct_status status = hpct_strategy_find(&ops, &options->strategy);
    if (status == HPCT_OK)
        status = hpct_strategy_check_device(&options->strategy, model);
    if (status == HPCT_OK)
        status = hpct_targets_begin(model, train, options);
    if (status == HPCT_OK && ops->fit != NULL)
        status = check_apart(options);
    if (status == HPCT_OK && ops->fit != NULL)
        status = hpct_targets_check_apart(train);
    if (status == HPCT_OK && ops->fit != NULL)
        return ops->fit(context, model, train, options, max_steps, result);
    hpct_waits before = hpct_headway_enter(HPCT_WAITS_FOR_NOBODY);
    status = hpct_context_agree(context, status);
    if (status == HPCT_OK)
        status = run_all(&run, result);
    hpct_headway_enter(before);
    return status;
}
