/* Sums of steps and epochs, as a run with the observers of fit. */
#include "agent/ps/leader.h"

#include "agent/data/dataset.h"
#include "agent/ps/pace.h"
#include "agent/ps/saving.h"
#include "agent/train/control.h"
#include "agent/train/observer.h"
#include "base/process.h"
#include "base/status.h"
#include "nn/backend/cpu/backend.h"
#include "nn/run/step.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct hpct_ps_leader {
    hpct_ps_run *run;
    hpct_ps_schedule *schedule;
    hpct_context *alone; /* of this process, for the observers */
    hpct_train_training training;
    hpct_train_training_sums step, evaluation;
    hpct_results_ps_summary summary;
    hpct_ps_saving *saving; /* NULL: no checkpoints */
    bool placed;            /* a step or an epoch has ended in this run */
    hpct_ps_pace *pace;     /* NULL: nothing is left to train */
};

static void add(hpct_train_training_sums *s, const hpct_ps_message *message, int64_t samples)
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

/* Errors are told at the end. */
static void observe(hpct_ps_leader *l, hpct_train_event event)
{
    hpct_results_note(&l->training.now.end, hpct_train_observe(&l->training, event));
}

/* A checkpoint of another strategy may be of a run that went back with half the rate. */
static void begin_epoch(hpct_ps_leader *l, int epoch)
{
    hpct_train_training *t = &l->training;
    hpct_train_training_begin_epoch(t, epoch, steps_of_epoch(l, epoch));
    observe(l, HPCT_TRAIN_ON_EPOCH);
    if (t->now.rate == 0 && t->begin.halvings > 0 && !hpct_train_control_is_scheduled(t->model))
        t->now.rate = ldexp(hpct_model_optimizer(t->model)->learning_rate, -t->begin.halvings);
}

double hpct_ps_leader_rate(const hpct_ps_leader *leader)
{
    return leader->training.now.rate;
}

/* ---- opening ---- */

static hpct_train_training describe(const hpct_ps_leader *l)
{
    const hpct_ps_run *run = l->run;
    return (hpct_train_training){
        .context = l->alone,
        .model = run->model,
        .train = run->train,
        .validation = run->options.validation,
        .options = run->options,
        .identity = run->identity,
        .host = hpct_context_node(run->context),
        .strategy_name = run->options.strategy.name,
        .parameter_server = &l->summary,
        .workers = run->workers,
        .global_batch = run->global_batch,
        .steps_per_epoch = run->schedule.steps_per_epoch,
        .bytes_per_step = (int64_t) ((run->bounds[run->servers] + run->state_bounds[run->servers]) *
                                     sizeof(float)),
        .leads = true,
        .now.result = {.train = HPCT_RESULTS_NO_METRICS, .validation = HPCT_RESULTS_NO_METRICS},
    };
}

/* From a checkpoint the run goes on as with --initial-epoch, from a step of the epoch on. */
static void go_on(hpct_ps_leader *l)
{
    hpct_ps_run *run = l->run;
    const hpct_train_place *begin = &l->training.begin;
    if (l->training.continued) {
        run->options.initial_epoch = (int) begin->epoch;
        run->schedule.epochs = run->options.epochs - (int) begin->epoch;
        run->schedule.first_step = begin->step;
    }
    if (!hpct_train_training_has_work(&l->training))
        run->schedule.epochs = 0;
}

static hpct_status open_leader(hpct_ps_leader *l)
{
    hpct_train_training *t = &l->training;
    hpct_ps_run *run = l->run;
    HPCT_TRY(hpct_context_open_alone(&l->alone));
    *t = describe(l);
    HPCT_TRY(hpct_train_observe(t, HPCT_TRAIN_ON_CHECK));
    HPCT_TRY(hpct_ps_saving_open(&l->saving, t));
    HPCT_TRY(hpct_train_training_allocate(t));
    HPCT_TRY(hpct_train_observe(t, HPCT_TRAIN_ON_OPEN));
    go_on(l);
    HPCT_TRY(hpct_ps_schedule_new(&l->schedule, &run->schedule));
    if (run->schedule.epochs > 0)
        HPCT_TRY(hpct_ps_pace_open(&l->pace, run->workers));
    t->nodes = hpct_ps_pace_nodes(l->pace);
    return hpct_train_observe(t, HPCT_TRAIN_ON_BEGIN);
}

