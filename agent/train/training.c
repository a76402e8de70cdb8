/* Adds up the steps and epochs of a run, for fit and for parameter servers. */
#include "agent/train/training.h"

#include "agent/comm/comm.h"
#include "agent/rank/context.h"
#include "agent/strategy/state.h"
#include "agent/train/means.h"
#include "agent/train/observer.h"
#include "base/process.h"
#include "base/status.h"
#include "nn/run/step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_STEP_TIMES ((int64_t) 1 << 20) /* most recent steps used for the median */

/* ---- before step 1 ---- */

hpct_status hpct_train_training_allocate(hpct_train_training *t)
{
    hpct_train_training_times *times = &t->now.times;
    hpct_results_end *end = &t->now.end;
    int64_t steps = t->steps_per_epoch * t->options.epochs;
    end->has_loss = t->begin.has_loss;
    end->first_loss = t->begin.first_loss;
    end->last_loss = t->begin.last_loss;
    end->mean_loss = t->begin.mean_loss;
    times->num_steps = steps < MAX_STEP_TIMES ? steps : MAX_STEP_TIMES;
    times->steps = calloc((size_t) times->num_steps, sizeof *times->steps);
    times->epochs = calloc((size_t) t->options.epochs, sizeof *times->epochs);
    return times->steps != NULL && times->epochs != NULL
               ? HPCT_OK
               : hpct_fail_memory((size_t) times->num_steps * sizeof *times->steps);
}

void hpct_train_training_free(hpct_train_training *t)
{
    free(t->now.times.steps);
    free(t->now.times.epochs);
    free(t->now.end.why);
}

bool hpct_train_training_has_work(const hpct_train_training *t)
{
    return t->begin.epoch < t->options.epochs && !t->now.over;
}

int64_t hpct_train_training_first_step(const hpct_train_training *t)
{
    return t->begin.epoch * t->steps_per_epoch + t->begin.step;
}

void hpct_train_training_start(hpct_train_training *t)
{
    t->now.times.start_seconds = hpct_process_age();
    t->now.times.began = hpct_process_clock();
}

/* ---- steps and epochs ---- */

hpct_metrics hpct_train_training_mean(const hpct_train_training *t,
                                      const hpct_train_training_sums *sums)
{
    return hpct_train_metrics_of(t->model, sums->loss, sums->correct, sums->in_top_k,
                                 sums->samples);
}

void hpct_train_training_begin_epoch(hpct_train_training *t, int epoch, int64_t steps)
{
    const hpct_train_place *begin = &t->begin;
    hpct_train_moment *now = &t->now;
    now->epoch = epoch;
    now->planned = steps;
    now->cut = now->gathered = false;
    now->times.epoch_began = hpct_process_clock();
    now->times.timed = 0;
    now->sums = (hpct_train_training_sums){0};
    if (epoch == begin->epoch && begin->step > 0)
        now->sums = (hpct_train_training_sums){.loss = begin->loss,
                                               .correct = begin->correct,
                                               .in_top_k = begin->in_top_k,
                                               .samples = begin->samples,
                                               .steps = begin->steps};
    if (now->sums.samples > 0)
        now->result.train = hpct_train_training_mean(t, &now->sums);
}

static void note_time(hpct_train_training *t, double ended, double seconds)
{
    hpct_train_training_times *times = &t->now.times;
    if (t->now.steps_done > 0) /* step 1 opens connections */
        times->steps[(t->now.steps_done - 1) % times->num_steps] = seconds;
    times->last_step_ended = ended;
    if (++times->timed == 1)
        times->first_step_ended = ended;
}

void hpct_train_training_add_step(hpct_train_training *t, const hpct_train_training_sums *step,
                                  double ended, double seconds)
{
    hpct_train_moment *now = &t->now;
    note_time(t, ended, seconds);
    now->gathered = false;
    now->last = *step;
    now->steps_done++;
    now->sums.steps++;
    now->sums.loss += step->loss;
    now->sums.correct += step->correct;
    now->sums.in_top_k += step->in_top_k;
    now->sums.samples += step->samples;
    if (step->samples == 0)
        return;
    now->result.train = hpct_train_training_mean(t, &now->sums);
    hpct_results_note_loss(&now->end, hpct_train_training_mean(t, step).loss,
                           now->result.train.loss);
}

void hpct_train_training_end_epoch(hpct_train_training *t)
{
    t->now.epoch++;
    t->now.sums = (hpct_train_training_sums){0};
}

