/* The best epoch so far by one of the metrics, as Keras' ModelCheckpoint with save_best_only has
 * it: for --save-best, and for checkpoints. */
#include "agent/rank/context.h"
#include "agent/train/means.h"
#include "agent/train/monitor.h"
#include "agent/train/observer.h"
#include "base/progress.h"
#include "base/status.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct observed {
    hpct_train_monitor monitor;
    hpct_train_best best; /* so far */
    hpct_status failed;   /* of writing the last best weights; the same on all ranks */
} observed;

static hpct_status check(void *own, hpct_train_training *t)
{
    observed *o = own;
    const hpct_fit_options *options = &t->options;
    hpct_results_metric_choice choice = hpct_train_metrics_chosen(options, t->model);
    const char *name = options->monitor != NULL ? options->monitor
                       : choice.validation      ? "val_loss"
                                                : "loss";
    return hpct_train_monitor_find(&o->monitor, "--monitor", name, "--mode", options->monitor_mode,
                                   choice);
}

static hpct_status recall(void *own, hpct_train_training *t)
{
    observed *o = own;
    o->best = t->begin.best;
    return HPCT_OK;
}

/* Whether this value is the best so far, and notes it. Values that are not finite are none. */
static bool note(hpct_train_best *best, const hpct_train_monitor *monitor, double value)
{
    const char *name = hpct_train_monitor_name(monitor);
    if (strcmp(best->monitor, name) != 0) /* another one's value says nothing of this one */
        best->has = false;
    if (!isfinite(value) ||
        (best->has && !hpct_train_monitor_is_better(monitor, value, best->value, 0)))
        return false;
    *best = (hpct_train_best){.has = true, .value = value};
    snprintf(best->monitor, sizeof best->monitor, "%s", name);
    return true;
}

/* Elsewhere if need be; an earlier good file stays. */
static hpct_status save_best(const hpct_train_training *t)
{
    hpct_results_end end = t->now.end;
    hpct_status status = hpct_results_save(t->model, t->options.save_best, &end);
    if (status != HPCT_OK)
        fprintf(stderr,
                "hpc-train: --save-best: %s%s%s; it is tried again after the next better epoch\n",
                hpct_last_error(), end.where[0] != '\0' ? "; the weights are in " : "", end.where);
    return status;
}

/* Collective if options.save_best is given. Errors are printed, and returned at the end. */
static hpct_status epoch_ended(void *own, hpct_train_training *t)
{
    observed *o = own;
    hpct_status status = HPCT_OK;
    const hpct_fit_result *known = &t->now.result;
    if (t->strategy == NULL) /* parameter servers have no best epoch */
        return HPCT_OK;
    t->now.is_best = !hpct_results_diverged(&t->now.end) &&
                     note(&o->best, &o->monitor,
                          hpct_train_monitor_value(&o->monitor, &known->train, &known->validation));
    if (!t->now.is_best || t->options.save_best == NULL)
        return HPCT_OK;
    HPCT_TRY(hpct_train_training_gather(t));
    hpct_waits before = hpct_enter_wait(HPCT_WAITS_UNSEEN); /* as for the last weights */
    if (t->leads)
        status = save_best(t);
    hpct_enter_wait(before);
    o->failed = status = hpct_context_agree(t->context, status);
    return status == HPCT_OK || hpct_context_all_know(t->context, status) ? HPCT_OK : status;
}

static void save(void *own, hpct_train_training *t, hpct_train_place *place)
{
    const observed *o = own;
    (void) t;
    place->best = o->best;
}

static hpct_status end(void *own, hpct_train_training *t)
{
    const observed *o = own;
    return o->failed == HPCT_OK
               ? HPCT_OK
               : hpct_fail(o->failed, "the weights of the best epoch are not in %s",
                           t->options.save_best);
}

const hpct_train_observer hpct_train_observe_best = {
    .size = sizeof(observed),
    .on = {[HPCT_TRAIN_ON_CHECK] = check,
           [HPCT_TRAIN_ON_OPEN] = recall,
           [HPCT_TRAIN_ON_EPOCH_ENDED] = epoch_ended},
    .save = save,
    .end = end,
};
