/* Decisions after an epoch. */
#include "agent/train/control.h"

#include "agent/rank/largest.h"
#include "agent/results/progress.h"
#include "agent/results/results.h"
#include "base/output.h"
#include "base/status.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANY HPCT_METRIC_ANY

/* ---- options ---- */

/* Which this run would write, and read again when it goes back. */
static hpct_status check_rate_file(const hpct_fit_options *o)
{
    char path[PATH_MAX];
    if (o->learning_rate_file == NULL || o->log_dir == NULL)
        return HPCT_OK;
    snprintf(path, sizeof path, "%s/" HPCT_HISTORY_EPOCHS, o->log_dir);
    return hpct_output_same(o->learning_rate_file, path)
               ? hpct_fail(
                     HPCT_ERR_USAGE,
                     "--learning-rate-file %s is the log that --log-dir writes: copy it first",
                     o->learning_rate_file)
               : HPCT_OK;
}

static hpct_status parse(hpct_control *c, const hpct_fit_options *o, hpct_metric_choice choice)
{
    c->stops = o->early_stopping != NULL;
    c->reduces = o->reduce_lr_on_plateau != NULL;
    c->has_target = o->stop_at != NULL;
    if (c->stops)
        HPCT_TRY(hpct_watch_parse_stopping(&c->stopping, o->early_stopping, choice));
    if (c->reduces)
        HPCT_TRY(hpct_watch_parse_plateau(&c->plateau, o->reduce_lr_on_plateau, choice));
    if (c->has_target)
        HPCT_TRY(hpct_watch_parse_target(&c->target_monitor, &c->target, o->stop_at, choice));
    HPCT_TRY(check_rate_file(o));
    if (c->reduces && o->learning_rate_file != NULL)
        return hpct_fail(HPCT_ERR_USAGE, "--reduce-lr-on-plateau and --learning-rate-file both set "
                                         "the learning rate: give one");
    return HPCT_OK;
}

hpct_status hpct_control_check(const hpct_fit_options *options)
{
    hpct_control ignored = {0};
    return parse(&ignored, options, ANY);
}

/* Rank 0's lines, on all ranks. */
static hpct_status share_rates(hpct_control *c, hpct_status status)
{
    hpct_comm *comm = hpct_context_comm(c->context);
    bool leads = hpct_context_rank(c->context) == 0;
    HPCT_TRY(hpct_context_agree(c->context, status));
    HPCT_TRY(comm->ops->broadcast(comm, &c->rates.count, sizeof c->rates.count, 0));
    if (!leads)
        c->rates.lines = calloc(c->rates.count + 1, sizeof *c->rates.lines);
    HPCT_TRY(hpct_context_agree(
        c->context, c->rates.lines != NULL ? HPCT_OK : hpct_fail_memory(c->rates.count)));
    return comm->ops->broadcast(comm, c->rates.lines, c->rates.count * sizeof *c->rates.lines, 0);
}

static hpct_callback *callback_of(const hpct_callbacks *callbacks, hpct_control_moment moment)
{
    hpct_callback *const all[HPCT_CONTROL_MOMENTS] = {
        [HPCT_CONTROL_EPOCH_BEGIN] = callbacks->epoch_begin,
        [HPCT_CONTROL_BATCH_BEGIN] = callbacks->batch_begin,
        [HPCT_CONTROL_BATCH_END] = callbacks->batch_end,
        [HPCT_CONTROL_EPOCH_END] = callbacks->epoch_end,
    };
    return all[moment];
}

/* A program may give them on some of its ranks alone. */
static hpct_status find_calls(hpct_control *c)
{
    double values[HPCT_CONTROL_MOMENTS] = {0};
    for (int i = 0; i < HPCT_CONTROL_MOMENTS && c->callbacks != NULL; i++)
        values[i] = callback_of(c->callbacks, (hpct_control_moment) i) != NULL;
    HPCT_TRY(hpct_largest(c->context, values, HPCT_CONTROL_MOMENTS));
    for (int i = 0; i < HPCT_CONTROL_MOMENTS; i++) {
        c->calls[i] = values[i] > 0;
        c->has_calls |= c->calls[i];
    }
    return HPCT_OK;
}

