/* Decisions after an epoch, and the calls of the program's callbacks. */
#include "agent/train/control.h"

#include "agent/comm/comm.h"
#include "agent/rank/context.h"
#include "agent/rank/largest.h"
#include "agent/rank/stop.h"
#include "agent/results/progress.h"
#include "agent/results/results.h"
#include "agent/train/kept_weights.h"
#include "agent/train/means.h"
#include "agent/train/observer.h"
#include "agent/train/rate_file.h"
#include "agent/train/watch.h"
#include "base/output.h"
#include "base/progress.h"
#include "base/status.h"
#include "nn/run/step.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANY HPCT_RESULTS_METRIC_ANY

typedef enum moment { EPOCH_BEGIN, BATCH_BEGIN, BATCH_END, EPOCH_END, MOMENTS } moment;

typedef struct control {
    const hpct_callbacks *callbacks; /* of this rank; NULL: none */
    bool calls[MOMENTS], has_calls;  /* of any rank */
    bool stops, reduces, has_target;
    hpct_train_watch_options stopping, plateau;
    hpct_train_monitor target_monitor;
    double target;
    hpct_train_rate_file rates;
    int halvings; /* of those rates */
    hpct_train_watch_notes notes;
    hpct_train_kept_weights kept;
    bool speaks;
} control;

/* What follows from an epoch. */
typedef struct verdict {
    bool stop;    /* training ends */
    bool is_best; /* its weights are to be kept for restore_best */
    double rate;  /* of the next epoch; 0: the schedule's */
} verdict;

/* ---- options ---- */

/* Which this run would write, and read again when it goes back. */
static hpct_status check_rate_file(const hpct_fit_options *o)
{
    char path[PATH_MAX];
    if (o->learning_rate_file == NULL || o->log_dir == NULL)
        return HPCT_OK;
    snprintf(path, sizeof path, "%s/" HPCT_RESULTS_HISTORY_EPOCHS, o->log_dir);
    return hpct_output_same(o->learning_rate_file, path)
               ? hpct_fail(
                     HPCT_ERR_USAGE,
                     "--learning-rate-file %s is the log that --log-dir writes: copy it first",
                     o->learning_rate_file)
               : HPCT_OK;
}

static hpct_status parse(control *c, const hpct_fit_options *o, hpct_results_metric_choice choice)
{
    c->stops = o->early_stopping != NULL;
    c->reduces = o->reduce_lr_on_plateau != NULL;
    c->has_target = o->stop_at != NULL;
    if (c->stops)
        HPCT_TRY(hpct_train_watch_parse_stopping(&c->stopping, o->early_stopping, choice));
    if (c->reduces)
        HPCT_TRY(hpct_train_watch_parse_plateau(&c->plateau, o->reduce_lr_on_plateau, choice));
    if (c->has_target)
        HPCT_TRY(hpct_train_watch_parse_target(&c->target_monitor, &c->target, o->stop_at, choice));
    HPCT_TRY(check_rate_file(o));
    if (c->reduces && o->learning_rate_file != NULL)
        return hpct_fail(HPCT_ERR_USAGE, "--reduce-lr-on-plateau and --learning-rate-file both set "
                                         "the learning rate: give one");
    return HPCT_OK;
}

bool hpct_train_control_is_scheduled(const hpct_model *model)
{
    const hpct_schedule *schedule = &hpct_model_optimizer(model)->schedule;
    return schedule->kind != HPCT_CONSTANT || schedule->warmup_steps > 0;
}

/* For a run of this model. */
static hpct_status parse_for(control *c, const hpct_fit_options *o, const hpct_model *model)
{
    HPCT_TRY(parse(c, o, hpct_train_metrics_chosen(o, model)));
    if (hpct_train_control_is_scheduled(model) && (c->reduces || o->learning_rate_file != NULL))
        return hpct_fail(HPCT_ERR_USAGE,
                         "%s is for runs without --schedule and --warmup-epochs, "
                         "which set the learning rate of each step",
                         c->reduces ? "--reduce-lr-on-plateau" : "--learning-rate-file");
    return HPCT_OK;
}

hpct_status hpct_train_control_check(const hpct_fit_options *options)
{
    control ignored = {0};
    return parse(&ignored, options, ANY);
}

hpct_status hpct_train_control_check_apart(const hpct_fit_options *options, const hpct_model *model)
{
    control c = {0};
    if (options->callbacks != NULL)
        return hpct_fail(HPCT_ERR_USAGE, "callbacks are not for --strategy parameter-server");
    HPCT_TRY(parse_for(&c, options, model));
    return c.stopping.restore_best
               ? hpct_fail(HPCT_ERR_USAGE, "--early-stopping: restore_best is not for --strategy "
                                           "parameter-server")
               : HPCT_OK;
}

