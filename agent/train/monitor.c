/* The metrics that can be monitored. */
#include "agent/train/monitor.h"

#include "base/nearest.h"
#include "base/status.h"
#include "nn/run/step.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

static const struct hpct_metric {
    const char *name;
    bool of_validation, is_top_k, larger_is_better;
    size_t offset;
    unsigned bit;                                     /* of hpct_metric_bits; 0: always there */
    enum { ALWAYS, WITH_CLASSES, WITH_NUMBERS } with; /* kinds of targets that it is there with */
} metrics[] = {
    {"loss", false, false, false, offsetof(hpct_metrics, loss), 0, ALWAYS},
    {"accuracy", false, false, true, offsetof(hpct_metrics, accuracy), 0, WITH_CLASSES},
    {"top_k_categorical_accuracy", false, true, true, offsetof(hpct_metrics, top_k_accuracy), 0,
     WITH_CLASSES},
    {"val_loss", true, false, false, offsetof(hpct_metrics, loss), 0, ALWAYS},
    {"val_accuracy", true, false, true, offsetof(hpct_metrics, accuracy), 0, WITH_CLASSES},
    {"val_top_k_categorical_accuracy", true, true, true, offsetof(hpct_metrics, top_k_accuracy), 0,
     WITH_CLASSES},
    {"val_precision", true, false, true, offsetof(hpct_metrics, precision), HPCT_METRIC_PRECISION,
     ALWAYS},
    {"val_recall", true, false, true, offsetof(hpct_metrics, recall), HPCT_METRIC_RECALL, ALWAYS},
    {"val_f1", true, false, true, offsetof(hpct_metrics, f1), HPCT_METRIC_F1, ALWAYS},
    {"val_auc", true, false, true, offsetof(hpct_metrics, auc), HPCT_METRIC_AUC, ALWAYS},
    {"mae", false, false, false, offsetof(hpct_metrics, mae), 0, WITH_NUMBERS},
    {"mse", false, false, false, offsetof(hpct_metrics, mse), 0, WITH_NUMBERS},
    {"val_mae", true, false, false, offsetof(hpct_metrics, mae), 0, WITH_NUMBERS},
    {"val_mse", true, false, false, offsetof(hpct_metrics, mse), 0, WITH_NUMBERS},
};
#define NUM_METRICS (sizeof metrics / sizeof metrics[0])

static hpct_status unknown(const char *option, const char *name)
{
    char hint[HPCT_NEAREST_HINT];
    hpct_nearest best = {0};
    for (size_t i = 0; i < NUM_METRICS; i++)
        hpct_nearest_try(&best, name, metrics[i].name);
    return hpct_fail(
        HPCT_ERR_USAGE,
        "%s is '%s'%s, it must be loss, accuracy, val_loss, val_accuracy, or, "
        "with --top-k, top_k_categorical_accuracy or val_top_k_categorical_accuracy, "
        "with --metrics, val_precision, val_recall, val_f1 or val_auc, with numbers as "
        "--labels mae, mse, val_mae or val_mse",
        option, name, hpct_nearest_hint(&best, hint));
}

hpct_status hpct_monitor_find(hpct_monitor *out, const char *option, const char *name,
                              const char *mode_option, const char *mode, hpct_monitor_has has)
{
    const struct hpct_metric *m = metrics;
    bool by_metric = mode == NULL || strcmp(mode, "auto") == 0;
    if (!by_metric && strcmp(mode, "min") != 0 && strcmp(mode, "max") != 0)
        return hpct_fail(HPCT_ERR_USAGE, "%s is '%s', it must be auto, min or max", mode_option,
                         mode);
    while (m < metrics + NUM_METRICS && strcmp(m->name, name) != 0)
        m++;
    if (m == metrics + NUM_METRICS)
        return unknown(option, name);
    if (m->of_validation && !has.validation)
        return hpct_fail(HPCT_ERR_USAGE, "%s %s needs --validation-data or --validation-split",
                         option, m->name);
    if (m->with == WITH_CLASSES && !has.accuracy)
        return hpct_fail(HPCT_ERR_USAGE, "%s %s is of classes: with numbers as labels there are %s",
                         option, m->name, m->of_validation ? "val_mae and val_mse" : "mae and mse");
    if (m->with == WITH_NUMBERS && !has.errors)
        return hpct_fail(HPCT_ERR_USAGE,
                         "%s %s is of numbers: it needs --labels with a column for each output, "
                         "and --loss mean_squared_error or huber",
                         option, m->name);
    if (m->is_top_k && !has.top_k)
        return hpct_fail(HPCT_ERR_USAGE, "%s %s needs --top-k", option, m->name);
    if ((m->bit & has.metrics) != m->bit)
        return hpct_fail(HPCT_ERR_USAGE, "%s %s needs --metrics %s", option, m->name,
                         m->name + strlen("val_"));
    *out = (hpct_monitor){m, by_metric ? m->larger_is_better : strcmp(mode, "max") == 0};
    return HPCT_OK;
}

hpct_monitor_has hpct_monitor_of(const hpct_fit_options *options, const hpct_model *model)
{
    bool numbers = hpct_model_judged(model) == HPCT_TARGETS_NUMBERS;
    return (hpct_monitor_has){options->validation != NULL, hpct_model_top_k(model) > 0,
                              options->metrics, !numbers, numbers};
}

const char *hpct_monitor_name(const hpct_monitor *monitor)
{
    return monitor->metric->name;
}

double hpct_monitor_value(const hpct_monitor *monitor, const hpct_metrics *train,
                          const hpct_metrics *validation)
{
    double value;
    const hpct_metrics *from = monitor->metric->of_validation ? validation : train;
    memcpy(&value, (const char *) from + monitor->metric->offset, sizeof value);
    return value;
}

bool hpct_monitor_is_better(const hpct_monitor *monitor, double value, double than, double by)
{
    return monitor->larger ? (float) (value - fabs(by)) > (float) than
                           : (float) (value + fabs(by)) < (float) than;
}