hpct_status hpct_control_parse(hpct_control *out, const hpct_fit_options *options,
                               hpct_metric_choice choice, bool scheduled)
{
    HPCT_TRY(parse(out, options, choice));
    if (scheduled && (out->reduces || options->learning_rate_file != NULL))
        return hpct_fail(HPCT_ERR_USAGE,
                         "%s is for runs without --schedule and --warmup-epochs, "
                         "which set the learning rate of each step",
                         out->reduces ? "--reduce-lr-on-plateau" : "--learning-rate-file");
    return HPCT_OK;
}

hpct_status hpct_control_open(hpct_control *c, hpct_context *context,
                              const hpct_fit_options *options)
{
    bool leads = hpct_context_rank(context) == 0;
    c->context = context;
    c->callbacks = options->callbacks;
    c->speaks = leads && options->verbose != 0 ? stdout : NULL;
    HPCT_TRY(find_calls(c));
    if (options->learning_rate_file == NULL)
        return HPCT_OK;
    return share_rates(c, leads ? hpct_rate_file_read(&c->rates, options->learning_rate_file)
                                : HPCT_OK);
}

void hpct_control_close(hpct_control *control)
{
    free(control->rates.lines);
    control->rates = (hpct_rate_file){0};
}

static bool is_reached(const hpct_control *c, double value)
{
    return c->target_monitor.larger ? value >= c->target : value <= c->target;
}

/* With more patience or a further target than before a run goes on. */
bool hpct_control_is_over(const hpct_control *c)
{
    const hpct_watch_notes *n = &c->notes;
    bool early = c->stops && n->early && n->stopping.wait >= c->stopping.patience &&
                 strcmp(n->stopping.monitor, hpct_monitor_name(&c->stopping.monitor)) == 0;
    bool reached = c->has_target && n->reached && n->target.has &&
                   strcmp(n->target.monitor, hpct_monitor_name(&c->target_monitor)) == 0 &&
                   is_reached(c, n->target.best);
    return early || reached || (c->has_calls && n->called);
}

void hpct_control_recall(hpct_control *c, const hpct_watch_notes *notes)
{
    c->notes = *notes;
    if (!hpct_control_is_over(c))
        c->notes.early = c->notes.reached = c->notes.called = false;
}

double hpct_control_rate(const hpct_control *c, int64_t epoch)
{
    double rate = hpct_rate_file_at(&c->rates, epoch);
    return rate > 0 ? ldexp(rate, -c->halvings) : c->notes.rate;
}

/* ---- after an epoch ---- */

static void say(const hpct_control *c, int64_t epoch, const char *text, const char *what)
{
    if (c->speaks == NULL)
        return;
    fprintf(c->speaks, "Epoch %" PRId64 ": %s%s\n", epoch + 1, text, what);
    fflush(c->speaks);
}

static void heed_stopping(hpct_control *c, int64_t epoch, double value, hpct_control_verdict *v)
{
    bool stops = hpct_watch_stops(&c->notes.stopping, &c->stopping, epoch, value, &v->is_best);
    if (v->is_best) /* the weights of this epoch are not there yet */
        c->notes.kept = false;
    if (!stops)
        return;
    v->stop = c->notes.early = true;
    say(c, epoch, "early stopping", "");
}

static void heed_plateau(hpct_control *c, int64_t epoch, double value, double rate,
                         hpct_control_verdict *v)
{
    char text[32];
    double next = hpct_watch_rate(&c->notes.plateau, &c->plateau, value, rate);
    if (next == rate)
        return;
    v->rate = next;
    snprintf(text, sizeof text, "%.6g", next);
    say(c, epoch, "learning rate reduced to ", text);
}

