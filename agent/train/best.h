/* agent/train/best.h - the best epoch so far by one of the metrics, as Keras' ModelCheckpoint with
 * save_best_only has it. */
#ifndef HPCT_AGENT_TRAIN_BEST_H
#define HPCT_AGENT_TRAIN_BEST_H

#include <hpctrain/train.h>
#include <stdbool.h>

/* Where a run's best epoch is kept, and in a checkpoint. */
typedef struct hpct_best {
    bool has;
    double value;
    char monitor[40]; /* that it is a value of */
} hpct_best;

/* The metric, or its default: val_loss, without validation data loss. */
const char *hpct_best_monitor(const hpct_fit_options *options);

/* HPCT_ERR_USAGE for options that mean nothing, or a metric that the run will not have. */
hpct_status hpct_best_check(const hpct_fit_options *options, bool has_top_k);

/* Whether the epoch with these metrics is the best so far, and notes it. Values that are not finite
 * are none. Independent of ranks. */
bool hpct_best_note(hpct_best *best, const hpct_fit_options *options, const hpct_metrics *train,
                    const hpct_metrics *validation);

#endif
