/* Sums of steps and epochs, progress, and results. */
#include "agent/ps/leader.h"

#include "agent/data/dataset.h"
#include "agent/ps/live.h"
#include "agent/ps/saving.h"
#include "agent/results/board.h"
#include "agent/results/history.h"
#include "agent/results/progress.h"
#include "agent/results/results.h"
#include "agent/results/run_file.h"
#include "agent/results/summary.h"
#include "agent/train/control.h"
#include "agent/train/deadline.h"
#include "agent/train/fit_run.h"
#include "agent/train/means.h"
#include "base/process.h"
#include "base/status.h"
#include "nn/run/step.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_STEP_TIMES ((int64_t) 1 << 20)

/* Sums of an epoch's steps, or of an evaluation. */
typedef struct sums {
    double loss, correct, in_top_k;
    int64_t samples;
} sums;

struct hpct_ps_leader {
    hpct_ps_run *run;
    hpct_ps_schedule *schedule;
    hpct_progress progress;
    hpct_history *history;
    hpct_board *board; /* NULL: no log_dir */
    sums step, epoch, evaluation;
    double began, epoch_began, first_step_ended, last_step_ended; /* clock; 0: not yet */
    double epoch_ended, start_seconds;
    double *epoch_seconds; /* [epochs] */
    double *step_times;    /* ring buffer */
    int64_t num_step_times, samples_done;
    hpct_fit_result result;
    hpct_ps_summary summary;
    int signal;
    hpct_results_end end;
    hpct_ps_saving *saving;  /* NULL: no checkpoints */
    hpct_place begin, place; /* place: after the last step or epoch */
    bool continues, placed;  /* placed: there is one in this run */
    int64_t timed;           /* steps of this epoch in this run */
    double evaluation_seconds;
    hpct_deadline deadline;
    hpct_control control;
    hpct_run_file *file; /* NULL: no log folder */
    bool settled, told;  /* that has this run's; and its end */
    hpct_ps_live *live;  /* NULL: nothing is left to train */
    double rate;         /* of this epoch's steps; 0: the schedule's */
};

static hpct_metrics mean(const sums *s)
{
    double n = (double) s->samples;
    return (hpct_metrics){
        .loss = s->loss / n, .accuracy = s->correct / n, .top_k_accuracy = s->in_top_k / n};
}

static void add(sums *s, const hpct_ps_message *message, int64_t samples)
{
    s->loss += message->loss;
    s->correct += message->correct;
    s->in_top_k += message->in_top_k;
    s->samples += samples;
}

static int64_t steps_of_epoch(const hpct_ps_leader *l, int epoch)
{
    const hpct_ps_schedule_options *s = &l->run->schedule;
    int64_t before = (int64_t) (epoch - l->run->options.initial_epoch) * s->steps_per_epoch;
    int64_t left = s->max_steps - before;
    return left < s->steps_per_epoch ? left : s->steps_per_epoch;
}

/* From the epoch that a checkpoint is of. */
static void take_sums(hpct_ps_leader *l)
{
    l->epoch = (sums){.loss = l->begin.loss,
                      .correct = l->begin.correct,
                      .in_top_k = l->begin.in_top_k,
                      .samples = l->begin.samples};
    if (l->epoch.samples > 0)
        l->result.train = mean(&l->epoch);
}

/* Epochs trained in this run and in those that it continues. */
static int epochs_before(const hpct_ps_leader *l)
{
    return l->run->options.initial_epoch + hpct_ps_schedule_trained(l->schedule);
}

/* A checkpoint of another strategy may be of a run that went back with half the rate. */
static double rate_of_epoch(const hpct_ps_leader *l, int epoch)
{
    double rate = hpct_control_rate(&l->control, epoch);
    if (rate > 0 || l->begin.halvings == 0 || hpct_ps_run_is_scheduled(l->run))
        return rate;
    return ldexp(hpct_model_optimizer(l->run->model)->learning_rate, -l->begin.halvings);
}

/* Of the epoch's last step, for its row. */
static double rate_of_row(const hpct_ps_leader *l)
{
    return l->rate > 0 ? l->rate : hpct_model_last_learning_rate(l->run->model);
}

/* The one to be shown. */
static double rate_in_use(const hpct_ps_leader *l)
{
    return l->rate > 0 ? l->rate : hpct_model_learning_rate(l->run->model);
}

