/* agent/results/summary.h - the JSON object of --summary-json. */
#ifndef HPCT_AGENT_RESULTS_SUMMARY_H
#define HPCT_AGENT_RESULTS_SUMMARY_H

#include "agent/results/tally.h"

#include <hpctrain/train.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Additions of a run with parameter servers, under "parameter_server". */
typedef struct hpct_results_ps_summary {
    int servers, backup_workers;
    bool synchronous;
    int64_t max_staleness;            /* the bound; -1: none */
    int workers_joined, workers_lost; /* reconnecting ones count again */
    int64_t gradients, late;          /* that counted; that came second */
    int64_t given_again;              /* batches whose worker was lost */
    double staleness_mean;            /* updates; NaN without gradients */
    int64_t staleness_max, held;      /* times that a worker waited for the bound */
} hpct_results_ps_summary;

typedef struct hpct_results_summary {
    const char *model, *strategy, *device;
    hpct_precision precision;       /* by Keras' policy names */
    int workers, replicas, threads; /* threads of one worker */
    int global_batch, epochs;       /* epochs finished */
    int64_t steps;                  /* done in all */
    size_t parameters;
    uint64_t seed;
    double start_seconds;        /* process start to first step */
    double train_seconds;        /* first step to the end */
    const double *epoch_seconds; /* [epochs] training alone, without validation */
    double input_wait_seconds;   /* that steps waited for input, on rank 0 */
    double step_ms;              /* median */
    double images_per_second;
    hpct_metrics train, validation;    /* NaN becomes null */
    hpct_results_metric_choice choice; /* without top_k the top-k accuracies are null */
    const char *optimizer;
    double learning_rate;                            /* of the next step */
    double peak_rss_mb;                              /* of the largest rank */
    int64_t bytes_sent_per_step;                     /* passed to collectives by one rank */
    int signal;                                      /* that stopped it, or 0 */
    const hpct_results_ps_summary *parameter_server; /* or NULL */
    bool emulated;                                   /* emulated: only times are meaningful */
    double dilation;                                 /* of what was emulated */
    double predicted_mb, device_used_mb;             /* bench's; 0 becomes null */
    char *const *classes;                            /* [num_classes] by label; none: null */
    int num_classes;
    const hpct_results_tally *tally; /* of the last validation; NULL: none */
} hpct_results_summary;

/* Adds the metrics that a tally has, their names after `prefix`, and "PREFIXclasses", the same by
 * class. */
void hpct_results_summary_add_tally(json_t *object, const char *prefix,
                                    const hpct_results_tally *tally, char *const *names,
                                    int num_names);

/* NULL if out of memory. */
json_t *hpct_results_summary_to_json(const hpct_results_summary *summary);

/* Writes atomically. Returns HPCT_ERR_IO naming `path`. */
hpct_status hpct_results_summary_write(const hpct_results_summary *summary, const char *path);

#endif
