/* agent/train/observer.h - what follows from a run's steps and epochs: an observer for each output
 * and each decision, as Keras has callbacks. Their table is in observers.c. */
#ifndef HPCT_AGENT_TRAIN_OBSERVER_H
#define HPCT_AGENT_TRAIN_OBSERVER_H

#include "agent/results/live.h"
#include "agent/train/training.h"

#include <stddef.h>

typedef enum hpct_train_event {
    HPCT_TRAIN_ON_CHECK,       /* of options, local to the rank */
    HPCT_TRAIN_ON_OPEN,        /* it is known where the run begins; the model is not built yet */
    HPCT_TRAIN_ON_BEGIN,       /* all is built, before step 1 */
    HPCT_TRAIN_ON_EPOCH,       /* an epoch begins */
    HPCT_TRAIN_ON_STEP,        /* a step begins */
    HPCT_TRAIN_ON_STEP_ENDED,  /* its sums are in training->now */
    HPCT_TRAIN_ON_EPOCH_ENDED, /* it is trained, and evaluated unless it was cut */
    HPCT_TRAIN_ON_SETTLED,     /* the log folder's files are this run's from now on */
    HPCT_TRAIN_EVENTS
} hpct_train_event;

/* `own` is the observer's state. A hook that is NULL does nothing. Hooks of OPEN, BEGIN and `end`
 * may fail on some ranks alone; those of the other events agree, if they can fail. */
typedef struct hpct_train_observer {
    size_t size; /* of its state, which begins with zeros */
    bool sees_cut_epochs;
    hpct_status (*on[HPCT_TRAIN_EVENTS])(void *own, hpct_train_training *training);
    void (*save)(void *own, hpct_train_training *training,
                 hpct_train_place *place); /* into a checkpoint */
    hpct_status (*end)(void *own,
                       hpct_train_training *training);       /* training is over: last outputs */
    void (*close)(void *own, hpct_train_training *training); /* frees, also after an error */
} hpct_train_observer;

/* Calls all observers in the table's order. Collective but for CHECK and SETTLED. */
hpct_status hpct_train_observe(hpct_train_training *training, hpct_train_event event);
void hpct_train_observe_save(hpct_train_training *training, hpct_train_place *place);

/* In the reverse order. An error of one is recorded, and the others are called if the ranks can go
 * on; returned is one that ends this. Collective. */
hpct_status hpct_train_observe_end(hpct_train_training *training);
void hpct_train_observe_close(hpct_train_training *training); /* keeps the last error */

/* The first files of this run take the place of an earlier one's: once. */
void hpct_train_observe_settle(hpct_train_training *training);

/* An observer's state, for its own file. */
void *hpct_train_observed(const hpct_train_training *training, const hpct_train_observer *observer);

/* NULL: none. */
hpct_results_live *hpct_train_observed_live(const hpct_train_training *training);
hpct_train_pace_file *hpct_train_observed_pace_file(const hpct_train_training *training);

/* After the last checkpoint: the best epoch's weights, if restore_best was asked for, into the
 * gathered model. Collective. */
hpct_status hpct_train_observed_restore_best(hpct_train_training *training);

extern const hpct_train_observer hpct_train_observe_best;
extern const hpct_train_observer hpct_train_observe_board;
extern const hpct_train_observer hpct_train_observe_control;
extern const hpct_train_observer hpct_train_observe_deadline;
extern const hpct_train_observer hpct_train_observe_history;
extern const hpct_train_observer hpct_train_observe_live;
extern const hpct_train_observer hpct_train_observe_matrix;
extern const hpct_train_observer hpct_train_observe_pace;
extern const hpct_train_observer hpct_train_observe_progress;
extern const hpct_train_observer hpct_train_observe_run_file;
extern const hpct_train_observer hpct_train_observe_timeline;

#endif
