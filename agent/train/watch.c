/* Counters of epochs without progress. */
#include "agent/train/watch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- in a checkpoint ---- */

static json_t *one_to_json(const hpct_train_watch *w)
{
    return json_pack("{s:s,s:o,s:I,s:I,s:I}", "monitor", w->monitor, "best",
                     w->has ? json_real(w->best) : json_null(), "best_epoch",
                     (json_int_t) w->best_epoch, "wait", (json_int_t) w->wait, "cooldown",
                     (json_int_t) w->cooldown);
}

static hpct_train_watch one_from_json(const json_t *from)
{
    const char *monitor = "";
    json_int_t best_epoch = 0, wait = 0, cooldown = 0;
    const json_t *best = json_object_get(from, "best");
    hpct_train_watch w = {0};
    if (json_unpack((json_t *) (uintptr_t) from, "{s:s,s:I,s:I,s:I}", "monitor", &monitor,
                    "best_epoch", &best_epoch, "wait", &wait, "cooldown", &cooldown) != 0)
        return w;
    snprintf(w.monitor, sizeof w.monitor, "%s", monitor);
    w.has = json_is_number(best);
    w.best = json_number_value(best);
    w.best_epoch = best_epoch;
    w.wait = wait;
    w.cooldown = cooldown;
    return w;
}

json_t *hpct_train_watch_to_json(const hpct_train_watch_notes *notes)
{
    return json_pack("{s:o,s:o,s:o,s:f,s:b,s:b,s:b,s:b}", "early_stopping",
                     one_to_json(&notes->stopping), "plateau", one_to_json(&notes->plateau),
                     "target", one_to_json(&notes->target), "learning_rate", notes->rate, "kept",
                     notes->kept ? 1 : 0, "early", notes->early ? 1 : 0, "reached",
                     notes->reached ? 1 : 0, "called", notes->called ? 1 : 0);
}

hpct_train_watch_notes hpct_train_watch_from_json(const json_t *from)
{
    return (hpct_train_watch_notes){
        .stopping = one_from_json(json_object_get(from, "early_stopping")),
        .plateau = one_from_json(json_object_get(from, "plateau")),
        .target = one_from_json(json_object_get(from, "target")),
        .rate = json_number_value(json_object_get(from, "learning_rate")),
        .kept = json_is_true(json_object_get(from, "kept")),
        .early = json_is_true(json_object_get(from, "early")),
        .reached = json_is_true(json_object_get(from, "reached")),
        .called = json_is_true(json_object_get(from, "called")),
    };
}

/* ---- after an epoch ---- */

/* Of another metric it begins anew. */
static void begin(hpct_train_watch *w, const hpct_train_monitor *monitor)
{
    const char *name = hpct_train_monitor_name(monitor);
    if (strcmp(w->monitor, name) == 0)
        return;
    *w = (hpct_train_watch){0};
    snprintf(w->monitor, sizeof w->monitor, "%s", name);
}

static bool improves(hpct_train_watch *w, const hpct_train_watch_options *options, double value)
{
    if (isnan(value) || (w->has && !hpct_train_monitor_is_better(&options->monitor, value, w->best,
                                                                 options->min_delta)))
        return false;
    w->has = true;
    w->best = value;
    return true;
}

bool hpct_train_watch_stops(hpct_train_watch *w, const hpct_train_watch_options *o, int64_t epoch,
                            double value, bool *is_best)
{
    begin(w, &o->monitor);
    *is_best = false;
    if (epoch < o->start_from_epoch)
        return false;
    w->wait++;
    if (improves(w, o, value)) {
        *is_best = true;
        w->best_epoch = epoch;
        if (!o->has_baseline ||
            hpct_train_monitor_is_better(&o->monitor, value, o->baseline, o->min_delta))
            w->wait = 0;
        return false;
    }
    return w->wait >= o->patience && epoch > 0;
}

double hpct_train_watch_rate(hpct_train_watch *w, const hpct_train_watch_options *o, double value,
                             double rate)
{
    begin(w, &o->monitor);
    if (w->cooldown > 0) {
        w->cooldown--;
        w->wait = 0;
    }
    if (improves(w, o, value)) {
        w->wait = 0;
        return rate;
    }
    if (w->cooldown > 0 || ++w->wait < o->patience || rate <= o->min_lr)
        return rate;
    w->cooldown = o->cooldown;
    w->wait = 0;
    return fmax(rate * o->factor, o->min_lr);
}
