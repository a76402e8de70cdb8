/* The observers of a run, and the calls to them. */
#include "agent/train/observer.h"

#include "agent/rank/context.h"
#include "base/status.h"

#include <stdlib.h>

/* In the order of calls, which is the same on all ranks, and so is that of their collective calls.
 * run.json reads what a killed start left in status.json before it is written again.
 * What prints a step or an epoch comes before what prints what follows from it. The end is in
 * reverse: run.json has the errors of the outputs below it. Checkpoints are saved after all of
 * them. */
static const hpct_train_observer *const observers[] = {
    &hpct_train_observe_pace,     /* pace.jsonl, slow nodes; collective every few seconds */
    &hpct_train_observe_deadline, /* the job's time limit: raises a signal, which steps reduce */
    &hpct_train_observe_progress, /* standard output */
    &hpct_train_observe_board,    /* event files; collective where histograms are due */
    &hpct_train_observe_history,  /* history.csv, metrics.jsonl; settles the log folder */
    &hpct_train_observe_timeline, /* collective at the end */
    &hpct_train_observe_run_file, /* run.json, --summary-json; collective at the end */
    &hpct_train_observe_live,     /* status.json, --metrics-file */
    &hpct_train_observe_matrix,   /* --confusion-matrix */
    &hpct_train_observe_best,     /* collective with --save-best */
    &hpct_train_observe_control,  /* stopping, learning rates, callbacks; collective where they
                                     decide */
};
enum { NUM = sizeof observers / sizeof *observers };
_Static_assert(NUM <= HPCT_TRAIN_MOST_OBSERVERS, "each has a state");

/* Each rank's status, on all; of a rank that is lost no other can be asked. */
static hpct_status agree(const hpct_train_training *t, hpct_status status)
{
    return status == HPCT_ERR_PEER ? status : hpct_context_agree(t->context, status);
}

static hpct_status allocate(hpct_train_training *t)
{
    for (int i = 0; i < NUM; i++) {
        t->own[i] = calloc(1, observers[i]->size + 1);
        if (t->own[i] == NULL)
            return hpct_fail_memory(observers[i]->size);
    }
    return HPCT_OK;
}

hpct_status hpct_train_observe(hpct_train_training *t, hpct_train_event event)
{
    bool agrees = event == HPCT_TRAIN_ON_OPEN || event == HPCT_TRAIN_ON_BEGIN;
    if (event == HPCT_TRAIN_ON_CHECK)
        HPCT_TRY(allocate(t));
    for (int i = 0; i < NUM; i++) {
        const hpct_train_observer *o = observers[i];
        if (o->on[event] == NULL ||
            (event == HPCT_TRAIN_ON_EPOCH_ENDED && t->now.cut && !o->sees_cut_epochs))
            continue;
        hpct_status status = o->on[event](t->own[i], t);
        HPCT_TRY(agrees ? agree(t, status) : status);
    }
    return HPCT_OK;
}

void hpct_train_observe_settle(hpct_train_training *t)
{
    if (!t->now.settled) {
        t->now.settled = true;
        hpct_train_observe(t, HPCT_TRAIN_ON_SETTLED);
    }
}

void hpct_train_observe_save(hpct_train_training *t, hpct_train_place *place)
{
    for (int i = 0; i < NUM; i++) {
        if (observers[i]->save != NULL)
            observers[i]->save(t->own[i], t, place);
    }
}

hpct_status hpct_train_observe_end(hpct_train_training *t)
{
    for (int i = NUM; i-- > 0;) {
        hpct_status status =
            observers[i]->end != NULL ? agree(t, observers[i]->end(t->own[i], t)) : HPCT_OK;
        if (!hpct_train_training_went(t, status))
            return status;
    }
    return HPCT_OK;
}

void hpct_train_observe_close(hpct_train_training *t)
{
    for (int i = NUM; i-- > 0;) {
        char *kept = hpct_error_keep();
        if (observers[i]->close != NULL && t->own[i] != NULL)
            observers[i]->close(t->own[i], t);
        hpct_error_restore(kept);
        free(t->own[i]);
        t->own[i] = NULL;
    }
}

void *hpct_train_observed(const hpct_train_training *t, const hpct_train_observer *observer)
{
    for (int i = 0; i < NUM; i++) {
        if (observers[i] == observer)
            return t->own[i];
    }
    return NULL;
}