double hpct_ps_leader_rate(const hpct_ps_leader *leader)
{
    return leader->rate;
}

static void begin_epoch(hpct_ps_leader *l, int epoch)
{
    l->rate = rate_of_epoch(l, epoch);
    l->epoch = (sums){0};
    l->timed = 0;
    l->epoch_began = hpct_process_clock();
    hpct_progress_begin(&l->progress, epoch + 1, l->run->options.epochs, steps_of_epoch(l, epoch));
}

/* From a checkpoint the run goes on as with --initial-epoch, from a step of the epoch on. */
static hpct_status open_saving(hpct_ps_leader *l)
{
    hpct_ps_run *run = l->run;
    HPCT_TRY(hpct_ps_saving_open(&l->saving, run, &l->begin, &l->continues));
    HPCT_TRY(hpct_control_open(&l->control, NULL, &run->options,
                               hpct_metrics_chosen(&run->options, run->model),
                               hpct_ps_run_is_scheduled(run)));
    hpct_control_recall(&l->control, &l->begin.watch);
    l->control.halvings = l->begin.halvings;
    if (l->continues) {
        run->options.initial_epoch = (int) l->begin.epoch;
        run->schedule.epochs = run->options.epochs - (int) l->begin.epoch;
        run->schedule.first_step = l->begin.step;
    }
    if (run->schedule.epochs < 0 || hpct_control_is_over(&l->control))
        run->schedule.epochs = 0;
    l->end.has_loss = l->begin.has_loss;
    l->end.first_loss = l->begin.first_loss;
    l->end.last_loss = l->begin.last_loss;
    l->end.mean_loss = l->begin.mean_loss;
    return HPCT_OK;
}

static hpct_status open_run_file(hpct_ps_leader *l)
{
    const hpct_ps_run *run = l->run;
    hpct_run_facts facts = {
        .log_dir = run->options.log_dir,
        .host = hpct_context_node(run->context),
        .job = getenv("SLURM_JOB_ID"),
        .data = run->train->source != NULL ? run->train->source : run->train->path,
        .checkpoint_dir = run->options.checkpoint_dir,
        .nodes = hpct_ps_live_nodes(l->live),
        .ranks = run->workers,
        .samples = (int64_t) run->train->size,
        .steps_per_epoch = run->schedule.steps_per_epoch,
        .epochs = run->options.epochs,
        .begin_epoch = (int) l->begin.epoch,
        .begin_step = l->begin.step,
        .continues = l->continues,
        .identity = run->identity,
    };
    hpct_fit_add_versions(&facts);
    return facts.log_dir != NULL ? hpct_run_file_open(&l->file, &facts) : HPCT_OK;
}

/* Where nothing is left to train the files of the run that has trained stay as they are. */
static hpct_status open_board(hpct_ps_leader *l)
{
    const hpct_ps_run *run = l->run;
    const hpct_optimizer *optimizer = hpct_model_optimizer(run->model);
    if (l->begin.epoch >= run->options.epochs)
        return HPCT_OK;
    return hpct_board_open(&l->board, run->options.log_dir,
                           &(hpct_board_run){
                               .model = run->model,
                               .strategy = run->options.strategy.name,
                               .optimizer = hpct_optimizer_name(optimizer->kind),
                               .learning_rate = optimizer->learning_rate,
                               .workers = run->workers,
                               .replicas = 1,
                               .global_batch = run->global_batch,
                               .epochs = run->options.epochs,
                               .steps_per_epoch = run->schedule.steps_per_epoch,
                               .samples = run->train->size,
                               .seed = run->options.seed,
                               .choice = hpct_metrics_chosen(&run->options, run->model),
                               .epoch = l->begin.epoch,
                               .continues = hpct_history_continues(l->history),
                           });
}

static hpct_status open_logs(hpct_ps_leader *l)
{
    const hpct_fit_options *o = &l->run->options;
    if (o->log_dir == NULL)
        return HPCT_OK;
    hpct_metric_choice choice = hpct_metrics_chosen(o, l->run->model);
    HPCT_TRY(hpct_history_open(&l->history, o->log_dir, &choice, &l->begin.logs));
    return open_board(l);
}

