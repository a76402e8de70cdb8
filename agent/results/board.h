/* agent/results/board.h - what a run writes for TensorBoard (agent/results/event_files.h): a point
 * per epoch of each curve under the names of Keras' TensorBoard callback, with epochs from 0 as
 * x-axis; histograms; model and settings as text, and as values of the HPARAMS tab. Rank 0. */
#ifndef HPCT_AGENT_RESULTS_BOARD_H
#define HPCT_AGENT_RESULTS_BOARD_H

#include "agent/results/metric.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hpct_results_board hpct_results_board;

/* A run, as it begins. */
typedef struct hpct_results_board_run {
    const hpct_model *model;
    const char *strategy, *optimizer;
    double learning_rate; /* without a schedule */
    int workers, replicas, global_batch, epochs;
    int64_t steps_per_epoch;
    size_t samples;
    uint64_t seed;
    hpct_results_metric_choice choice;
    int64_t epoch;  /* the first one, from 0 */
    bool continues; /* the logs that are there */
} hpct_results_board_run;

/* HPCT_ERR_IO, naming --log-dir and the file. */
hpct_status hpct_results_board_open(hpct_results_board **out, const char *folder,
                                    const hpct_results_board_run *run);

/* A parameter's values: `what` is "histogram" (its weights, as in Keras) or "gradient". Written
 * with the epoch. */
void hpct_results_board_histogram(hpct_results_board *board, int64_t epoch, const char *parameter,
                                  const char *what, const float *values, size_t count);

/* The points of an epoch. */
typedef struct hpct_results_board_epoch {
    int64_t epoch;             /* from 0 */
    const hpct_metrics *train; /* and of the validation data, if there are any */
    const hpct_metrics *validation;
    double learning_rate;                  /* of the next step, as in history.csv */
    double step_seconds, samples_per_step; /* NaN: not known */
    bool good;                             /* training has not diverged */
} hpct_results_board_epoch;

/* HPCT_ERR_IO if records are still missing, which are written with the next ones. */
hpct_status hpct_results_board_note(hpct_results_board *board,
                                    const hpct_results_board_epoch *epoch);

/* For a checkpoint, as hpct_results_history_mark; NULL is allowed. */
void hpct_results_board_mark(hpct_results_board *board);

/* Closes; `finished`: all epochs are done. HPCT_ERR_IO if not everything was written. NULL is
 * allowed. */
hpct_status hpct_results_board_close(hpct_results_board *board, bool finished);

#endif
