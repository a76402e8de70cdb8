/* hpctrain/train.h - training and evaluation on all ranks of a context. */
#ifndef HPCTRAIN_TRAIN_H
#define HPCTRAIN_TRAIN_H

#include <hpctrain/context.h>
#include <hpctrain/dataset.h>
#include <hpctrain/model.h>
#include <hpctrain/strategy.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HPCT_VERBOSE_AUTO (-1) /* progress bar on a terminal, else one line per epoch */

typedef struct hpct_metrics {
    double loss;           /* mean over the samples */
    double accuracy;       /* 0 to 1 */
    double top_k_accuracy; /* 0 without hpct_compile_options.top_k */
    /* Of evaluations that hpct_fit_options.metrics or hpct_evaluate_options.metrics asks for; else
     * NaN, or 0. Of class 1 with one output, else the mean over all classes. */
    double precision, recall, f1, auc;
    /* Mean absolute and squared error, with a number per output as target; then accuracy is NaN.
     * Else NaN, or 0. */
    double mae, mse;
    double mape; /* of those, in percent; asked for as precision is */
} hpct_metrics;

/* Metrics of an evaluation, by its whole data set: the class of a sample is its largest output, or,
 * of one output, 1 above probability 0.5. Without a sample that would count (0 / 0) they are 0. */
typedef enum hpct_metric_bits {
    HPCT_METRIC_PRECISION = 1,
    HPCT_METRIC_RECALL = 2,
    HPCT_METRIC_F1 = 4,
    HPCT_METRIC_AUC = 8,   /* under the ROC curve, one class against the rest; 200 thresholds */
    HPCT_METRIC_MAPE = 16, /* Keras' mean absolute percentage error, with a number per output */
} hpct_metric_bits;

/* Their names, and bits, in order; NULL, and 0, after the last. */
HPCT_API const char *hpct_metric_name(int index);
HPCT_API unsigned hpct_metric_bit(int index);

/* Prints an evaluation's metrics: " - accuracy: 0.9812 - loss: 0.0612", and those of `requested`.
 */
HPCT_API void hpct_metrics_print(const hpct_metrics *metrics, unsigned requested, FILE *stream);

/* What a callback reads, and what it may change. */
typedef struct hpct_callback_state {
    int epoch;               /* under way, from 0 as in Keras */
    int64_t step;            /* of the epoch, from 0; -1 in callbacks of epochs */
    hpct_metrics train;      /* mean over the epoch's steps so far; NaN before the first */
    hpct_metrics validation; /* at the end of an epoch; NaN without validation data */
    double learning_rate;    /* of the next step; may be set, to a positive value: at the begin and
                                end of epochs rank 0's is taken, else all ranks must set the same */
    bool stop;               /* set by any rank: training ends after this epoch or the next step */
} hpct_callback_state;

/* Any status but HPCT_OK, on any rank, ends the run with it (its message: hpct_last_error()). */
typedef hpct_status hpct_callback(void *context, hpct_callback_state *state);

/* Called on every rank, in this order; NULL: not called. The end of an epoch comes after its
 * evaluation, and before its checkpoint. */
typedef struct hpct_callbacks {
    void *context;
    hpct_callback *epoch_begin, *batch_begin, *batch_end, *epoch_end;
} hpct_callbacks;