static hpct_status open_leader(hpct_ps_leader *l)
{
    hpct_ps_run *run = l->run;
    const hpct_fit_options *o = &run->options;
    HPCT_TRY(open_saving(l));
    l->epoch_seconds = calloc((size_t) run->schedule.epochs + 1, sizeof *l->epoch_seconds);
    l->step_times = calloc((size_t) l->num_step_times, sizeof *l->step_times);
    if (l->epoch_seconds == NULL || l->step_times == NULL)
        return hpct_fail_memory((size_t) l->num_step_times * sizeof *l->step_times);
    HPCT_TRY(hpct_ps_schedule_new(&l->schedule, &run->schedule));
    l->deadline = (hpct_deadline){.speaks = o->verbose != 0,
                                  .saves = l->saving != NULL,
                                  .epochs = o->epochs,
                                  .steps_per_epoch = run->schedule.steps_per_epoch};
    HPCT_TRY(hpct_deadline_open(&l->deadline));
    HPCT_TRY(open_logs(l));
    if (run->schedule.epochs > 0)
        HPCT_TRY(hpct_ps_live_open(&l->live, run,
                                   l->history != NULL && hpct_history_continues(l->history)));
    return open_run_file(l);
}

hpct_status hpct_ps_leader_new(hpct_ps_leader **out, hpct_ps_run *run)
{
    const hpct_fit_options *o = &run->options;
    hpct_ps_leader *l = calloc(1, sizeof *l);
    if (l == NULL)
        return hpct_fail_memory(sizeof *l);
    l->run = run;
    l->result = (hpct_fit_result){.train = HPCT_NO_METRICS, .validation = HPCT_NO_METRICS};
    l->num_step_times =
        run->schedule.max_steps < MAX_STEP_TIMES ? run->schedule.max_steps : MAX_STEP_TIMES;
    hpct_status status = open_leader(l);
    if (status != HPCT_OK) {
        char *told = hpct_error_keep();
        hpct_ps_leader_free(l);
        hpct_error_restore(told);
        return status;
    }
    l->summary.servers = run->servers;
    l->summary.synchronous = run->schedule.synchronous;
    l->summary.backup_workers = run->schedule.backups;
    l->summary.max_staleness = run->schedule.max_staleness;
    hpct_metric_choice choice = hpct_metrics_chosen(o, run->model);
    hpct_progress_init(&l->progress, stdout, o->verbose, &choice);
    *out = l;
    return HPCT_OK;
}

hpct_ps_schedule *hpct_ps_leader_schedule(hpct_ps_leader *leader)
{
    return leader->schedule;
}

void hpct_ps_leader_left(hpct_ps_leader *l, int worker, bool lost)
{
    l->summary.workers_lost += lost ? 1 : 0;
    hpct_ps_live_left(l->live, worker);
    hpct_ps_schedule_give_back(l->schedule, worker);
}

void hpct_ps_leader_stop(hpct_ps_leader *l, int signal)
{
    l->signal = signal;
    hpct_ps_schedule_stop(l->schedule);
}

/* ---- steps and epochs ---- */

/* Mean seconds of a step, without the epoch's first one if there are others. */
static double step_seconds(const hpct_ps_leader *l)
{
    if (l->timed < 2)
        return l->timed > 0 ? l->last_step_ended - l->epoch_began : 0;
    return (l->last_step_ended - l->first_step_ended) / (double) (l->timed - 1);
}

/* `epoch` is under way, with so many steps done. */
static void note_place(hpct_ps_leader *l, int epoch, int64_t steps)
{
    const hpct_results_end *end = &l->end;
    l->place = (hpct_place){.epoch = epoch,
                            .step = steps,
                            .has_loss = end->has_loss,
                            .first_loss = end->first_loss,
                            .last_loss = end->last_loss,
                            .mean_loss = end->mean_loss,
                            .logs = HPCT_HISTORY_NONE,
                            .best = l->begin.best,
                            .watch = l->control.notes,
                            .halvings = l->begin.halvings};
    if (steps > 0) {
        l->place.loss = l->epoch.loss;
        l->place.correct = l->epoch.correct;
        l->place.in_top_k = l->epoch.in_top_k;
        l->place.samples = l->epoch.samples;
        l->place.steps = steps;
    }
    l->placed = true;
    l->run->saved |=
        l->saving != NULL && !hpct_results_diverged(end); /* at the end, at the latest */
}

/* Seconds to the end of the last epoch, if steps and evaluations take as long as so far. */
static double seconds_left(const hpct_ps_leader *l, int epoch, int64_t steps, double step)
{
    const hpct_ps_schedule_options *s = &l->run->schedule;
    int epochs = l->run->options.epochs - epoch;
    double left = (double) (steps_of_epoch(l, epoch) - steps) +
                  (double) (epochs - 1) * (double) s->steps_per_epoch;
    return left * step + epochs * l->evaluation_seconds;
}

