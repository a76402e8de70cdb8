/* agent/results/metric.h - the metrics of a run. Training, history, event files, progress, summary,
 * status.json, monitors, top and report read this table: a metric in it is in all of them. */
#ifndef HPCT_AGENT_RESULTS_METRIC_H
#define HPCT_AGENT_RESULTS_METRIC_H

#include <hpctrain/train.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>

/* Which runs have a metric. */
typedef enum hpct_results_metric_kind {
    HPCT_RESULTS_METRIC_OF_ALL,
    HPCT_RESULTS_METRIC_OF_CLASSES,
    HPCT_RESULTS_METRIC_OF_TOP_K, /* --top-k */
    HPCT_RESULTS_METRIC_OF_NUMBERS,
} hpct_results_metric_kind;

/* X(name, member of hpct_metrics, is more better, kind, bit): in the order in which they are
 * written. A bit of hpct_metric_bits: --metrics asks for it, of validation data alone. */
#define HPCT_RESULTS_METRIC_TABLE(X)                                                               \
    X("accuracy", accuracy, true, HPCT_RESULTS_METRIC_OF_CLASSES, 0)                               \
    X("loss", loss, false, HPCT_RESULTS_METRIC_OF_ALL, 0)                                          \
    X("mae", mae, false, HPCT_RESULTS_METRIC_OF_NUMBERS, 0)                                        \
    X("mse", mse, false, HPCT_RESULTS_METRIC_OF_NUMBERS, 0)                                        \
    X("top_k_categorical_accuracy", top_k_accuracy, true, HPCT_RESULTS_METRIC_OF_TOP_K, 0)         \
    X("precision", precision, true, HPCT_RESULTS_METRIC_OF_CLASSES, HPCT_METRIC_PRECISION)         \
    X("recall", recall, true, HPCT_RESULTS_METRIC_OF_CLASSES, HPCT_METRIC_RECALL)                  \
    X("f1", f1, true, HPCT_RESULTS_METRIC_OF_CLASSES, HPCT_METRIC_F1)                              \
    X("auc", auc, true, HPCT_RESULTS_METRIC_OF_CLASSES, HPCT_METRIC_AUC)                           \
    X("mape", mape, false, HPCT_RESULTS_METRIC_OF_NUMBERS, HPCT_METRIC_MAPE)

typedef struct hpct_results_metric {
    const char *name, *val_name; /* in history.csv: of training, of validation */
    size_t at;                   /* in hpct_metrics */
    bool larger_is_better;
    hpct_results_metric_kind kind;
    unsigned bit; /* 0: it need not be asked for */
} hpct_results_metric;
extern const hpct_results_metric hpct_results_metric_table[]; /* the last name is NULL */

/* Nothing is known. */
#define HPCT_RESULTS_METRIC_UNKNOWN(name, member, larger, kind, bit) .member = NAN,
#define HPCT_RESULTS_NO_METRICS                                                                    \
    {                                                                                              \
        HPCT_RESULTS_METRIC_TABLE(HPCT_RESULTS_METRIC_UNKNOWN)                                     \
    }

double hpct_results_metric_get(const hpct_results_metric *metric, const hpct_metrics *values);
void hpct_results_metric_set(const hpct_results_metric *metric, hpct_metrics *values, double value);

#define HPCT_RESULTS_METRIC_VAL "val_"

const char *hpct_results_metric_title(const hpct_results_metric *metric, bool of_validation);

/* NULL if a run cannot have a metric of this name. */
const hpct_results_metric *hpct_results_metric_find(const char *name, bool *of_validation);

/* What a run has. */
typedef struct hpct_results_metric_choice {
    bool validation, top_k, classes, numbers;
    unsigned requested; /* hpct_metric_bits, of the validation */
} hpct_results_metric_choice;
#define HPCT_RESULTS_METRIC_ANY ((hpct_results_metric_choice){true, true, true, true, ~0U})

/* Goes through the metrics of a run, of training or of validation: the one after `before`, or the
 * first for NULL; NULL after the last. */
const hpct_results_metric *hpct_results_metric_next(const hpct_results_metric *before,
                                                    const hpct_results_metric_choice *choice,
                                                    bool of_validation);

#define HPCT_RESULTS_METRIC_EACH(m, choice, of_validation)                                         \
    for (const hpct_results_metric *m = NULL;                                                      \
         (m = hpct_results_metric_next(m, choice, of_validation)) != NULL;)

/* Their names, as "loss, mae, mse". */
#define HPCT_RESULTS_METRIC_NAMES 512
const char *hpct_results_metric_list(char text[HPCT_RESULTS_METRIC_NAMES],
                                     const hpct_results_metric_choice *choice, bool of_validation);

#endif
