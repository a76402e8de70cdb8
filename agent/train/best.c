/* Values of one metric. */
#include "agent/train/best.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

hpct_status hpct_best_monitor(hpct_monitor *out, const hpct_fit_options *options,
                              hpct_metric_choice choice)
{
    const char *name = options->monitor != NULL ? options->monitor
                       : choice.validation      ? "val_loss"
                                                : "loss";
    return hpct_monitor_find(out, "--monitor", name, "--mode", options->monitor_mode, choice);
}

bool hpct_best_note(hpct_best *best, const hpct_monitor *monitor, double value)
{
    const char *name = hpct_monitor_name(monitor);
    if (strcmp(best->monitor, name) != 0) /* another one's value says nothing of this one */
        best->has = false;
    if (!isfinite(value) || (best->has && !hpct_monitor_is_better(monitor, value, best->value, 0)))
        return false;
    *best = (hpct_best){.has = true, .value = value};
    snprintf(best->monitor, sizeof best->monitor, "%s", name);
    return true;
}
