/* The metrics that can be monitored. */
#include "agent/train/monitor.h"

#include "base/nearest.h"
#include "base/status.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static hpct_status unknown(const char *option, const char *name)
{
    static const hpct_results_metric_choice any = HPCT_RESULTS_METRIC_ANY;
    char hint[HPCT_NEAREST_HINT], all[HPCT_RESULTS_METRIC_NAMES],
        val_all[HPCT_RESULTS_METRIC_NAMES];
    hpct_nearest best = {0};
    HPCT_RESULTS_METRIC_EACH (m, &any, true) {
        hpct_nearest_try(&best, name, m->val_name);
        if (m->bit == 0)
            hpct_nearest_try(&best, name, m->name);
    }
    return hpct_fail(HPCT_ERR_USAGE, "%s is '%s'%s, it must be one of %s, %s", option, name,
                     hpct_nearest_hint(&best, hint), hpct_results_metric_list(all, &any, false),
                     hpct_results_metric_list(val_all, &any, true));
}

const char *hpct_train_monitor_name(const hpct_train_monitor *monitor)
{
    return hpct_results_metric_title(monitor->metric, monitor->of_validation);
}

/* Whether a run has it. */
static hpct_status check(const hpct_train_monitor *monitor, const char *option,
                         const hpct_results_metric_choice *choice)
{
    char names[HPCT_RESULTS_METRIC_NAMES];
    const char *name = hpct_train_monitor_name(monitor);
    const hpct_results_metric *m = monitor->metric;
    if (monitor->of_validation && !choice->validation)
        return hpct_fail(HPCT_ERR_USAGE, "%s %s needs --validation-data or --validation-split",
                         option, name);
    if (m->kind == HPCT_RESULTS_METRIC_OF_CLASSES && !choice->classes)
        return hpct_fail(HPCT_ERR_USAGE, "%s %s is of classes: with numbers as labels there are %s",
                         option, name,
                         hpct_results_metric_list(names, choice, monitor->of_validation));
    if (m->kind == HPCT_RESULTS_METRIC_OF_NUMBERS && !choice->numbers)
        return hpct_fail(HPCT_ERR_USAGE,
                         "%s %s is of numbers: it needs --labels with a column for each output, "
                         "and --loss mean_squared_error or huber",
                         option, name);
    if (m->kind == HPCT_RESULTS_METRIC_OF_TOP_K && !choice->top_k)
        return hpct_fail(HPCT_ERR_USAGE, "%s %s needs --top-k", option, name);
    return (m->bit & choice->requested) == m->bit
               ? HPCT_OK
               : hpct_fail(HPCT_ERR_USAGE, "%s %s needs --metrics %s", option, name, m->name);
}

hpct_status hpct_train_monitor_find(hpct_train_monitor *out, const char *option, const char *name,
                                    const char *mode_option, const char *mode,
                                    hpct_results_metric_choice choice)
{
    bool by_metric = mode == NULL || strcmp(mode, "auto") == 0;
    if (!by_metric && strcmp(mode, "min") != 0 && strcmp(mode, "max") != 0)
        return hpct_fail(HPCT_ERR_USAGE, "%s is '%s', it must be auto, min or max", mode_option,
                         mode);
    out->metric = hpct_results_metric_find(name, &out->of_validation);
    if (out->metric == NULL)
        return unknown(option, name);
    out->larger = by_metric ? out->metric->larger_is_better : strcmp(mode, "max") == 0;
    return check(out, option, &choice);
}

double hpct_train_monitor_value(const hpct_train_monitor *monitor, const hpct_metrics *train,
                                const hpct_metrics *validation)
{
    return hpct_results_metric_get(monitor->metric, monitor->of_validation ? validation : train);
}

bool hpct_train_monitor_is_better(const hpct_train_monitor *monitor, double value, double than,
                                  double by)
{
    return monitor->larger ? (float) (value - fabs(by)) > (float) than
                           : (float) (value + fabs(by)) < (float) than;
}
