/* agent/results/tally.h - counts over an evaluated data set, from which precision, recall, F1, AUC
 * and the confusion matrix follow, or sums of errors, where the outputs are numbers. Counts are
 * integers: their sums over ranks are exact. Independent of models and ranks. */
#ifndef HPCT_AGENT_RESULTS_TALLY_H
#define HPCT_AGENT_RESULTS_TALLY_H

#include "agent/results/metric.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct hpct_results_tally hpct_results_tally;

typedef struct hpct_results_tally_options {
    int outputs;  /* of the model; one is that of class 1 of two */
    int labels;   /* hpct_model_count_labels() */
    bool logits;  /* outputs are not probabilities yet */
    bool numbers; /* outputs are numbers: there are no classes */
    unsigned metrics;
    bool matrix;
} hpct_results_tally_options;

/* Returns HPCT_ERR_USAGE for one output that is not a class, and for a matrix of more than
 * HPCT_RESULTS_TALLY_CLASSES classes. */
#define HPCT_RESULTS_TALLY_CLASSES 4096
hpct_status hpct_results_tally_open(hpct_results_tally **out,
                                    const hpct_results_tally_options *options);
void hpct_results_tally_close(hpct_results_tally *tally); /* NULL is allowed */

/* Begins anew. */
void hpct_results_tally_clear(hpct_results_tally *tally);

/* Counts samples: outputs[n][outputs]. With AUC HPCT_ERR_DATA if one is not a probability; not of
 * NaN, which makes the loss NaN. */
hpct_status hpct_results_tally_add(hpct_results_tally *tally, const float *outputs,
                                   const int32_t *labels, int n);

/* The same of numbers: outputs[n][outputs], targets[n][outputs]. */
void hpct_results_tally_add_numbers(hpct_results_tally *tally, const float *outputs,
                                    const float *targets, int n);

/* All counts, and the sums of numbers, to be added to those of other ranks. */
int64_t *hpct_results_tally_counts(hpct_results_tally *tally, size_t *num);
hpct_metrics *hpct_results_tally_sums(hpct_results_tally *tally);

/* Sets the metrics that have to be asked for; NaN where they were not. A tally may be NULL: none
 * was.
 */
void hpct_results_tally_get(const hpct_results_tally *tally, hpct_metrics *metrics);

/* Of one class against the rest. With one output, AUC is that of class 1; of class 0 it is NaN. */
typedef struct hpct_results_class_metrics {
    int64_t samples;
    hpct_metrics of; /* those that have to be asked for */
} hpct_results_class_metrics;
int hpct_results_tally_classes(const hpct_results_tally *tally);
hpct_results_class_metrics hpct_results_tally_class(const hpct_results_tally *tally, int class);

/* Whether the metric was asked for. */
bool hpct_results_tally_has(const hpct_results_tally *tally, const hpct_results_metric *metric);
/* [classes] of the matrix: samples of a class, by predicted class. */
const int64_t *hpct_results_tally_row(const hpct_results_tally *tally, int class);

/* ---- as text (agent/results/tally_text.c) ---- */

/* A list with an object per class: its name (or number, of names[num_names]), samples, and the
 * metrics that were asked for. NULL if out of memory. */
json_t *hpct_results_tally_to_json(const hpct_results_tally *tally, char *const *names,
                                   int num_names);

/* The same as text, a line per class. */
void hpct_results_tally_print(const hpct_results_tally *tally, char *const *names, int num_names,
                              FILE *stream);

/* The confusion matrix as CSV: a row per true class, a column per predicted one. HPCT_ERR_IO. */
hpct_status hpct_results_tally_write(const hpct_results_tally *tally, char *const *names,
                                     int num_names, const char *path);

#endif
