/* agent/results/history.h - rank 0's logs: history.csv (as Keras' CSVLogger) and metrics.jsonl (one
 * object per step). Lines that cannot be written are buffered and retried at the end of the next
 * epoch; the files contain whole lines. */
#ifndef HPCT_AGENT_RESULTS_HISTORY_H
#define HPCT_AGENT_RESULTS_HISTORY_H

#include "agent/results/metric.h"
#include "agent/results/results.h"
#include "base/output.h"

#include <hpctrain/train.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct hpct_results_history hpct_results_history;

/* Where a log ends: its size, -1 for none, and its last bytes, by which it is recognized. */
typedef struct hpct_results_history_end {
    int64_t bytes;
    char end[HPCT_OUTPUT_END];
} hpct_results_history_end;

typedef struct hpct_results_history_place {
    hpct_results_history_end csv, steps;
} hpct_results_history_place;
#define HPCT_RESULTS_HISTORY_NONE ((hpct_results_history_place){{.bytes = -1}, {.bytes = -1}})

/* Creates the folder and both files. Those of an earlier run stay until the first good epoch has
 * ended. `from`: of a run that this one continues (hpct_results_history_mark), whose later lines
 * are removed. If they are no longer there, the files begin anew, after a message. Returns
 * HPCT_ERR_IO, naming the file; HPCT_ERR_CONFIG if what is there is another run's, has other
 * columns, or is being written. */
hpct_status hpct_results_history_open(hpct_results_history **out, const char *folder,
                                      const hpct_results_metric_choice *choice,
                                      const hpct_results_history_place *from);

/* Whether history.csv goes on from what `from` says. */
bool hpct_results_history_continues(const hpct_results_history *history);

/* For a checkpoint: writes all lines, gives the files their names, and returns where they end; -1
 * where that fails. An earlier run's files that no good epoch replaces become earlier-NAME. */
void hpct_results_history_mark(hpct_results_history *history, hpct_results_history_place *place);

/* A line of metrics.jsonl; epoch and step from 1. Errors are reported at the end of the epoch. */
void hpct_results_history_step(hpct_results_history *history, int epoch, int64_t step,
                               const hpct_metrics *metrics);

/* A line of history.csv, epoch from 0 as in Keras; flushes both files. The learning rate is the
 * next step's, as in Keras. `good`: training has not diverged. Returns HPCT_ERR_IO if lines are
 * still missing, or the files not in place. */
hpct_status hpct_results_history_epoch(hpct_results_history *history, int epoch,
                                       const hpct_metrics *metrics, const hpct_metrics *validation,
                                       double learning_rate, bool good);

/* Closes; HPCT_ERR_IO if not everything was written. A run without a good epoch keeps an earlier
 * run's files; its own lines go to diverged-NAME. NULL is allowed. */
hpct_status hpct_results_history_close(hpct_results_history *history);

#endif
