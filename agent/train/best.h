/* agent/train/best.h - the best epoch so far by one of the metrics, as Keras' ModelCheckpoint with
 * save_best_only has it. */
#ifndef HPCT_AGENT_TRAIN_BEST_H
#define HPCT_AGENT_TRAIN_BEST_H

#include "agent/train/monitor.h"

#include <hpctrain/train.h>
#include <stdbool.h>

/* Where a run's best epoch is kept, and in a checkpoint. */
typedef struct hpct_best {
    bool has;
    double value;
    char monitor[40]; /* that it is a value of */
} hpct_best;

/* The metric of options->monitor, or its default: val_loss, without validation data loss.
 * HPCT_ERR_USAGE as hpct_monitor_find. */
hpct_status hpct_best_monitor(hpct_monitor *out, const hpct_fit_options *options,
                              hpct_metric_choice choice);

/* Whether this value is the best so far, and notes it. Values that are not finite are none. */
bool hpct_best_note(hpct_best *best, const hpct_monitor *monitor, double value);

#endif