/* Rank 0 reads the learning rates already here, before nodes are checked and strategies tried. */
static hpct_status check(void *own, hpct_train_training *t)
{
    control *c = own;
    const char *path = t->options.learning_rate_file;
    HPCT_TRY(parse_for(c, &t->options, t->model));
    return t->leads && path != NULL ? hpct_train_rate_file_read(&c->rates, path) : HPCT_OK;
}

/* ---- opening ---- */

/* Rank 0's lines, on all ranks. */
static hpct_status share_rates(control *c, const hpct_train_training *t)
{
    hpct_comm *comm = hpct_context_comm(t->context);
    HPCT_TRY(comm->ops->broadcast(comm, &c->rates.count, sizeof c->rates.count, 0));
    if (!t->leads)
        c->rates.lines = calloc(c->rates.count + 1, sizeof *c->rates.lines);
    HPCT_TRY(hpct_context_agree(
        t->context, c->rates.lines != NULL ? HPCT_OK : hpct_fail_memory(c->rates.count)));
    return comm->ops->broadcast(comm, c->rates.lines, c->rates.count * sizeof *c->rates.lines, 0);
}

static hpct_callback *callback_of(const hpct_callbacks *callbacks, moment when)
{
    hpct_callback *const all[MOMENTS] = {
        [EPOCH_BEGIN] = callbacks->epoch_begin,
        [BATCH_BEGIN] = callbacks->batch_begin,
        [BATCH_END] = callbacks->batch_end,
        [EPOCH_END] = callbacks->epoch_end,
    };
    return all[when];
}

/* A program may give them on some of its ranks alone. */
static hpct_status find_calls(control *c, const hpct_train_training *t)
{
    double values[MOMENTS] = {0};
    c->callbacks = t->options.callbacks;
    for (int i = 0; i < MOMENTS && c->callbacks != NULL; i++)
        values[i] = callback_of(c->callbacks, (moment) i) != NULL;
    HPCT_TRY(hpct_rank_largest(t->context, values, MOMENTS));
    for (int i = 0; i < MOMENTS; i++) {
        c->calls[i] = values[i] > 0;
        c->has_calls |= c->calls[i];
    }
    return HPCT_OK;
}

static bool is_reached(const control *c, double value)
{
    return c->target_monitor.larger ? value >= c->target : value <= c->target;
}

/* With more patience or a further target than before a run goes on. */
static bool is_over(const control *c)
{
    const hpct_train_watch_notes *n = &c->notes;
    bool early = c->stops && n->early && n->stopping.wait >= c->stopping.patience &&
                 strcmp(n->stopping.monitor, hpct_train_monitor_name(&c->stopping.monitor)) == 0;
    bool reached = c->has_target && n->reached && n->target.has &&
                   strcmp(n->target.monitor, hpct_train_monitor_name(&c->target_monitor)) == 0 &&
                   is_reached(c, n->target.best);
    return early || reached || (c->has_calls && n->called);
}

/* Goes on from what the run that is continued has noted. */
static void recall(control *c, const hpct_train_training *t)
{
    c->notes = t->begin.watch;
    if (!is_over(c))
        c->notes.early = c->notes.reached = c->notes.called = false;
    c->halvings = t->begin.halvings + t->again;
    c->notes.rate = ldexp(c->notes.rate, t->again ? -1 : 0);
}

static hpct_status open_control(void *own, hpct_train_training *t)
{
    control *c = own;
    hpct_status status = HPCT_OK;
    c->speaks = t->leads && t->options.verbose != 0;
    HPCT_TRY(find_calls(c, t));
    if (t->options.learning_rate_file != NULL)
        HPCT_TRY(share_rates(c, t));
    recall(c, t);
    t->now.over = is_over(c);
    if (!c->stopping.restore_best ||
        !c->notes.stopping.has) /* equal on all ranks; notes.kept is read on rank 0 */
        return HPCT_OK;
    if (t->leads)
        status = hpct_train_kept_weights_load(t, &c->notes);
    if (status == HPCT_OK)
        status = hpct_train_kept_weights_take(&c->kept, t->context, t->model);
    return status;
}

/* ---- callbacks ---- */

/* Calls this rank's callback, if it has one. */
static hpct_status call(control *c, moment when, hpct_callback_state *state)
{
    hpct_callback *callback = c->callbacks != NULL ? callback_of(c->callbacks, when) : NULL;
    if (callback == NULL)
        return HPCT_OK;
    HPCT_TRY(callback(c->callbacks->context, state));
    return state->learning_rate > 0 && isfinite(state->learning_rate)
               ? HPCT_OK
               : hpct_fail(HPCT_ERR_USAGE, "a callback has set the learning rate to %g",
                           state->learning_rate);
}

