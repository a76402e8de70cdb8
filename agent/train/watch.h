/* agent/train/watch.h - Keras' EarlyStopping and ReduceLROnPlateau, as functions of one value an
 * epoch (keras/src/callbacks, Keras 3). A value that is NaN is never better; Keras takes it as the
 * best if it is the first. Independent of ranks and models. */
#ifndef HPCT_AGENT_TRAIN_WATCH_H
#define HPCT_AGENT_TRAIN_WATCH_H

#include "agent/train/monitor.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Of both; what only one of them has is 0 in the other. */
typedef struct hpct_train_watch_options {
    hpct_train_monitor monitor;
    double min_delta;
    int64_t patience; /* epochs */
    /* early stopping */
    bool has_baseline, restore_best;
    double baseline;
    int64_t start_from_epoch;
    /* plateau */
    double factor, min_lr;
    int64_t cooldown; /* epochs */
} hpct_train_watch_options;

/* "MONITOR[:KEY=VALUE,…]": patience, min_delta, mode, and baseline, restore_best, start_from_epoch,
 * or factor, min_lr, cooldown. HPCT_ERR_USAGE, naming the option. */
hpct_status hpct_train_watch_parse_stopping(hpct_train_watch_options *out, const char *text,
                                            hpct_results_metric_choice choice);
hpct_status hpct_train_watch_parse_plateau(hpct_train_watch_options *out, const char *text,
                                           hpct_results_metric_choice choice);

/* "METRIC=VALUE". */
hpct_status hpct_train_watch_parse_target(hpct_train_monitor *monitor, double *target,
                                          const char *text, hpct_results_metric_choice choice);

/* How far one of them is, also in a checkpoint. */
typedef struct hpct_train_watch {
    bool has;
    double best;
    char monitor[40]; /* that it is a value of */
    int64_t best_epoch, wait, cooldown;
} hpct_train_watch;

/* What a checkpoint keeps. */
typedef struct hpct_train_watch_notes {
    hpct_train_watch stopping, plateau;
    hpct_train_watch target; /* best: the value that has reached it */
    double rate;             /* learning rate that has been set; 0: the schedule's */
    bool kept;               /* the best epoch's weights are in the folder */
    /* Training has ended by itself: by early stopping, by a target, by a callback. */
    bool early, reached, called;
} hpct_train_watch_notes;

/* NULL if out of memory. Of what is missing or of another type the notes begin anew; numbers are as
 * they are there. */
json_t *hpct_train_watch_to_json(const hpct_train_watch_notes *notes);
hpct_train_watch_notes hpct_train_watch_from_json(const json_t *from);

/* After an epoch, counted from 0: whether training ends; *is_best: it is the best so far. */
bool hpct_train_watch_stops(hpct_train_watch *watch, const hpct_train_watch_options *options,
                            int64_t epoch, double value, bool *is_best);

/* The learning rate after an epoch that had `rate`. */
double hpct_train_watch_rate(hpct_train_watch *watch, const hpct_train_watch_options *options,
                             double value, double rate);

#endif
