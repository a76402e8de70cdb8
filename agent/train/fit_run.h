/* agent/train/fit_run.h - a run of fit, whose ranks step together: for the files fit*.c alone. */
#ifndef HPCT_AGENT_TRAIN_FIT_RUN_H
#define HPCT_AGENT_TRAIN_FIT_RUN_H

#include "agent/cost/choose.h"
#include "agent/data/sampler.h"
#include "agent/train/checkpoints.h"
#include "agent/train/training.h"

#include <hpctrain/train.h>

typedef struct hpct_fit_run {
    hpct_train_training training;
    int64_t max_steps; /* over all epochs */
    int evaluation_batch;
    hpct_cost_strategy_choice choice;
    hpct_data_sampler *sampler;
    hpct_train_checkpoints *checkpoints; /* NULL: not requested */
    bool due;                            /* a checkpoint, at the end of the epoch */
    bool nan;                 /* the loss of the last step is not finite: training ends */
    hpct_status input_failed; /* error of this rank's input, if any */
} hpct_fit_run;

/* *global_batch: samples per step. Independent of model and data. HPCT_ERR_USAGE. */
hpct_status hpct_fit_check_options(const hpct_context *context, const hpct_fit_options *options,
                                   int *global_batch);

/* Gradients that are accumulated need a step that applies them. */
hpct_status hpct_fit_check_accumulation(const hpct_fit_run *run);

/* Opens the folder of checkpoints, if the options name one, and continues from what it holds:
 * training.begin is where. Before the model is built. Collective. */
hpct_status hpct_fit_open_checkpoints(hpct_fit_run *run);

/* A step's loss is not finite: finds the layer and rank that it comes from, for the last message.
 * Collective. */
hpct_status hpct_fit_note_nan(hpct_fit_run *run, int count, int global_count);

/* After that, with --on-nan resume: whether there is a checkpoint to go back to, and this has not
 * been done yet; then *path is its folder, on rank 0, and the caller frees it. Collective. */
hpct_status hpct_fit_goes_back(hpct_fit_run *run, bool *back, char **path);

/* After a second part that has failed: the first one has left status.json, and run.json if it was
 * `settled`, as those of a run that goes on. */
void hpct_fit_restate_failed(const hpct_train_training *training, bool settled);

/* After each step: saves if a checkpoint is due; at the end of an epoch hpct_fit_save_epoch does,
 * once the next one is the moment. After the last step hpct_fit_save_last, also if the run was
 * stopped: HPCT_ERR_IO if the last checkpoint is not complete. Collective. */
hpct_status hpct_fit_save_step(hpct_fit_run *run);
hpct_status hpct_fit_save_epoch(hpct_fit_run *run);
hpct_status hpct_fit_save_last(hpct_fit_run *run);

#endif
