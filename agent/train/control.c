/* Decisions after an epoch. */
#include "agent/train/control.h"

#include "agent/rank/largest.h"
#include "agent/results/progress.h"
#include "base/status.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANY ((hpct_monitor_has){true, true})

/* ---- options ---- */

static hpct_status parse(hpct_control *c, const hpct_fit_options *o, hpct_monitor_has has)
{
    c->stops = o->early_stopping != NULL;
    c->reduces = o->reduce_lr_on_plateau != NULL;
    c->has_target = o->stop_at != NULL;
    if (c->stops)
        HPCT_TRY(hpct_watch_parse_stopping(&c->stopping, o->early_stopping, has));
    if (c->reduces)
        HPCT_TRY(hpct_watch_parse_plateau(&c->plateau, o->reduce_lr_on_plateau, has));
    if (c->has_target)
        HPCT_TRY(hpct_watch_parse_target(&c->target_monitor, &c->target, o->stop_at, has));
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

hpct_status hpct_control_open(hpct_control *out, hpct_context *context,
                              const hpct_fit_options *options, bool has_top_k, bool scheduled)
{
    bool leads = context == NULL || hpct_context_rank(context) == 0;
    *out = (hpct_control){.context = context,
                          .callbacks = options->callbacks,
                          .speaks = leads && options->verbose != 0 ? stdout : NULL};
    HPCT_TRY(parse(out, options, (hpct_monitor_has){options->validation != NULL, has_top_k}));
    if (scheduled && (out->reduces || options->learning_rate_file != NULL))
        return hpct_fail(HPCT_ERR_USAGE,
                         "%s is for runs without --schedule and --warmup-epochs, "
                         "which set the learning rate of each step",
                         out->reduces ? "--reduce-lr-on-plateau" : "--learning-rate-file");
    if (options->learning_rate_file == NULL)
        return HPCT_OK;
    hpct_status status =
        leads ? hpct_rate_file_read(&out->rates, options->learning_rate_file) : HPCT_OK;
    return context != NULL ? share_rates(out, status) : status;
}

void hpct_control_close(hpct_control *control)
{
    free(control->rates.lines);
    control->rates = (hpct_rate_file){0};
}

/* With more patience than before a run goes on. */
bool hpct_control_is_over(const hpct_control *c)
{
    return c->notes.stopped && (c->has_target || c->callbacks != NULL ||
                                (c->stops && c->notes.stopping.wait >= c->stopping.patience));
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
    if (!hpct_watch_stops(&c->notes.stopping, &c->stopping, epoch, value, &v->is_best))
        return;
    v->stop = true;
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
    if (c->target_monitor.larger ? !(value >= c->target) : !(value <= c->target))
        return;
    v->stop = true;
    char text[96], number[HPCT_METRIC_TEXT];
    snprintf(text, sizeof text, "%s is %s, training ends (--stop-at)",
             hpct_monitor_name(&c->target_monitor), hpct_progress_metric(number, value));
    say(c, epoch, text, "");
}

hpct_status hpct_control_call(hpct_control *c, hpct_callback *callback, hpct_callback_state *state)
{
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
    hpct_status status = hpct_control_call(c, c->callbacks->epoch_end, state);
    if (c->context == NULL)
        return status;
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
    v->stop |= state.stop;
    return HPCT_OK;
}

hpct_status hpct_control_epoch_ended(hpct_control *c, int64_t epoch, const hpct_metrics *train,
                                     const hpct_metrics *validation, double rate,
                                     hpct_control_verdict *v)
{
    hpct_metrics known[2] = {*train, *validation};
    *v = (hpct_control_verdict){.rate = c->notes.rate};
    if (!c->stops && !c->reduces && !c->has_target && c->callbacks == NULL)
        return HPCT_OK;
    if (c->context != NULL) {
        hpct_comm *comm = hpct_context_comm(c->context);
        HPCT_TRY(comm->ops->broadcast(comm, known, sizeof known, 0));
    }
#define VALUE(monitor) hpct_monitor_value(&(monitor), &known[0], &known[1])
    if (c->stops)
        heed_stopping(c, epoch, VALUE(c->stopping.monitor), v);
    if (c->reduces)
        heed_plateau(c, epoch, VALUE(c->plateau.monitor), rate, v);
    if (c->has_target)
        heed_target(c, epoch, VALUE(c->target_monitor), v);
    if (c->callbacks != NULL)
        HPCT_TRY(heed_callback(c, epoch, known, rate, v));
    c->notes.rate = v->rate;
    c->notes.stopped = v->stop;
    return HPCT_OK;
}