/* For status.json and --metrics-file; step_loss NaN: after an evaluation. */
static void show(hpct_ps_leader *l, int epoch, int64_t steps, double step_loss)
{
    double left = hpct_job_end_left(l->deadline.job_end);
    double step = l->timed > 0 ? step_seconds(l) : NAN; /* only the evaluation was left */
    hpct_live_state state = {
        .epoch = epoch + 1,
        .epochs = l->run->options.epochs,
        .step = steps,
        .steps = steps_of_epoch(l, epoch),
        .loss = l->result.train.loss,
        .accuracy = l->result.train.accuracy,
        .step_loss = step_loss,
        .val_loss = l->result.validation.loss,
        .val_accuracy = l->result.validation.accuracy,
        .learning_rate = rate_in_use(l),
        .step_ms = 1e3 * step,
        .images_per_second = l->run->global_batch / step,
        .seconds_left = seconds_left(l, epoch, steps, step),
        .job_ends = isfinite(left) ? (double) time(NULL) + left : NAN,
    };
    hpct_metric_choice choice = hpct_metrics_chosen(&l->run->options, l->run->model);
    hpct_live_add_metrics(&state, &choice, &l->result.train, &l->result.validation);
    hpct_ps_live_step(l->live, &state, hpct_process_clock());
}

/* `steps`: of this epoch. `epoch_ended`: by this one. */
static void end_step(hpct_ps_leader *l, int epoch, int64_t steps, bool epoch_ended)
{
    int64_t updates = hpct_ps_schedule_statistics(l->schedule)->updates;
    double now = hpct_process_clock();
    if (updates > 1)
        l->step_times[(updates - 2) % l->num_step_times] = now - l->last_step_ended;
    l->last_step_ended = now;
    if (++l->timed == 1)
        l->first_step_ended = now;
    l->samples_done += l->step.samples;
    l->epoch.loss += l->step.loss;
    l->epoch.correct += l->step.correct;
    l->epoch.in_top_k += l->step.in_top_k;
    l->epoch.samples += l->step.samples;
    l->result.train = mean(&l->epoch);
    hpct_metrics one = mean(&l->step);
    hpct_results_note_loss(&l->end, one.loss, l->result.train.loss);
    if (l->history != NULL)
        hpct_history_step(l->history, epoch + 1, steps, &one);
    l->step = (sums){0};
    note_place(l, epoch, steps);
    hpct_progress_step(&l->progress, steps, now - l->epoch_began, step_seconds(l),
                       &l->result.train);
    show(l, epoch, steps, one.loss);
    hpct_deadline_heed(&l->deadline,
                       &(hpct_deadline_place){.epoch = epoch,
                                              .step = steps - 1,
                                              .timed = l->timed,
                                              .epoch_ended = epoch_ended,
                                              .seconds = step_seconds(l),
                                              .evaluation = l->evaluation_seconds,
                                              .save_seconds = hpct_ps_saving_seconds(l->saving)});
}

bool hpct_ps_leader_continues(const hpct_ps_leader *leader)
{
    return leader->continues;
}

/* Diverged training is not saved: earlier checkpoints stay. */
bool hpct_ps_leader_saves(const hpct_ps_leader *leader)
{
    return leader->placed && hpct_ps_saving_due(leader->saving) &&
           hpct_ps_schedule_between(leader->schedule) && !hpct_results_diverged(&leader->end);
}

static hpct_status save(hpct_ps_leader *l, double waited, bool last)
{
    if (l->history != NULL)
        hpct_history_mark(l->history, &l->place.logs);
    hpct_board_mark(l->board);
    return hpct_ps_saving_save(l->saving, &l->place, waited, last);
}

hpct_status hpct_ps_leader_save(hpct_ps_leader *leader, double waited)
{
    return save(leader, waited, false);
}

/* ---- what is said of the run ---- */

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;
    return (x > y) - (x < y);
}

static double median_step_seconds(hpct_ps_leader *l, int64_t updates)
{
    int64_t count = updates - 1 < l->num_step_times ? updates - 1 : l->num_step_times;
    if (count < 1)
        return NAN;
    qsort(l->step_times, (size_t) count, sizeof *l->step_times, compare_doubles);
    return l->step_times[count / 2];
}

