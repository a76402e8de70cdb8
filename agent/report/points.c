/* The metrics of a run, known and unknown ones, and their numbers by epoch or step. */
#include "agent/report/run.h"

#include "agent/results/metric.h"

#include <math.h>
#include <string.h>

#define MOST_METRICS 64

static bool add_metric(hpct_report_run *run, const char *name)
{
    hpct_report_logged *metrics =
        run->num_metrics < MOST_METRICS
            ? hpct_report_grow(run->pool, run->metrics, run->num_metrics, sizeof *metrics)
            : NULL;
    if (metrics == NULL)
        return false;
    run->metrics = metrics;
    metrics[run->num_metrics++] =
        (hpct_report_logged){hpct_report_print(run->pool, "%s", name), {NAN, NAN}};
    return true;
}

void hpct_report_begin_metrics(hpct_report_run *run)
{
    add_metric(run, "loss");
    add_metric(run, "accuracy");
    for (const hpct_results_metric *m = hpct_results_metric_table; m->name != NULL; m++) {
        if (hpct_report_find_metric(run, m->name) == run->num_metrics)
            add_metric(run, m->name);
    }
}

size_t hpct_report_find_metric(const hpct_report_run *run, const char *name)
{
    size_t i = 0;
    while (i < run->num_metrics && strcmp(run->metrics[i].name, name) != 0)
        i++;
    return i;
}

size_t hpct_report_add_column(hpct_report_run *run, const char *name)
{
    size_t prefix = strlen(HPCT_RESULTS_METRIC_VAL);
    bool of_validation = strncmp(name, HPCT_RESULTS_METRIC_VAL, prefix) == 0;
    name += of_validation ? prefix : 0;
    size_t metric = hpct_report_find_metric(run, name);
    if (metric == run->num_metrics && !add_metric(run, name))
        return HPCT_REPORT_NO_COLUMN;
    return hpct_report_column(metric, of_validation);
}

hpct_report_point hpct_report_new_point(const hpct_report_run *run)
{
    hpct_report_point point = {.learning_rate = NAN, .seconds = NAN};
    point.values = hpct_report_take(run->pool, 2 * run->num_metrics, sizeof *point.values);
    point.num_values = point.values != NULL ? 2 * run->num_metrics : 0;
    for (size_t i = 0; i < point.num_values; i++)
        point.values[i] = NAN;
    return point;
}

double hpct_report_value(const hpct_report_point *point, size_t column)
{
    return column < point->num_values ? point->values[column] : NAN;
}

bool hpct_report_any_has(const hpct_report_point *points, size_t count, size_t column)
{
    bool any = false;
    for (size_t i = 0; i < count && !any; i++)
        any = !isnan(hpct_report_value(&points[i], column));
    return any;
}

double *hpct_report_last(const hpct_report_run *run, size_t column)
{
    return &run->metrics[column / 2].last[column % 2];
}
