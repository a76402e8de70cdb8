/* agent/results.h - what a run leaves behind: it is known before step 1 that it can be written, and
 * what has been learned is saved whatever else fails. Knows no formats. */
#ifndef HPCT_AGENT_RESULTS_H
#define HPCT_AGENT_RESULTS_H

#include "agent/summary.h"

#include <hpctrain/train.h>
#include <stdbool.h>
#include <stdint.h>

/* A file that an option asks for; path NULL: it was not given. */
typedef struct hpct_result_file {
    const char *option, *path;
    size_t bytes; /* that it will have at least */
} hpct_result_file;

/* HPCT_ERR_USAGE where two are one file, HPCT_ERR_IO where one cannot be written. */
hpct_status hpct_results_try(const hpct_result_file *files, int num);

/* The same of all that fit writes; makes log_dir. */
hpct_status hpct_results_try_fit(const hpct_fit_options *options, const hpct_model *model);

/* How weights are called that do not get the name that was asked for. */
#define HPCT_RESULTS_RESCUED "rescued"   /* it could not be written, or the run was cut short */
#define HPCT_RESULTS_DIVERGED "diverged" /* nothing of that is to replace a good file */

/* FOLDER/PREFIX-NAME of FOLDER/NAME, or PREFIX-2-NAME and so on: a name that is free. The caller
 * frees *out. */
hpct_status hpct_results_beside(char **out, const char *path, const char *prefix);

/* How a run ended, for its last message. */
#define HPCT_RESULTS_WHERE 1024
typedef struct hpct_results_end {
    hpct_status failed; /* the first failure, with its message; HPCT_OK, NULL */
    char *why;
    bool diverged;
    bool has_loss;
    double first_loss, last_loss; /* of steps */
    double mean_loss;             /* of the last epoch, so far */
    int signal;                   /* that stopped it, or 0 */
    int64_t steps;
    int epoch, epochs; /* the one it was in, from 1 */
    const char *save_weights;
    char where[HPCT_RESULTS_WHERE]; /* the weights are, or "" */
} hpct_results_end;

/* A step's loss, and the mean of its epoch so far. */
void hpct_results_note_loss(hpct_results_end *end, double loss, double mean);

/* Whether the losses say that training has diverged: the last is not finite, or it is 100 times the
 * first, and so is the epoch's mean. */
bool hpct_results_diverged(const hpct_results_end *end);

/* Saves the weights: under `path` or, where that fails, or where the run has failed or diverged,
 * under a free name beside it, in $HPC_TRAIN_RESCUE_DIR, or in the working folder; end->where
 * becomes what it is. Looks whether they are finite. HPCT_ERR_IO, or what failed, unless they are
 * where they should be. */
hpct_status hpct_results_save(const hpct_model *model, const char *path, hpct_results_end *end);

/* The summary; of what has diverged, under a free name beside a file that is there. */
hpct_status hpct_results_write_summary(const hpct_summary *summary, const char *path,
                                       bool diverged);

/* Keeps a failure and its message, unless there is one already. */
void hpct_results_note(hpct_results_end *end, hpct_status status);

/* HPCT_OK, or its status with a message that says why and where the weights are: the failure,
 * HPCT_ERR_DATA for what has diverged, HPCT_ERR_STOPPED for a signal. */
hpct_status hpct_results_tell(const hpct_results_end *end);

#endif