static hpct_summary describe(hpct_ps_leader *l)
{
    const hpct_ps_run *run = l->run;
    const hpct_ps_statistics *s = hpct_ps_schedule_statistics(l->schedule);
    int epochs = hpct_ps_schedule_trained(l->schedule);
    double step = median_step_seconds(l, s->updates), seconds = 0;
    for (int i = 0; i < epochs; i++)
        seconds += l->epoch_seconds[i];
    l->summary.gradients = s->gradients;
    l->summary.late = s->late;
    l->summary.given_again = s->given_again;
    l->summary.staleness_mean =
        s->gradients > 0 ? (double) s->staleness_sum / (double) s->gradients : NAN;
    l->summary.staleness_max = s->staleness_max;
    l->summary.held = s->held;
    return (hpct_summary){
        .model = hpct_model_name(run->model),
        .strategy = run->options.strategy.name,
        .device = "cpu",
        .precision = hpct_model_precision(run->model),
        .workers = run->workers,
        .replicas = 1,
        .threads = hpct_cpu_threads(),
        .global_batch = run->global_batch,
        .epochs = epochs,
        .steps = s->updates,
        .parameters = hpct_model_count_parameters(run->model),
        .seed = run->options.seed,
        .start_seconds = l->start_seconds,
        .train_seconds = l->result.seconds,
        .epoch_seconds = l->epoch_seconds,
        .train = l->result.train,
        .validation = l->result.validation,
        .choice = hpct_metrics_chosen(&run->options, run->model),
        .optimizer = hpct_optimizer_name(hpct_model_optimizer(run->model)->kind),
        .learning_rate = rate_in_use(l),
        .peak_rss_mb = hpct_process_peak_mb(),
        .bytes_sent_per_step =
            (int64_t) ((run->bounds[run->servers] + run->state_bounds[run->servers]) *
                       sizeof(float)),
        .signal = l->signal,
        .step_ms = 1e3 * step,
        .images_per_second = epochs > 0 && l->signal == 0 ? (double) l->samples_done / seconds
                                                          : (double) run->global_batch / step,
        .parameter_server = &l->summary,
    };
}

/* An earlier run's file stays until an epoch has ended well. */
static void settle(hpct_ps_leader *l)
{
    if (l->file == NULL || l->settled || hpct_results_diverged(&l->end))
        return;
    l->settled = true;
    hpct_ps_live_settle(l->live);
    hpct_summary summary = describe(l);
    if (hpct_run_file_write(l->file, &summary, "running", NULL) != HPCT_OK)
        fprintf(stderr, "hpc-train: %s; it is tried again at the end\n", hpct_last_error());
}

static void write_summaries(hpct_ps_leader *l)
{
    l->told = true;
    const char *path = l->run->options.summary_json;
    hpct_summary summary = describe(l);
    if (path != NULL)
        hpct_results_note(&l->end, hpct_results_write_summary(&summary, path, l->end.diverged));
    if (l->file != NULL)
        hpct_results_note(
            &l->end, hpct_run_file_end(l->file, &summary, &l->end, l->result.stopped_epoch > 0));
}

/* ---- epochs ---- */

/* Early stopping, and the learning rate of the next epoch. */
static void heed_control(hpct_ps_leader *l, int epoch)
{
    hpct_control_verdict verdict;
    if (hpct_control_epoch_ended(&l->control, epoch, &l->result.train, &l->result.validation,
                                 rate_in_use(l), &verdict) != HPCT_OK)
        return;
    if (verdict.rate > 0)
        l->rate = verdict.rate;
    if (!verdict.stop)
        return;
    l->result.stopped_epoch = epoch + 1;
    hpct_ps_schedule_stop(l->schedule);
}

/* Reported again at the end. */
static void say_retried(const hpct_ps_leader *l, hpct_status status)
{
    if (status != HPCT_OK && l->progress.verbose != 0)
        fprintf(l->progress.stream, "%s; it is tried again\n", hpct_last_error());
}

static hpct_status note_board(const hpct_ps_leader *l, int epoch, bool good)
{
    if (l->board == NULL)
        return HPCT_OK;
    return hpct_board_note(l->board,
                           &(hpct_board_epoch){
                               .epoch = epoch,
                               .train = &l->result.train,
                               .validation = &l->result.validation,
                               .learning_rate = rate_in_use(l),
                               .step_seconds = l->timed > 0 ? step_seconds(l) : NAN,
                               .samples_per_step = (double) l->epoch.samples /
                                                   (double) l->run->schedule.steps_per_epoch,
                               .good = good,
                           });
}

