/* agent/history.h - what rank 0 writes while it trains: history.csv (as Keras' CSVLogger) and
 * metrics.jsonl (one object a step). Lines that cannot be written are kept in memory and tried
 * again at the next epoch's end; what is in the files are whole lines. */
#ifndef HPCT_AGENT_HISTORY_H
#define HPCT_AGENT_HISTORY_H

#include <hpctrain/train.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct hpct_history hpct_history;

#define HPCT_HISTORY_EPOCHS "history.csv"
#define HPCT_HISTORY_STEPS "metrics.jsonl"

/* Columns of history.csv that not every run has. */
enum { HPCT_HISTORY_VALIDATION = 1, HPCT_HISTORY_TOP_K = 2 };

/* Makes the folder and begins both files. Those of an earlier run stay until the first epoch that
 * is good has ended. HPCT_ERR_IO, naming the file. */
hpct_status hpct_history_open(hpct_history **out, const char *folder, int columns);

/* One line of metrics.jsonl; epoch and step from 1. Errors show at the epoch's end. */
void hpct_history_step(hpct_history *history, int epoch, int64_t step, const hpct_metrics *metrics);

/* One line of history.csv, epoch from 0 as Keras counts there; flushes both files. The learning
 * rate is that of the next step, as Keras notes it. `good`: training has not diverged. HPCT_ERR_IO:
 * some lines are not in the files, or these not at their place, so far. */
hpct_status hpct_history_epoch(hpct_history *history, int epoch, const hpct_metrics *metrics,
                               const hpct_metrics *validation, double learning_rate, bool good);

/* Closes; HPCT_ERR_IO when what was written did not all reach the files. A run without a good epoch
 * leaves the files of an earlier one: what it noted of epochs goes into diverged-NAME. NULL is
 * allowed. */
hpct_status hpct_history_close(hpct_history *history);

#endif
