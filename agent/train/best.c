/* Names of metrics are those of history.csv. */
#include "agent/train/best.h"

#include "base/nearest.h"
#include "base/status.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const struct metric {
    const char *name;
    bool of_validation, is_top_k, larger_is_better;
    size_t offset;
} metrics[] = {
    {"loss", false, false, false, offsetof(hpct_metrics, loss)},
    {"accuracy", false, false, true, offsetof(hpct_metrics, accuracy)},
    {"top_k_categorical_accuracy", false, true, true, offsetof(hpct_metrics, top_k_accuracy)},
    {"val_loss", true, false, false, offsetof(hpct_metrics, loss)},
    {"val_accuracy", true, false, true, offsetof(hpct_metrics, accuracy)},
    {"val_top_k_categorical_accuracy", true, true, true, offsetof(hpct_metrics, top_k_accuracy)},
};
#define NUM_METRICS (sizeof metrics / sizeof metrics[0])

static const struct metric *find(const char *name)
{
    for (size_t i = 0; i < NUM_METRICS; i++) {
        if (strcmp(metrics[i].name, name) == 0)
            return &metrics[i];
    }
    return NULL;
}

const char *hpct_best_monitor(const hpct_fit_options *options)
{
    if (options->monitor != NULL)
        return options->monitor;
    return options->validation != NULL ? "val_loss" : "loss";
}

static hpct_status unknown(const char *name)
{
    char hint[HPCT_NEAREST_HINT];
    hpct_nearest best = {0};
    for (size_t i = 0; i < NUM_METRICS; i++)
        hpct_nearest_try(&best, name, metrics[i].name);
    return hpct_fail(HPCT_ERR_USAGE,
                     "--monitor is '%s'%s, it must be loss, accuracy, val_loss, val_accuracy, or, "
                     "with --top-k, top_k_categorical_accuracy or val_top_k_categorical_accuracy",
                     name, hpct_nearest_hint(&best, hint));
}

hpct_status hpct_best_check(const hpct_fit_options *options, bool has_top_k)
{
    const char *mode = options->monitor_mode;
    const struct metric *m = find(hpct_best_monitor(options));
    if (mode != NULL && strcmp(mode, "auto") != 0 && strcmp(mode, "min") != 0 &&
        strcmp(mode, "max") != 0)
        return hpct_fail(HPCT_ERR_USAGE, "--mode is '%s', it must be auto, min or max", mode);
    if (m == NULL)
        return unknown(options->monitor);
    if (m->of_validation && options->validation == NULL)
        return hpct_fail(HPCT_ERR_USAGE, "--monitor %s needs --validation-data", m->name);
    if (m->is_top_k && !has_top_k)
        return hpct_fail(HPCT_ERR_USAGE, "--monitor %s needs --top-k", m->name);
    return HPCT_OK;
}

bool hpct_best_note(hpct_best *best, const hpct_fit_options *options, const hpct_metrics *train,
                    const hpct_metrics *validation)
{
    const struct metric *m = find(hpct_best_monitor(options));
    const char *mode = options->monitor_mode;
    const hpct_metrics *from = m->of_validation ? validation : train;
    double value;
    bool larger =
        mode == NULL || strcmp(mode, "auto") == 0 ? m->larger_is_better : strcmp(mode, "max") == 0;
    memcpy(&value, (const char *) from + m->offset, sizeof value);
    if (strcmp(best->monitor, m->name) != 0) /* another one's value says nothing of this one */
        best->has = false;
    if (!isfinite(value) || (best->has && !(larger ? value > best->value : value < best->value)))
        return false;
    *best = (hpct_best){.has = true, .value = value};
    snprintf(best->monitor, sizeof best->monitor, "%s", m->name);
    return true;
}