static double rate_of_step(const hpct_train_training *t)
{
    return t->strategy != NULL ? hpct_model_learning_rate(t->strategy->model)
                               : hpct_train_training_rate(t);
}

/* At a step or, with -1, an epoch; `train` may be NULL. Collective for epochs. */
static hpct_status call_back(control *c, hpct_train_training *t, moment when, int64_t step,
                             const hpct_metrics *train)
{
    double rate = rate_of_step(t);
    hpct_callback_state state = {.epoch = t->now.epoch,
                                 .step = step,
                                 .train = train != NULL ? *train
                                                        : (hpct_metrics) HPCT_RESULTS_NO_METRICS,
                                 .validation = HPCT_RESULTS_NO_METRICS,
                                 .learning_rate = rate};
    hpct_status status = call(c, when, &state);
    if (step < 0) {
        hpct_comm *comm = hpct_context_comm(t->context);
        HPCT_TRY(hpct_context_agree(t->context, status));
        status = comm->ops->broadcast(comm, &state.learning_rate, sizeof state.learning_rate, 0);
    }
    HPCT_TRY(status);
    if (state.learning_rate != rate) {
        c->notes.rate = state.learning_rate;
        hpct_train_training_set_rate(t, state.learning_rate);
    }
    if (state.stop)
        hpct_rank_stop_raise(HPCT_RANK_STOP_CALLBACK);
    return HPCT_OK;
}

static hpct_status step_begins(void *own, hpct_train_training *t)
{
    control *c = own;
    if (!c->calls[BATCH_BEGIN])
        return HPCT_OK;
    hpct_metrics before = hpct_train_training_mean(t, &t->now.sums);
    return call_back(c, t, BATCH_BEGIN, t->now.sums.steps, &before);
}

static hpct_status step_ended(void *own, hpct_train_training *t)
{
    control *c = own;
    if (!c->calls[BATCH_END])
        return HPCT_OK;
    hpct_metrics after = hpct_train_training_mean(t, &t->now.sums);
    return call_back(c, t, BATCH_END, t->now.sums.steps - 1, &after);
}

/* ---- after an epoch ---- */

static void print_note(const control *c, int64_t epoch, const char *text, const char *what)
{
    if (!c->speaks)
        return;
    printf("Epoch %" PRId64 ": %s%s\n", epoch + 1, text, what);
    fflush(stdout);
}

static void heed_stopping(control *c, int64_t epoch, double value, verdict *v)
{
    bool stops =
        hpct_train_watch_stops(&c->notes.stopping, &c->stopping, epoch, value, &v->is_best);
    if (v->is_best) /* the weights of this epoch are not there yet */
        c->notes.kept = false;
    if (!stops)
        return;
    v->stop = c->notes.early = true;
    print_note(c, epoch, "early stopping", "");
}

static void heed_plateau(control *c, int64_t epoch, double value, double rate, verdict *v)
{
    char text[32];
    double next = hpct_train_watch_rate(&c->notes.plateau, &c->plateau, value, rate);
    if (next == rate)
        return;
    v->rate = next;
    snprintf(text, sizeof text, "%.6g", next);
    print_note(c, epoch, "learning rate reduced to ", text);
}

static void heed_target(control *c, int64_t epoch, double value, verdict *v)
{
    const char *name = hpct_train_monitor_name(&c->target_monitor);
    if (!is_reached(c, value))
        return;
    v->stop = c->notes.reached = true;
    c->notes.target = (hpct_train_watch){.has = true, .best = value, .best_epoch = epoch};
    snprintf(c->notes.target.monitor, sizeof c->notes.target.monitor, "%s", name);
    char text[96], number[HPCT_RESULTS_METRIC_TEXT];
    snprintf(text, sizeof text, "%s is %s, training ends (--stop-at)", name,
             hpct_results_progress_metric(number, value));
    print_note(c, epoch, text, "");
}

/* Rank 0's learning rate, and any rank's end. */
static hpct_status call_epoch_end(control *c, const hpct_train_training *t,
                                  hpct_callback_state *state)
{
    hpct_status status = call(c, EPOCH_END, state);
    hpct_comm *comm = hpct_context_comm(t->context);
    HPCT_TRY(hpct_context_agree(t->context, status));
    double stop = state->stop;
    HPCT_TRY(hpct_rank_largest(t->context, &stop, 1));
    state->stop = stop > 0;
    return comm->ops->broadcast(comm, &state->learning_rate, sizeof state->learning_rate, 0);
}