/* As the arguments of Keras' model.fit. */
typedef struct hpct_fit_options {
    int epochs;                     /* default 1 */
    int initial_epoch;              /* number of epochs already done; shuffling and numbering
                                       continue there, up to `epochs`; default 0. For the schedule
                                       set hpct_schedule.first_step. */
    int batch_size;                 /* samples per rank and step; default 32 */
    int global_batch_size;          /* samples per step over all ranks; instead of batch_size */
    int64_t steps_per_epoch;        /* default: one pass, the last batch may be short; else passes
                                       follow one another and every batch is full */
    uint64_t seed;                  /* of shuffling; independent of the number of ranks */
    const hpct_dataset *validation; /* evaluated after each epoch; default: none */
    unsigned metrics;               /* of the validation: hpct_metric_bits; default: none. Not with
                                       parameter servers */
    const char *confusion_matrix;   /* CSV file for that of the last validation, written by rank 0
                                       at the end; default: none */
    hpct_strategy_options strategy; /* how the ranks share a step */
    int verbose;                    /* 0 silent, 1 progress bar, 2 one line per epoch */
    const char *log_dir;            /* folder for history.csv, metrics.jsonl (loss and accuracy per
                                       step), run.json, pace.jsonl, event files of TensorBoard and
                                       status.json (of the run under way, for hpct_top()), written
                                       by rank 0; default: none */
    int histogram_every; /* with log_dir: histograms of weights and gradients in the event files,
                            of the first epoch and each N-th after it; default 0: none */
    const char *metrics_file;     /* file for the state of the run as Prometheus' text, replaced by
                                     rank 0 about once a second and removed at the end; default:
                                     none */
    const char *save_weights;     /* file for the weights, written by rank 0 at the end, also when
                                     stopped; elsewhere if that or the run fails; default: none */
    const char *checkpoint_dir;   /* folder for the state of training, shared by all nodes,
                                     written by the ranks while training goes on; one run at a
                                     time; default: none */
    const char *checkpoint_every; /* "epoch", a number of steps, or a time: "90s", "10m"; default:
                                     by time, so that training waits for at most 1 % of it */
    int checkpoint_keep;          /* number of checkpoints that stay; default 2 */
    const char *resume; /* "auto" (default): continue what checkpoint_dir holds, "never", or
                           the folder of a checkpoint */
    const char *on_nan; /* "stop" (default): a loss that is not finite ends training; "resume": once
                           goes back to the last checkpoint, with half the learning rate */
    const char *save_best;    /* file for the weights of the best epoch so far, written by rank 0 at
                                 its end; default: none */
    const char *monitor;      /* metric that says which is: a column of history.csv; default:
                                 val_loss, without validation data loss */
    const char *monitor_mode; /* "min", "max", or "auto" (default): min for losses */
    /* "MONITOR[:KEY=VALUE,...]" as Keras' EarlyStopping: patience (epochs, default 0), min_delta,
     * mode, baseline, start_from_epoch, restore_best (no value); default: none */
    const char *early_stopping;
    /* The same as ReduceLROnPlateau: factor (0.1), patience (10), min_delta (1e-4), mode, cooldown,
     * min_lr. */
    const char *reduce_lr_on_plateau;
    const char *stop_at;             /* "METRIC=VALUE": the epoch that reaches it is the last one */
    const char *learning_rate_file;  /* lines "EPOCH RATE", from 0: rates by epoch; rank 0's file */
    const hpct_callbacks *callbacks; /* of the program; default: none */
    const char *summary_json;        /* file, written by rank 0 at the end; default: none */
    bool check;           /* first measures the nodes (hpct_check_nodes) and refuses slow ones, with
                             HPCT_ERR_PEER; not with parameter servers */
    const char *timeline; /* file for a Chrome trace of up to 50 steps of all ranks, from step 2:
                             input, forward, backward, reductions of buckets, update; written
                             by rank 0 at the end; default: none */
} hpct_fit_options;

typedef struct hpct_fit_result {
    hpct_metrics train;      /* last epoch, mean over its steps */
    hpct_metrics validation; /* last epoch; NaN without validation data */
    double seconds;          /* from the first step to the end */
    int64_t steps;           /* total; 0 if parameter servers were stopped before a checkpoint */
    int signal;              /* the one that stopped the run, else 0; equal on all ranks */
    int stopped_epoch;       /* the one after which training ended by itself, from 1; else 0 */
} hpct_fit_result;

/* hpct_model_set_device() with the same result on all ranks: "auto" selects GPUs if every rank has
 * one and the context was opened with "auto" or "cuda" (hpct_context_open_on()). With
 * hpct_context_open_apart() each worker decides for itself; parameter servers use the CPU.
 * Collective. Returns HPCT_ERR_CONFIG if the device is missing, or cannot compute in the model's
 * precision, on any rank. */
HPCT_API hpct_status hpct_set_device(hpct_context *context, hpct_model *model, const char *device);

