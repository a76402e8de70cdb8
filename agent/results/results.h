/* agent/results/results.h - outputs of a run: checked before step 1, and weights are saved whatever
 * else fails. Independent of formats. */
#ifndef HPCT_AGENT_RESULTS_RESULTS_H
#define HPCT_AGENT_RESULTS_RESULTS_H

#include "agent/results/summary.h"

#include <hpctrain/train.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* A file given by an option; path NULL: not given. */
typedef struct hpct_results_file {
    const char *option, *path;
    size_t bytes; /* expected size, at least */
} hpct_results_file;

/* HPCT_ERR_USAGE if two are one file, HPCT_ERR_IO if one cannot be written. */
hpct_status hpct_results_try(const hpct_results_file *files, int num);

/* In log_dir (agent/results/history.h). */
#define HPCT_RESULTS_HISTORY_EPOCHS "history.csv"
#define HPCT_RESULTS_HISTORY_STEPS "metrics.jsonl"

/* The same for all outputs of fit; creates log_dir. */
hpct_status hpct_results_try_fit(const hpct_fit_options *options, const hpct_model *model);

/* Prefixes of weights that do not get the requested name. */
#define HPCT_RESULTS_RESCUED "rescued"   /* it could not be written, or the run ended early */
#define HPCT_RESULTS_DIVERGED "diverged" /* must not replace a good file */

/* A free name FOLDER/PREFIX-NAME for FOLDER/NAME, or PREFIX-2-NAME and so on. The caller frees
 * *out. */
hpct_status hpct_results_beside(char **out, const char *path, const char *prefix);

/* How a run ended, for its last message. */
#define HPCT_RESULTS_WHERE 4096
typedef struct hpct_results_end {
    hpct_status failed; /* first error; HPCT_OK */
    char *why;          /* messages of all errors; NULL */
    bool diverged;
    bool has_loss;
    double first_loss, last_loss; /* of steps */
    double mean_loss;             /* of the last epoch so far */
    int signal;                   /* that stopped it, or 0 */
    int64_t steps;                /* since the first epoch, over all starts */
    int epoch, epochs;            /* current one, from 1 */
    const char *save_weights;
    char fault[200];                /* of a loss that is not finite: where that began, or "" */
    char where[HPCT_RESULTS_WHERE]; /* path of the weights, or "" */
} hpct_results_end;

/* Records a step's loss and its epoch's mean so far. */
void hpct_results_note_loss(hpct_results_end *end, double loss, double mean);

/* Whether training has diverged: the last loss is not finite, or it and the epoch's mean are 100
 * times the first. */
bool hpct_results_diverged(const hpct_results_end *end);

/* Saves the weights as `path`; if that fails, or the run failed or diverged, under a free name
 * beside it, in $HPC_TRAIN_RESCUE_DIR, or in the working folder; sets end->where. Checks that they
 * are finite. Returns HPCT_ERR_IO, or the error, unless they are in place. */
hpct_status hpct_results_save(const hpct_model *model, const char *path, hpct_results_end *end);

/* Writes the summary; of a diverged run under a free name if the file exists. If it cannot be
 * written, as hpct_results_rescue, and returns HPCT_ERR_IO saying where. */
hpct_status hpct_results_write_summary(const hpct_results_summary *summary, const char *path,
                                       bool diverged);

/* Writes what cannot be written as `path` under a free name beside it, in $HPC_TRAIN_RESCUE_DIR, or
 * in the working folder. Returns the earlier error with the new place. */
typedef hpct_status hpct_results_rescuer(void *what, const char *name, bool synced);
hpct_status hpct_results_rescue(hpct_status failed, const char *path, hpct_results_rescuer *rescue,
                                void *what);

/* Records an error and its message; of later ones only the message. */
void hpct_results_note(hpct_results_end *end, hpct_status status);

/* Whether the learning rate falls until the last epoch, so that another number of epochs changes
 * it: cosine and polynomial decay. */
bool hpct_results_rate_spans(const hpct_model *model);

/* Prints a line for each output file that exists, and what can be done with it. `early`: the run
 * has ended by itself, before its last epoch. */
void hpct_results_say_written(const hpct_fit_options *options, const hpct_model *model, bool early,
                              FILE *stream);

/* HPCT_OK, or the status with a message of reason and place of the weights: the error,
 * HPCT_ERR_DATA if diverged, HPCT_ERR_STOPPED for a signal. */
hpct_status hpct_results_tell(const hpct_results_end *end);

#endif