static void heed_target(hpct_control *c, int64_t epoch, double value, hpct_control_verdict *v)
{
    const char *name = hpct_monitor_name(&c->target_monitor);
    if (!is_reached(c, value))
        return;
    v->stop = c->notes.reached = true;
    c->notes.target = (hpct_watch){.has = true, .best = value, .best_epoch = epoch};
    snprintf(c->notes.target.monitor, sizeof c->notes.target.monitor, "%s", name);
    char text[96], number[HPCT_METRIC_TEXT];
    snprintf(text, sizeof text, "%s is %s, training ends (--stop-at)", name,
             hpct_progress_metric(number, value));
    say(c, epoch, text, "");
}

hpct_status hpct_control_call(hpct_control *c, hpct_control_moment moment,
                              hpct_callback_state *state)
{
    hpct_callback *callback = c->callbacks != NULL ? callback_of(c->callbacks, moment) : NULL;
    if (callback == NULL)
        return HPCT_OK;
    HPCT_TRY(callback(c->callbacks->context, state));
    return state->learning_rate > 0 && isfinite(state->learning_rate)
               ? HPCT_OK
               : hpct_fail(HPCT_ERR_USAGE, "a callback has set the learning rate to %g",
                           state->learning_rate);
}

/* Rank 0's learning rate, and any rank's end. */
static hpct_status call_epoch_end(hpct_control *c, hpct_callback_state *state)
{
    hpct_status status = hpct_control_call(c, HPCT_CONTROL_EPOCH_END, state);
    hpct_comm *comm = hpct_context_comm(c->context);
    HPCT_TRY(hpct_context_agree(c->context, status));
    double stop = state->stop;
    HPCT_TRY(hpct_largest(c->context, &stop, 1));
    state->stop = stop > 0;
    return comm->ops->broadcast(comm, &state->learning_rate, sizeof state->learning_rate, 0);
}

static hpct_status heed_callback(hpct_control *c, int64_t epoch, const hpct_metrics known[2],
                                 double rate, hpct_control_verdict *v)
{
    double before = v->rate > 0 ? v->rate : rate;
    hpct_callback_state state = {.epoch = (int) epoch,
                                 .step = -1,
                                 .train = known[0],
                                 .validation = known[1],
                                 .learning_rate = before};
    HPCT_TRY(call_epoch_end(c, &state));
    if (state.learning_rate != before)
        v->rate = state.learning_rate;
    c->notes.called = state.stop;
    v->stop |= state.stop;
    return HPCT_OK;
}

hpct_status hpct_control_epoch_ended(hpct_control *c, int64_t epoch, const hpct_metrics *train,
                                     const hpct_metrics *validation, double rate,
                                     hpct_control_verdict *v)
{
    hpct_metrics known[2] = {*train, *validation};
    *v = (hpct_control_verdict){.rate = c->notes.rate};
    if (!c->stops && !c->reduces && !c->has_target && !c->calls[HPCT_CONTROL_EPOCH_END])
        return HPCT_OK;
    hpct_comm *comm = hpct_context_comm(c->context);
    HPCT_TRY(comm->ops->broadcast(comm, known, sizeof known, 0));
#define VALUE(monitor) hpct_monitor_value(&(monitor), &known[0], &known[1])
    if (c->stops)
        heed_stopping(c, epoch, VALUE(c->stopping.monitor), v);
    if (c->reduces)
        heed_plateau(c, epoch, VALUE(c->plateau.monitor), rate, v);
    if (c->has_target)
        heed_target(c, epoch, VALUE(c->target_monitor), v);
    if (c->calls[HPCT_CONTROL_EPOCH_END])
        HPCT_TRY(heed_callback(c, epoch, known, rate, v));
    c->notes.rate = v->rate;
    return HPCT_OK;
}
