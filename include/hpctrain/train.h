/* hpctrain/train.h - fit and evaluate, over all ranks of a context. */
#ifndef HPCTRAIN_TRAIN_H
#define HPCTRAIN_TRAIN_H

#include <hpctrain/context.h>
#include <hpctrain/dataset.h>
#include <hpctrain/model.h>
#include <hpctrain/strategy.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HPCT_VERBOSE_AUTO (-1) /* a bar on a terminal, a line an epoch elsewhere */

/* What Keras' model.fit takes. Zero means the default named. */
typedef struct hpct_fit_options {
    int epochs;                     /* default 1 */
    int initial_epoch;              /* epochs before this one are done already: samples and numbers
                                       go on from there, up to `epochs`; default 0. A schedule does
                                       so by hpct_schedule.first_step. */
    int batch_size;                 /* samples per rank and step; default 32 */
    int global_batch_size;          /* samples per step over all ranks; instead of batch_size */
    int64_t steps_per_epoch;        /* default: one pass an epoch, the last batch may be short; else
                                       passes follow one another without end, and every batch is full */
    uint64_t seed;                  /* order of the samples; the same for every number of ranks */
    const hpct_dataset *validation; /* evaluated after each epoch; default none */
    hpct_strategy_options strategy; /* how the ranks share the work */
    int verbose;                    /* as Keras: 0 silent, 1 bar, 2 a line an epoch */
    const char *log_dir;      /* history.csv and metrics.jsonl (loss and accuracy of each step)
                                 go there, by rank 0; default nowhere */
    const char *save_weights; /* rank 0 saves the weights there at the end, also when stopped;
                                 elsewhere where that fails, or the run; default nowhere */
    const char *summary_json; /* written once, at the end, by rank 0; default nowhere */
    const char *timeline;     /* a Chrome trace of up to 50 steps, from the second on, of all ranks:
                                 input, forward, backward, each bucket's reduction, update; written at
                                 the end by rank 0; default nowhere */
} hpct_fit_options;

typedef struct hpct_metrics {
    double loss;           /* mean over the samples */
    double accuracy;       /* 0 to 1 */
    double top_k_accuracy; /* 0 unless hpct_compile_options.top_k asks for it */
} hpct_metrics;

typedef struct hpct_fit_result {
    hpct_metrics train;      /* of the last epoch, as the steps saw it */
    hpct_metrics validation; /* of the last epoch; NaN without validation data */
    double seconds;          /* first step to the end */
    int64_t steps;           /* done in all */
    int signal;              /* that stopped it, else 0; the same on all ranks */
} hpct_fit_result;

/* hpct_model_set_device on all ranks alike: with "auto" the GPUs where every rank has one and the
 * context was opened with "auto" or "cuda" (hpct_context_open_on). In a context of
 * hpct_context_open_apart each worker for itself, and a parameter server stays on its CPU.
 * Collective; HPCT_ERR_CONFIG, on all ranks, also where one cannot compute in the model's
 * precision. */
HPCT_API hpct_status hpct_set_device(hpct_context *context, hpct_model *model, const char *device);

/* Trains. A compiled, initialized model; collective: all ranks pass the same model, data and
 * options, and rank 0's weights are everybody's from the first step on. The samples of global batch
 * t come from (seed, t) alone and each rank takes its slice, so the loss curve does not depend on
 * the number of ranks beyond fp32 rounding. `result` may be NULL. HPCT_ERR_USAGE for options that
 * cannot be, HPCT_ERR_DATA when the data do not fit the model (shapes, labels out of range),
 * or loss and weights have diverged, HPCT_ERR_IO when an output cannot be written: the same on all
 * ranks. Outputs are tried before the first step; what fails later ends nothing, and the message
 * says where the weights are (man hpc-train, RESULTS). On SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGHUP
 * or SIGXCPU (to any rank) all ranks stop after the same step and HPCT_ERR_STOPPED is returned,
 * with the model as trained so far; a second SIGINT or SIGTERM, two seconds later or more, ends the
 * process at once. SIGPIPE and SIGXFSZ are ignored meanwhile. Signals
 * that the program handles itself stay its own; their handlers must have SA_ONSTACK and a
 * sigaltstack, because oneDNN's kernels do not bear a signal's frame on the thread's own stack. */
HPCT_API hpct_status hpct_fit(hpct_context *context, hpct_model *model, const hpct_dataset *train,
                              const hpct_fit_options *options, hpct_fit_result *result);

/* What hpct_fit refuses whatever the model and the data, HPCT_ERR_USAGE: to be called before they
 * are read. Not collective, and the same on all ranks. */
HPCT_API hpct_status hpct_fit_check(const hpct_context *context, const hpct_fit_options *options);

/* What TensorFlow's estimators call train_and_evaluate. */
typedef struct hpct_train_and_evaluate_options {
    int64_t max_steps;      /* of training; must be given */
    int64_t evaluate_every; /* steps; default: once, at the end */
    hpct_fit_options fit;   /* the rest, without epochs, steps_per_epoch and validation */
} hpct_train_and_evaluate_options;

/* Trains max_steps steps on full batches, pass after pass, and evaluates on `evaluation` every so
 * many steps and at the end. What lies between two evaluations is shown and logged as an epoch. As
 * hpct_fit in all else; collective. */
HPCT_API hpct_status hpct_train_and_evaluate(hpct_context *context, hpct_model *model,
                                             const hpct_dataset *train,
                                             const hpct_dataset *evaluation,
                                             const hpct_train_and_evaluate_options *options,
                                             hpct_fit_result *result);

/* Mean loss and accuracy over the whole data set, each sample counted once, each rank computing its
 * share; collective. batch_size is per rank, 0 for the default (128). HPCT_ERR_DATA, with *metrics
 * filled, when the loss is not finite. */
HPCT_API hpct_status hpct_evaluate(hpct_context *context, hpct_model *model,
                                   const hpct_dataset *dataset, int batch_size,
                                   hpct_metrics *metrics);

#ifdef __cplusplus
}
#endif
#endif
