/* agent/train/control.h - what decides after an epoch how training goes on: early stopping, a
 * target, the learning rate by a file or on a plateau, and callbacks of the program. All ranks
 * decide on rank 0's metrics, and so alike. */
#ifndef HPCT_AGENT_TRAIN_CONTROL_H
#define HPCT_AGENT_TRAIN_CONTROL_H

#include "agent/rank/context.h"
#include "agent/train/rate_file.h"
#include "agent/train/watch.h"

#include <hpctrain/train.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef enum hpct_control_moment {
    HPCT_CONTROL_EPOCH_BEGIN,
    HPCT_CONTROL_BATCH_BEGIN,
    HPCT_CONTROL_BATCH_END,
    HPCT_CONTROL_EPOCH_END,
    HPCT_CONTROL_MOMENTS
} hpct_control_moment;

typedef struct hpct_control {
    hpct_context *context;
    const hpct_callbacks *callbacks;             /* of this rank; NULL: none */
    bool calls[HPCT_CONTROL_MOMENTS], has_calls; /* of any rank */
    bool stops, reduces, has_target;
    hpct_watch_options stopping, plateau;
    hpct_monitor target_monitor;
    double target;
    hpct_rate_file rates;
    int halvings; /* of those rates */
    hpct_watch_notes notes;
    FILE *speaks; /* NULL: it does not */
} hpct_control;

/* Checks the options' text alone. HPCT_ERR_USAGE. */
hpct_status hpct_control_check(const hpct_fit_options *options);

/* Parses the options for a run, and reads no file. `scheduled`: the optimizer has a schedule.
 * HPCT_ERR_USAGE. */
hpct_status hpct_control_parse(hpct_control *out, const hpct_fit_options *options,
                               hpct_metric_choice choice, bool scheduled);

/* Of a control that is parsed: rank 0 reads the file of learning rates. Collective. */
hpct_status hpct_control_open(hpct_control *control, hpct_context *context,
                              const hpct_fit_options *options);
void hpct_control_close(hpct_control *control); /* zeros are allowed */

/* Goes on from what a checkpoint has kept. */
void hpct_control_recall(hpct_control *control, const hpct_watch_notes *notes);

/* Whether the run that is continued has ended training by itself, and these options say so, too. */
bool hpct_control_is_over(const hpct_control *control);

/* The learning rate that an epoch begins with; 0: the schedule's. */
double hpct_control_rate(const hpct_control *control, int64_t epoch);

/* What follows from an epoch. */
typedef struct hpct_control_verdict {
    bool stop;    /* training ends */
    bool is_best; /* its weights are to be kept for restore_best */
    double rate;  /* of the next epoch; 0: the schedule's */
} hpct_control_verdict;

/* `rate`: the one in use. Collective. */
hpct_status hpct_control_epoch_ended(hpct_control *control, int64_t epoch,
                                     const hpct_metrics *train, const hpct_metrics *validation,
                                     double rate, hpct_control_verdict *verdict);

/* Calls this rank's callback for a moment, if it has one. */
hpct_status hpct_control_call(hpct_control *control, hpct_control_moment moment,
                              hpct_callback_state *state);

#endif
