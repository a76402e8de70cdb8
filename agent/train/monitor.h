/* agent/train/monitor.h - a metric of an epoch that decides something: which epoch is the best,
 * when to stop. Names are those of history.csv; Keras says `monitor`. */
#ifndef HPCT_AGENT_TRAIN_MONITOR_H
#define HPCT_AGENT_TRAIN_MONITOR_H

#include "agent/results/metric.h"

typedef struct hpct_train_monitor {
    const hpct_results_metric *metric;
    bool of_validation, larger; /* larger: is better */
} hpct_train_monitor;

/* mode: "min", "max", "auto" or NULL: by the metric. HPCT_ERR_USAGE, naming `option` (and
 * `mode_option`, for mode), for others, or a metric that the run will not have. */
hpct_status hpct_train_monitor_find(hpct_train_monitor *out, const char *option, const char *name,
                                    const char *mode_option, const char *mode,
                                    hpct_results_metric_choice choice);

const char *hpct_train_monitor_name(const hpct_train_monitor *monitor);
double hpct_train_monitor_value(const hpct_train_monitor *monitor, const hpct_metrics *train,
                                const hpct_metrics *validation);

/* Whether a value is better than another one by more than `by`, as floats, like Keras compares
 * them. NaN is not. */
bool hpct_train_monitor_is_better(const hpct_train_monitor *monitor, double value, double than,
                                  double by);

#endif