double hpct_train_training_step_seconds(const hpct_train_training *t)
{
    const hpct_train_training_times *times = &t->now.times;
    if (times->timed < 2)
        return times->timed > 0 ? times->last_step_ended - times->epoch_began : 0;
    return (times->last_step_ended - times->first_step_ended) / (double) (times->timed - 1);
}

hpct_train_place hpct_train_training_place(hpct_train_training *t)
{
    const hpct_train_moment *now = &t->now;
    hpct_train_place place = {.epoch = now->epoch,
                              .step = now->sums.steps,
                              .loss = now->sums.loss,
                              .correct = now->sums.correct,
                              .in_top_k = now->sums.in_top_k,
                              .samples = now->sums.samples,
                              .steps = now->sums.steps,
                              .has_loss = now->end.has_loss,
                              .first_loss = now->end.first_loss,
                              .last_loss = now->end.last_loss,
                              .mean_loss = now->end.mean_loss,
                              .logs = HPCT_RESULTS_HISTORY_NONE,
                              .halvings = t->begin.halvings + t->again};
    hpct_train_observe_save(t, &place);
    return place;
}

/* ---- the model ---- */

double hpct_train_training_rate(const hpct_train_training *t)
{
    return t->now.rate > 0 ? t->now.rate : hpct_model_learning_rate(t->model);
}

void hpct_train_training_set_rate(hpct_train_training *t, double rate)
{
    hpct_model *model;
    if (t->strategy == NULL) { /* workers are told with each item */
        t->now.rate = rate;
        return;
    }
    for (int k = 0; (model = hpct_strategy_model(t->strategy, k)) != NULL; k++)
        hpct_model_set_learning_rate(model, rate);
    hpct_model_set_learning_rate(t->model, rate);
}

hpct_status hpct_train_training_gather(hpct_train_training *t)
{
    if (!t->now.gathered)
        HPCT_TRY(t->strategy->ops->gather(t->strategy));
    t->now.gathered = true;
    return HPCT_OK;
}

/* ---- the end ---- */

void hpct_train_training_say_retried(const hpct_train_training *t, hpct_status status)
{
    if (status != HPCT_OK && t->leads && t->options.verbose != 0)
        printf("%s; it is tried again\n", hpct_last_error());
}

void hpct_train_training_note_end(hpct_train_training *t)
{
    hpct_train_moment *now = &t->now;
    now->result.seconds = hpct_process_clock() - now->times.began;
    now->result.steps = now->steps_done;
    now->result.signal = now->signal;
    now->end.diverged = hpct_results_diverged(&now->end);
    now->end.signal = now->signal;
    now->end.steps = hpct_train_training_first_step(t) + now->steps_done;
    now->end.epoch = (int) t->begin.epoch + now->epochs_done + 1;
    now->end.epochs = t->options.epochs;
}

bool hpct_train_training_went(hpct_train_training *t, hpct_status status)
{
    hpct_results_note(&t->now.end, status);
    return status == HPCT_OK ||
           (status != HPCT_ERR_PEER && hpct_context_all_know(t->context, status));
}

/* Rank 0's results, so that all ranks return the same message. */
static hpct_status share_end(const hpct_train_training *t, hpct_results_end *end)
{
    struct {
        char where[HPCT_RESULTS_WHERE];
        double first_loss, last_loss;
        int diverged;
    } known = {
        .first_loss = end->first_loss, .last_loss = end->last_loss, .diverged = end->diverged};
    hpct_comm *comm = hpct_context_comm(t->context);
    memcpy(known.where, end->where, sizeof known.where);
    HPCT_TRY(comm->ops->broadcast(comm, &known, sizeof known, 0));
    memcpy(end->where, known.where, sizeof known.where);
    end->first_loss = known.first_loss;
    end->last_loss = known.last_loss;
    end->diverged = known.diverged != 0;
    return HPCT_OK;
}

hpct_status hpct_train_training_finish(hpct_train_training *t)
{
    HPCT_TRY(hpct_train_observe_end(t));
    HPCT_TRY(share_end(t, &t->now.end));
    HPCT_TRY(hpct_context_agree(t->context, hpct_results_tell(&t->now.end)));
    if (t->leads && t->options.verbose != 0)
        hpct_results_say_written(&t->options, t->model, t->now.over, stdout);
    return HPCT_OK;
}

void hpct_train_training_close(hpct_train_training *t, hpct_status status)
{
    bool stopped = status == HPCT_ERR_STOPPED || t->now.signal != 0;
    t->now.how = status == HPCT_OK ? HPCT_RESULTS_LIVE_FINISHED
                 : stopped         ? HPCT_RESULTS_LIVE_STOPPED
                                   : HPCT_RESULTS_LIVE_FAILED;
    hpct_train_observe_close(t);
}