hpct_status hpct_ps_leader_new(hpct_ps_leader **out, hpct_ps_run *run)
{
    hpct_ps_leader *l = calloc(1, sizeof *l);
    if (l == NULL)
        return hpct_fail_memory(sizeof *l);
    l->run = run;
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
    hpct_ps_pace_left(l->pace, worker);
    hpct_ps_schedule_give_back(l->schedule, worker);
}

void hpct_ps_leader_stop(hpct_ps_leader *l, int signal)
{
    l->training.now.signal = signal;
    hpct_ps_schedule_stop(l->schedule);
}

/* ---- steps and epochs ---- */

/* What the summary says of the schedule. */
static void note_schedule(hpct_ps_leader *l)
{
    const hpct_ps_statistics *s = hpct_ps_schedule_statistics(l->schedule);
    hpct_results_ps_summary *summary = &l->summary;
    l->training.now.epochs_done = s->trained;
    summary->gradients = s->gradients;
    summary->late = s->late;
    summary->given_again = s->given_again;
    summary->staleness_mean =
        s->gradients > 0 ? (double) s->staleness_sum / (double) s->gradients : NAN;
    summary->staleness_max = s->staleness_max;
    summary->held = s->held;
}

/* At the end, at the latest, what has been trained is saved. */
static void note_place(hpct_ps_leader *l)
{
    l->placed = true;
    l->run->saved |= l->saving != NULL && !hpct_results_diverged(&l->training.now.end);
}

bool hpct_ps_leader_continues(const hpct_ps_leader *leader)
{
    return leader->training.continued;
}

/* Diverged training is not saved: earlier checkpoints stay. */
bool hpct_ps_leader_saves(const hpct_ps_leader *leader)
{
    return leader->placed && hpct_ps_saving_due(leader->saving) &&
           hpct_ps_schedule_between(leader->schedule) &&
           !hpct_results_diverged(&leader->training.now.end);
}

static hpct_status save(hpct_ps_leader *l, double waited, bool last)
{
    hpct_train_place place = hpct_train_training_place(&l->training);
    return hpct_ps_saving_save(l->saving, &place, waited, last);
}

hpct_status hpct_ps_leader_save(hpct_ps_leader *leader, double waited)
{
    return save(leader, waited, false);
}

/* Ends an epoch, including its evaluation, if there is one. */
static void end_epoch(hpct_ps_leader *l)
{
    hpct_train_training *t = &l->training;
    hpct_train_moment *now = &t->now;
    now->good = !hpct_results_diverged(&now->end) && isfinite(now->result.train.loss);
    if (t->validation != NULL) {
        now->result.validation = hpct_train_training_mean(t, &l->evaluation);
        now->times.evaluation =
            hpct_process_clock() - fmax(now->times.epoch_began, now->times.last_step_ended);
    }
    l->evaluation = (hpct_train_training_sums){0};
    observe(l, HPCT_TRAIN_ON_EPOCH_ENDED);
    if (now->result.stopped_epoch > 0)
        hpct_ps_schedule_stop(l->schedule);
    hpct_train_training_end_epoch(t);
    note_place(l);
    if (!hpct_ps_schedule_ended(l->schedule))
        begin_epoch(l, now->epoch);
}

/* What a checkpoint is of: an epoch under way, or one that has all steps and is not evaluated. */
static void begin_run(hpct_ps_leader *l)
{
    bool trained = hpct_ps_schedule_statistics(l->schedule)->trained > 0;
    if (!trained && hpct_ps_schedule_ended(l->schedule))
        return;
    note_schedule(l);
    begin_epoch(l, (int) l->training.begin.epoch);
    if (trained && l->training.validation == NULL)
        end_epoch(l);
}

void hpct_ps_leader_joined(hpct_ps_leader *l, int worker, const char *node)
{
    hpct_ps_pace_joined(l->pace, worker, node, hpct_train_observed_live(&l->training));
    l->summary.workers_joined++;
    if (l->training.now.times.began > 0)
        return;
    hpct_train_training_start(&l->training);
    begin_run(l);
}

