/* agent/results/progress.h - progress output of rank 0, in Keras' form. Formats only; knows no
 * clock, model or rank. */
#ifndef HPCT_AGENT_RESULTS_PROGRESS_H
#define HPCT_AGENT_RESULTS_PROGRESS_H

#include "agent/results/metric.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct hpct_results_progress {
    FILE *stream;
    int verbose; /* 0, 1 or 2 */
    hpct_results_metric_choice choice;
    bool colours;
    int64_t steps;
    double drawn_at; /* time of the last redraw, in seconds of the epoch */
} hpct_results_progress;

/* A loss or metric as Keras prints it, with four digits: "2.3026", "4.0000e-04"; "2.4e+32" if
 * large, or "nan". */
#define HPCT_RESULTS_METRIC_TEXT 32
const char *hpct_results_progress_metric(char text[HPCT_RESULTS_METRIC_TEXT], double value);

/* `verbose` may be HPCT_VERBOSE_AUTO. A bar is drawn on terminals alone; with colours unless the
 * environment has NO_COLOR (no-color.org). */
void hpct_results_progress_init(hpct_results_progress *progress, FILE *stream, int verbose,
                                const hpct_results_metric_choice *choice);

/* Epoch `epoch` of `epochs`, from 1, with `steps` steps. */
void hpct_results_progress_begin(hpct_results_progress *progress, int epoch, int epochs,
                                 int64_t steps);

/* After `done` steps: seconds of the epoch, seconds per step (without step 1). */
void hpct_results_progress_step(hpct_results_progress *progress, int64_t done, double seconds,
                                double step_seconds, const hpct_metrics *metrics);

/* The epoch's last line; `validation` may be NULL. */
void hpct_results_progress_end(hpct_results_progress *progress, int64_t done, double seconds,
                               double step_seconds, const hpct_metrics *metrics,
                               const hpct_metrics *validation);

#endif