/* Trains a compiled, initialized model, starting from rank 0's weights. The samples of global batch
 * t follow from (seed, t), and each rank takes its slice: losses depend on the number of ranks only
 * by fp32 rounding. `result` may be NULL. Collective.
 *
 * SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGHUP or SIGXCPU to any rank stops all ranks after the same
 * step; a second SIGINT or SIGTERM after two seconds or more ends the process. SIGPIPE and SIGXFSZ
 * are ignored. Signals that the program handles itself are left alone; their handlers need
 * SA_ONSTACK and a sigaltstack, as oneDNN's kernels do not tolerate a signal frame on the thread's
 * stack.
 *
 * With checkpoint_dir, continues the newest checkpoint in it: HPCT_ERR_CONFIG if that is of another
 * run, or another run uses the folder; HPCT_ERR_USAGE for strategies that do not save their state.
 *
 * Returns HPCT_ERR_USAGE for invalid options; HPCT_ERR_DATA if data does not fit the model (shapes,
 * labels) or training has diverged; HPCT_ERR_IO if an output cannot be written (outputs are tried
 * before step 1; later failures do not end training, and the message says where weights are saved,
 * see man hpc-train-fit, RESULTS); HPCT_ERR_STOPPED after a signal, with the model as trained so
 * far.
 */
HPCT_API hpct_status hpct_fit(hpct_context *context, hpct_model *model, const hpct_dataset *train,
                              const hpct_fit_options *options, hpct_fit_result *result);

/* Checks options independently of model and data, before these are read. Returns HPCT_ERR_USAGE if
 * invalid; the same on all ranks. */
HPCT_API hpct_status hpct_fit_check(const hpct_context *context, const hpct_fit_options *options);

/* Weights of classes for hpct_compile_options.class_weights, weights[labels], labels as of
 * hpct_model_count_labels(). `how` is "auto": n / (classes * count), with the numbers of samples,
 * of classes that have some, and of the class' samples; or a JSON file, rank 0's: an object of
 * weights by class name or number, classes that are not in it 1. Collective. Returns
 * HPCT_ERR_NO_INPUT or HPCT_ERR_DATA, naming the file. */
HPCT_API hpct_status hpct_class_weights(hpct_context *context, const char *how,
                                        const hpct_dataset *train, double *weights, int labels);

/* As train_and_evaluate of TensorFlow's estimators. */
typedef struct hpct_train_and_evaluate_options {
    int64_t max_steps;      /* required */
    int64_t evaluate_every; /* steps; default: only at the end */
    hpct_fit_options fit;   /* without epochs, steps_per_epoch and validation */
} hpct_train_and_evaluate_options;

/* Trains max_steps steps on full batches, pass after pass, and evaluates on `evaluation` every
 * evaluate_every steps and at the end; the steps between are shown and logged as an epoch.
 * Otherwise as hpct_fit(). Collective. */
HPCT_API hpct_status hpct_train_and_evaluate(hpct_context *context, hpct_model *model,
                                             const hpct_dataset *train,
                                             const hpct_dataset *evaluation,
                                             const hpct_train_and_evaluate_options *options,
                                             hpct_fit_result *result);

typedef struct hpct_evaluate_options {
    int batch_size;               /* per rank; default 128 */
    unsigned metrics;             /* hpct_metric_bits; default: none */
    const char *confusion_matrix; /* CSV file: a row per true class, a column per predicted one;
                                     written by rank 0; default: none */
    const char *summary_json;     /* file for all metrics, also by class; default: none */
    FILE *classes;                /* also prints the metrics by class there; default: none */
} hpct_evaluate_options;

/* Mean loss and accuracy over the data set, each sample counted once; ranks share the samples.
 * batch_size is per rank; 0: 128. Collective. Returns HPCT_ERR_DATA, with *metrics set, if the loss
 * is not finite. */
HPCT_API hpct_status hpct_evaluate(hpct_context *context, hpct_model *model,
                                   const hpct_dataset *dataset, int batch_size,
                                   hpct_metrics *metrics);
/* hpct_evaluate() with options. Returns HPCT_ERR_USAGE also for metrics of a model without classes
 * (one output that is not a probability); HPCT_ERR_IO if a file cannot be written. */
HPCT_API hpct_status hpct_evaluate_with(hpct_context *context, hpct_model *model,
                                        const hpct_dataset *dataset,
                                        const hpct_evaluate_options *options,
                                        hpct_metrics *metrics);

#ifdef __cplusplus
}
#endif
#endif