/* All of its slices are done. */
static hpct_status step_ended(hpct_ps_leader *l, int trained)
{
    hpct_train_training *t = &l->training;
    hpct_train_moment *now = &t->now;
    double ended = hpct_process_clock();
    bool epoch_ended = hpct_ps_schedule_statistics(l->schedule)->trained > trained;
    now->samples_done += l->step.samples;
    hpct_train_training_add_step(t, &l->step, ended, ended - now->times.last_step_ended);
    l->step = (hpct_train_training_sums){0};
    if (epoch_ended)
        now->times.epochs[trained] = ended - now->times.epoch_began;
    note_schedule(l);
    note_place(l);
    now->times.save = hpct_ps_saving_seconds(l->saving);
    observe(l, HPCT_TRAIN_ON_STEP_ENDED);
    hpct_ps_pace_step(l->pace, now->epoch + 1, now->sums.steps, epoch_ended, ended,
                      hpct_train_observed_pace_file(t), hpct_train_observed_live(t));
    HPCT_TRY(hpct_ps_saving_step(l->saving, now->epoch * t->steps_per_epoch + now->sums.steps,
                                 epoch_ended));
    if (hpct_ps_saving_due(l->saving))
        hpct_ps_schedule_cut(l->schedule);
    return HPCT_OK;
}

hpct_status hpct_ps_leader_done(hpct_ps_leader *l, int worker, const hpct_ps_message *message)
{
    const hpct_ps_schedule_options *options = &l->run->schedule;
    const hpct_dataset *validation = l->training.validation;
    const hpct_ps_statistics *statistics = hpct_ps_schedule_statistics(l->schedule);
    int trained = statistics->trained, evaluated = statistics->evaluated;
    int64_t updates = statistics->updates, begin;
    hpct_ps_item item;
    if (message->parts[HPCT_TRAIN_PACE_STEP] > 0) /* of training, also if it was late */
        hpct_ps_pace_gradient(l->pace, worker, message->parts);
    if (!hpct_ps_schedule_done(l->schedule, worker, &item))
        return HPCT_OK;
    if (item.task == HPCT_PS_EVALUATE)
        add(&l->evaluation, message,
            hpct_data_slice((int64_t) validation->size, item.slice, options->evaluation_slices,
                            &begin));
    else
        add(&l->step, message, hpct_ps_slice_samples(options, item.step, item.slice, &begin));
    if (statistics->updates > updates)
        HPCT_TRY(step_ended(l, trained));
    if (validation == NULL ? statistics->trained > trained : statistics->evaluated > evaluated)
        end_epoch(l);
    return HPCT_OK;
}

/* ---- at the end ---- */

static void show_staleness(const hpct_ps_leader *l)
{
    const hpct_results_ps_summary *s = &l->summary;
    if (l->training.options.verbose == 0 || s->gradients == 0)
        return;
    printf("parameter servers: %" PRId64 " gradients in %" PRId64 " updates", s->gradients,
           l->training.now.steps_done);
    if (s->synchronous)
        printf(", %" PRId64 " came late", s->late);
    else
        printf(", staleness %.2f on average, %" PRId64 " at most", s->staleness_mean,
               s->staleness_max);
    if (s->workers_lost > 0)
        printf("; %d worker%s lost, %" PRId64 " batches computed again", s->workers_lost,
               s->workers_lost == 1 ? "" : "s", s->given_again);
    putchar('\n');
    fflush(stdout);
}

/* The weights first: a checkpoint that cannot be written says nothing against them. */
static void save_weights_and_checkpoint(hpct_ps_leader *l)
{
    hpct_results_end *end = &l->training.now.end;
    const char *path = l->training.options.save_weights;
    if (path != NULL)
        hpct_results_note(end, hpct_results_save(l->run->model, path, end));
    if (l->saving != NULL && l->placed && !end->diverged)
        hpct_results_note(end, save(l, 0, true));
    hpct_results_note(end, hpct_ps_saving_finish(l->saving));
}

hpct_status hpct_ps_leader_finish(hpct_ps_leader *l, hpct_fit_result *result)
{
    hpct_train_training *t = &l->training;
    t->now.how = HPCT_RESULTS_LIVE_FINISHED;
    note_schedule(l);
    hpct_train_training_note_end(t);
    *result = t->now.result;
    show_staleness(l);
    save_weights_and_checkpoint(l);
    hpct_status status = hpct_train_training_finish(t);
    hpct_train_training_close(t, status);
    return status;
}

void hpct_ps_leader_free(hpct_ps_leader *l)
{
    if (l == NULL)
        return;
    hpct_train_training_close(&l->training, HPCT_ERR_INTERNAL); /* unless its end was told */
    hpct_ps_pace_close(l->pace);
    hpct_ps_saving_close(l->saving);
    hpct_ps_schedule_free(l->schedule);
    hpct_train_training_free(&l->training);
    hpct_context_close(l->alone);
    free(l);
}