static hpct_status heed_callback(control *c, const hpct_train_training *t,
                                 const hpct_metrics known[2], double rate, verdict *v)
{
    double before = v->rate > 0 ? v->rate : rate;
    hpct_callback_state state = {.epoch = t->now.epoch,
                                 .step = -1,
                                 .train = known[0],
                                 .validation = known[1],
                                 .learning_rate = before};
    HPCT_TRY(call_epoch_end(c, t, &state));
    if (state.learning_rate != before)
        v->rate = state.learning_rate;
    c->notes.called = state.stop;
    v->stop |= state.stop;
    return HPCT_OK;
}

/* `rate`: the one in use. */
static hpct_status judge(control *c, const hpct_train_training *t, double rate, verdict *v)
{
    int epoch = t->now.epoch;
    hpct_comm *comm = hpct_context_comm(t->context);
    hpct_metrics known[2] = {t->now.result.train, t->now.result.validation};
    *v = (verdict){.rate = c->notes.rate};
    if (!c->stops && !c->reduces && !c->has_target && !c->calls[EPOCH_END])
        return HPCT_OK;
    HPCT_TRY(comm->ops->broadcast(comm, known, sizeof known, 0));
#define VALUE(monitor) hpct_train_monitor_value(&(monitor), &known[0], &known[1])
    if (c->stops)
        heed_stopping(c, epoch, VALUE(c->stopping.monitor), v);
    if (c->reduces)
        heed_plateau(c, epoch, VALUE(c->plateau.monitor), rate, v);
    if (c->has_target)
        heed_target(c, epoch, VALUE(c->target_monitor), v);
    if (c->calls[EPOCH_END])
        HPCT_TRY(heed_callback(c, t, known, rate, v));
    c->notes.rate = v->rate;
    return HPCT_OK;
}

/* ---- epochs ---- */

/* The learning rate that an epoch begins with; 0: the schedule's. */
static double rate_of(const control *c, int64_t epoch)
{
    double rate = hpct_train_rate_file_at(&c->rates, epoch);
    return rate > 0 ? ldexp(rate, -c->halvings) : c->notes.rate;
}

static hpct_status epoch_begins(void *own, hpct_train_training *t)
{
    control *c = own;
    hpct_train_training_set_rate(t, rate_of(c, t->now.epoch));
    return c->calls[EPOCH_BEGIN] ? call_back(c, t, EPOCH_BEGIN, -1, NULL) : HPCT_OK;
}

static hpct_status keep(control *c, hpct_train_training *t)
{
    HPCT_TRY(hpct_train_training_gather(t));
    hpct_waits before = hpct_enter_wait(HPCT_WAITS_UNSEEN);
    hpct_status status = hpct_train_kept_weights_take(&c->kept, t->context, t->model);
    if (status == HPCT_OK && t->leads)
        c->notes.kept = hpct_train_kept_weights_save(t);
    hpct_enter_wait(before);
    return hpct_context_agree(t->context, status);
}

static hpct_status epoch_ended(void *own, hpct_train_training *t)
{
    control *c = own;
    verdict v;
    double rate = rate_of_step(t);
    HPCT_TRY(judge(c, t, rate, &v));
    if (v.rate > 0 && v.rate != rate)
        hpct_train_training_set_rate(t, v.rate);
    if (v.stop)
        t->now.result.stopped_epoch = t->now.epoch + 1;
    t->now.over = is_over(c);
    return v.is_best && c->stopping.restore_best ? keep(c, t) : HPCT_OK;
}

hpct_status hpct_train_observed_restore_best(hpct_train_training *t)
{
    const control *c = hpct_train_observed(t, &hpct_train_observe_control);
    if (!c->kept.has)
        return HPCT_OK;
    if (c->speaks)
        printf("the weights are those of the best epoch, %lld\n",
               (long long) c->notes.stopping.best_epoch + 1);
    return hpct_train_kept_weights_give(&c->kept, t->context, t->model);
}

static void save(void *own, hpct_train_training *t, hpct_train_place *place)
{
    control *c = own;
    c->notes.called |= t->now.called;
    place->watch = c->notes;
}

static void close_control(void *own, hpct_train_training *t)
{
    control *c = own;
    (void) t;
    free(c->rates.lines);
    hpct_train_kept_weights_free(&c->kept);
}

const hpct_train_observer hpct_train_observe_control = {
    .size = sizeof(control),
    .on = {[HPCT_TRAIN_ON_CHECK] = check,
           [HPCT_TRAIN_ON_OPEN] = open_control,
           [HPCT_TRAIN_ON_EPOCH] = epoch_begins,
           [HPCT_TRAIN_ON_STEP] = step_begins,
           [HPCT_TRAIN_ON_STEP_ENDED] = step_ended,
           [HPCT_TRAIN_ON_EPOCH_ENDED] = epoch_ended},
    .save = save,
    .close = close_control,
};
