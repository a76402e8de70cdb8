/* history.csv and metrics.jsonl. Once they are in place, so are the log folder's other files. */
#include "agent/results/history.h"
#include "agent/train/means.h"
#include "agent/train/observer.h"
#include "base/status.h"
#include "nn/run/step.h"

typedef struct observed {
    hpct_results_history *history; /* NULL: no log folder, or another rank's */
} observed;

static hpct_status open_history(void *own, hpct_train_training *t)
{
    observed *o = own;
    hpct_results_metric_choice choice = hpct_train_metrics_chosen(&t->options, t->model);
    if (!t->leads || t->options.log_dir == NULL)
        return HPCT_OK;
    HPCT_TRY(hpct_results_history_open(&o->history, t->options.log_dir, &choice, &t->begin.logs));
    t->continues = hpct_results_history_continues(o->history);
    return HPCT_OK;
}

static hpct_status step_ended(void *own, hpct_train_training *t)
{
    const observed *o = own;
    if (o->history == NULL)
        return HPCT_OK;
    if (t->now.last.samples > 0) {
        hpct_metrics one = hpct_train_training_mean(t, &t->now.last);
        hpct_results_history_step(o->history, t->now.epoch + 1, t->now.sums.steps, &one);
    }
    if (t->continues) /* a start that is killed later is known, too */
        hpct_train_observe_settle(t);
    return HPCT_OK;
}

/* An error is printed now and retried; it is reported again at the end. */
static hpct_status epoch_ended(void *own, hpct_train_training *t)
{
    const observed *o = own;
    const hpct_train_moment *now = &t->now;
    double rate = now->rate > 0 ? now->rate : hpct_model_last_learning_rate(t->model);
    if (o->history == NULL)
        return HPCT_OK;
    hpct_train_training_say_retried(
        t, hpct_results_history_epoch(o->history, now->epoch, &now->result.train,
                                      &now->result.validation, rate, now->good));
    if (now->good)
        hpct_train_observe_settle(t);
    return HPCT_OK;
}

static void save(void *own, hpct_train_training *t, hpct_train_place *place)
{
    const observed *o = own;
    if (o->history == NULL)
        return;
    hpct_results_history_mark(o->history, &place->logs);
    hpct_train_observe_settle(t);
}

static hpct_status end(void *own, hpct_train_training *t)
{
    observed *o = own;
    hpct_results_history *history = o->history;
    (void) t;
    o->history = NULL;
    return hpct_results_history_close(history);
}

static void close_history(void *own, hpct_train_training *t)
{
    end(own, t);
}

const hpct_train_observer hpct_train_observe_history = {
    .size = sizeof(observed),
    .on = {[HPCT_TRAIN_ON_OPEN] = open_history,
           [HPCT_TRAIN_ON_STEP_ENDED] = step_ended,
           [HPCT_TRAIN_ON_EPOCH_ENDED] = epoch_ended},
    .save = save,
    .end = end,
    .close = close_history,
};
