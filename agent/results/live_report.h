/* agent/results/live_report.h - what is known of a run under way, as status.json: written by
 * agent/results/live.h, read by hpc-train top. Knows no files and no clock. */
#ifndef HPCT_AGENT_RESULTS_LIVE_REPORT_H
#define HPCT_AGENT_RESULTS_LIVE_REPORT_H

#include "agent/results/metric.h"

#include <hpctrain/status.h>
#include <stddef.h>
#include <stdint.h>

#define HPCT_RESULTS_LIVE_FILE "status.json"
#define HPCT_RESULTS_LIVE_LOSSES 60
#define HPCT_RESULTS_LIVE_METRICS 32
#define HPCT_RESULTS_LIVE_NAME 64
#define HPCT_RESULTS_LIVE_MOST_RANKS (1 << 20)
#define HPCT_RESULTS_LIVE_MOST_BYTES ((size_t) 1 << 28) /* of a file that is read */

typedef enum hpct_results_live_how {
    HPCT_RESULTS_LIVE_RUNNING,
    HPCT_RESULTS_LIVE_FINISHED,
    HPCT_RESULTS_LIVE_STOPPED,
    HPCT_RESULTS_LIVE_FAILED,
} hpct_results_live_how;

/* "running" and so on. */
const char *hpct_results_live_word(hpct_results_live_how how);

typedef struct hpct_results_live_metric {
    char name[HPCT_RESULTS_LIVE_NAME]; /* as in history.csv: "mae", "val_f1" */
    double value;
} hpct_results_live_metric;

/* After a step. NaN: not known, or not a number. */
typedef struct hpct_results_live_state {
    int epoch, epochs;             /* from 1; 0 before the first */
    int64_t step, steps;           /* of this epoch: done, and in all */
    double loss, accuracy;         /* means of the epoch so far */
    double step_loss;              /* of the step alone; not in status.json */
    double val_loss, val_accuracy; /* of the last evaluation */
    double learning_rate;
    double step_ms, images_per_second;
    double seconds_left; /* of all epochs */
    double job_ends;     /* seconds since 1970 */
    hpct_results_live_metric
        metrics[HPCT_RESULTS_LIVE_METRICS]; /* that the run logs besides those above */
    int num_metrics;
} hpct_results_live_state;

/* Means over the last seconds. */
typedef struct hpct_results_live_rank {
    int rank;
    char *node;                                        /* "" if unknown */
    double step_ms, wait_ms, input_ms, memory_mb, gpu; /* gpu: share of the time; NaN: unknown */
} hpct_results_live_rank;

typedef struct hpct_results_live_report {
    hpct_results_live_how how;
    int64_t time; /* of the last step, seconds since 1970 */
    char *job;    /* NULL: none */
    char *model;
    int workers;
    hpct_results_live_state state;
    double losses[HPCT_RESULTS_LIVE_LOSSES]; /* means of equal parts of the steps so far */
    int num_losses;
    hpct_results_live_rank *ranks; /* [num_ranks] */
    int num_ranks;
} hpct_results_live_report;

/* Adds the metrics of a run that the state has no member for. Before the first evaluation those of
 * the validation, whose loss is NaN, are not known. */
void hpct_results_live_add_metrics(hpct_results_live_state *state,
                                   const hpct_results_metric_choice *choice,
                                   const hpct_metrics *train, const hpct_metrics *validation);

/* The text of status.json; the caller frees *out. */
hpct_status hpct_results_live_report_format(char **out, const hpct_results_live_report *report);

/* HPCT_ERR_DATA, saying what is wrong, of text that is not such a file. Unknown keys are ignored.
 * Freed by hpct_results_live_report_free. */
hpct_status hpct_results_live_report_parse(hpct_results_live_report *out, const char *text,
                                           size_t length);
void hpct_results_live_report_free(hpct_results_live_report *report); /* zeroed, or parsed */

#endif