/* Ends an epoch, including its evaluation, if there is one. */
static void end_epoch(hpct_ps_leader *l, int epoch)
{
    bool validated = l->run->options.validation != NULL;
    bool good = !hpct_results_diverged(&l->end) && isfinite(l->result.train.loss);
    int64_t steps = l->run->schedule.steps_per_epoch;
    if (validated) {
        l->result.validation = mean(&l->evaluation);
        l->evaluation_seconds = hpct_process_clock() - fmax(l->epoch_began, l->last_step_ended);
    }
    l->evaluation = (sums){0};
    show(l, epoch, steps_of_epoch(l, epoch), NAN);
    hpct_progress_end(&l->progress, steps, hpct_process_clock() - l->epoch_began, step_seconds(l),
                      &l->result.train, validated ? &l->result.validation : NULL);
    if (l->history != NULL)
        say_retried(l, hpct_history_epoch(l->history, epoch, &l->result.train,
                                          &l->result.validation, rate_of_row(l), good));
    say_retried(l, note_board(l, epoch, good));
    settle(l);
    heed_control(l, epoch);
    note_place(l, epoch + 1, 0);
    if (!hpct_ps_schedule_ended(l->schedule))
        begin_epoch(l, epoch + 1);
}

/* What a checkpoint is of: an epoch under way, or one that has all steps and is not evaluated. */
static void begin_run(hpct_ps_leader *l)
{
    bool trained = hpct_ps_schedule_trained(l->schedule) > 0;
    if (!trained && hpct_ps_schedule_ended(l->schedule))
        return;
    begin_epoch(l, (int) l->begin.epoch);
    take_sums(l);
    if (trained && l->run->options.validation == NULL)
        end_epoch(l, (int) l->begin.epoch);
}

void hpct_ps_leader_joined(hpct_ps_leader *l, int worker, const char *node)
{
    hpct_ps_live_joined(l->live, worker, node);
    l->summary.workers_joined++;
    if (l->began > 0)
        return;
    l->began = hpct_process_clock();
    l->start_seconds = hpct_process_age();
    begin_run(l);
}

/* All of its slices are done. */
static hpct_status step_ended(hpct_ps_leader *l, int trained, int64_t steps)
{
    bool epoch_ended = hpct_ps_schedule_trained(l->schedule) > trained;
    int epoch = l->run->options.initial_epoch + trained;
    end_step(l, epoch, steps, epoch_ended);
    if (l->history != NULL && hpct_history_continues(l->history))
        settle(l); /* a start that is killed later is known, too */
    HPCT_TRY(hpct_ps_saving_step(l->saving, epoch * l->run->schedule.steps_per_epoch + steps,
                                 epoch_ended));
    if (hpct_ps_saving_due(l->saving))
        hpct_ps_schedule_cut(l->schedule);
    if (epoch_ended)
        l->epoch_seconds[trained] = hpct_process_clock() - l->epoch_began;
    return HPCT_OK;
}

hpct_status hpct_ps_leader_done(hpct_ps_leader *l, int worker, const hpct_ps_message *message)
{
    const hpct_ps_schedule_options *options = &l->run->schedule;
    const hpct_ps_statistics *statistics = hpct_ps_schedule_statistics(l->schedule);
    int trained = hpct_ps_schedule_trained(l->schedule);
    int evaluated = hpct_ps_schedule_evaluated(l->schedule);
    int64_t updates = statistics->updates, begin, steps = hpct_ps_schedule_steps(l->schedule);
    hpct_ps_item item;
    if (message->parts[HPCT_PACE_STEP] > 0) /* of training, also if it was late */
        hpct_ps_live_gradient(l->live, worker, message->parts);
    if (!hpct_ps_schedule_done(l->schedule, worker, &item))
        return HPCT_OK;
    if (item.task == HPCT_PS_EVALUATE)
        add(&l->evaluation, message,
            hpct_slice((int64_t) l->run->options.validation->size, item.slice,
                       options->evaluation_slices, &begin));
    else
        add(&l->step, message, hpct_ps_slice_samples(options, item.step, item.slice, &begin));
    if (statistics->updates > updates)
        HPCT_TRY(step_ended(l, trained, steps + 1));
    bool epoch_done = hpct_ps_schedule_trained(l->schedule) > trained;
    bool ended = l->run->options.validation == NULL
                     ? epoch_done
                     : hpct_ps_schedule_evaluated(l->schedule) > evaluated;
    if (ended)
        end_epoch(l, l->run->options.initial_epoch + (epoch_done ? trained : evaluated));
    return HPCT_OK;
}

