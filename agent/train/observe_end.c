/* What is written at the end alone: the timeline, and the confusion matrix. */
#include "agent/data/dataset.h"
#include "agent/train/observer.h"

static hpct_status begin_step(void *own, hpct_train_training *t)
{
    (void) own;
    hpct_rank_timeline_step(t->timeline);
    return HPCT_OK;
}

static hpct_status write_timeline(void *own, hpct_train_training *t)
{
    (void) own;
    return t->now.how != HPCT_RESULTS_LIVE_FAILED && t->now.steps_done > 0
               ? hpct_rank_timeline_write(t->timeline, t->context)
               : HPCT_OK;
}

const hpct_train_observer hpct_train_observe_timeline = {
    .on = {[HPCT_TRAIN_ON_STEP] = begin_step},
    .end = write_timeline,
};

/* Of the last epoch that was evaluated; a run without one keeps an earlier file. */
static hpct_status write_matrix(void *own, hpct_train_training *t)
{
    (void) own;
    return t->options.confusion_matrix != NULL && t->now.how != HPCT_RESULTS_LIVE_FAILED &&
                   t->now.epochs_done > 0 && t->leads
               ? hpct_results_tally_write(t->tally, t->train->classes, t->train->num_classes,
                                          t->options.confusion_matrix)
               : HPCT_OK;
}

const hpct_train_observer hpct_train_observe_matrix = {.end = write_matrix};