/* ---- at the end ---- */

static void show_staleness(const hpct_ps_leader *l)
{
    const hpct_ps_statistics *s = hpct_ps_schedule_statistics(l->schedule);
    if (l->progress.verbose == 0 || s->gradients == 0)
        return;
    fprintf(l->progress.stream, "parameter servers: %" PRId64 " gradients in %" PRId64 " updates",
            s->gradients, s->updates);
    if (l->run->schedule.synchronous)
        fprintf(l->progress.stream, ", %" PRId64 " came late", s->late);
    else
        fprintf(l->progress.stream, ", staleness %.2f on average, %" PRId64 " at most",
                (double) s->staleness_sum / (double) s->gradients, s->staleness_max);
    if (l->summary.workers_lost > 0)
        fprintf(l->progress.stream, "; %d worker%s lost, %" PRId64 " batches computed again",
                l->summary.workers_lost, l->summary.workers_lost == 1 ? "" : "s", s->given_again);
    fputc('\n', l->progress.stream);
    fflush(l->progress.stream);
}

static hpct_status finish(hpct_ps_leader *l, hpct_fit_result *result)
{
    const hpct_fit_options *o = &l->run->options;
    l->result.seconds = hpct_process_clock() - l->began;
    l->result.steps = hpct_ps_schedule_statistics(l->schedule)->updates;
    l->result.signal = l->signal;
    *result = l->result;
    show_staleness(l);
    l->end.diverged = hpct_results_diverged(&l->end);
    l->end.signal = l->signal;
    l->end.steps =
        l->begin.epoch * l->run->schedule.steps_per_epoch + l->begin.step + l->result.steps;
    l->end.epoch = epochs_before(l) + 1;
    l->end.epochs = o->epochs;
    if (o->save_weights != NULL)
        hpct_results_note(&l->end, hpct_results_save(l->run->model, o->save_weights, &l->end));
    write_summaries(l);
    if (l->saving != NULL && l->placed && !l->end.diverged)
        hpct_results_note(&l->end, save(l, 0, true));
    hpct_results_note(&l->end, hpct_ps_saving_finish(l->saving));
    hpct_results_note(&l->end, hpct_history_close(l->history));
    l->history = NULL;
    bool finished = l->end.failed == HPCT_OK && l->signal == 0 && !l->end.diverged;
    hpct_results_note(&l->end, hpct_board_close(l->board, finished));
    l->board = NULL;
    HPCT_TRY(hpct_results_tell(&l->end));
    if (o->verbose != 0)
        hpct_results_say_written(o, l->run->model, hpct_control_is_over(&l->control), stdout);
    return HPCT_OK;
}

hpct_status hpct_ps_leader_finish(hpct_ps_leader *l, hpct_fit_result *result)
{
    hpct_status status = finish(l, result);
    hpct_ps_live_end(l->live, l->signal != 0      ? HPCT_LIVE_STOPPED
                              : status == HPCT_OK ? HPCT_LIVE_FINISHED
                                                  : HPCT_LIVE_FAILED);
    return status;
}

/* Of a run that an error has ended. */
static void fail_run_file(hpct_ps_leader *l)
{
    if (l->file == NULL || !l->settled || l->told)
        return;
    hpct_summary summary = describe(l);
    hpct_run_file_fail(l->file, &summary);
}

void hpct_ps_leader_free(hpct_ps_leader *leader)
{
    if (leader == NULL)
        return;
    hpct_history_close(leader->history);
    hpct_board_close(leader->board, false);
    hpct_deadline_close(&leader->deadline);
    hpct_control_close(&leader->control);
    fail_run_file(leader);
    hpct_run_file_close(leader->file);
    hpct_ps_live_free(leader->live);
    hpct_ps_saving_close(leader->saving);
    hpct_ps_schedule_free(leader->schedule);
    free(leader->epoch_seconds);
    free(leader->step_times);
    free(leader->end.why);
    free(leader);
}
