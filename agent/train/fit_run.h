/* agent/train/fit_run.h - a run of fit: its state, and its checkpoints, for fit.c alone. */
#ifndef HPCT_AGENT_TRAIN_FIT_RUN_H
#define HPCT_AGENT_TRAIN_FIT_RUN_H

#include "agent/cost/choose.h"
#include "agent/data/sampler.h"
#include "agent/rank/timeline.h"
#include "agent/results/board.h"
#include "agent/results/history.h"
#include "agent/results/live.h"
#include "agent/results/progress.h"
#include "agent/results/results.h"
#include "agent/results/run_file.h"
#include "agent/train/checkpoints.h"
#include "agent/train/control.h"
#include "agent/train/deadline.h"
#include "agent/train/feed.h"
#include "agent/train/kept_weights.h"
#include "agent/train/pace.h"

#include <hpctrain/train.h>

/* Sums over the steps of one epoch. */
typedef struct hpct_fit_sums {
    double loss, correct, in_top_k;
    int64_t samples, steps, planned;
    int64_t timed;                  /* steps of this run */
    double began, first_step_ended; /* clock */
} hpct_fit_sums;

typedef struct hpct_fit_run {
    hpct_context *context;
    hpct_model *model;
    const hpct_dataset *train, *validation;
    hpct_fit_options options;
    int64_t max_steps; /* over all epochs */
    json_t *identity;  /* agent/train/identity.h */
    hpct_strategy_choice choice;
    hpct_sampler *sampler;
    hpct_feed *feed;
    hpct_strategy *strategy;
    hpct_history *history;         /* rank 0 with log_dir */
    hpct_board *board;             /* the same */
    hpct_live *live;               /* rank 0; NULL: no log_dir, no metrics_file */
    hpct_timeline *timeline;       /* NULL: not requested */
    hpct_checkpoints *checkpoints; /* NULL: not requested */
    hpct_place begin, place;       /* where this run begins, and where it is */
    bool due;                      /* a checkpoint, at the end of the epoch */
    hpct_best best;                /* so far */
    hpct_deadline deadline;        /* rank 0 */
    hpct_control control;
    hpct_kept_weights kept;
    hpct_pace *pace;
    hpct_run_file *file;           /* rank 0 with log_dir */
    bool settled, told;            /* the log folder has files of this run; and its end */
    double parts[HPCT_PACE_PARTS]; /* seconds of the last step */
    hpct_monitor monitor;          /* of the best epoch */
    hpct_tally *tally;             /* of the last validation; NULL: neither metrics nor matrix */
    double evaluation_seconds;     /* of the last one */
    bool again;                    /* back to a checkpoint after a loss that was not finite */
    bool nan;                      /* the loss of the last step is not finite: training ends */
    bool is_best;                  /* the epoch that has just ended */
    hpct_status best_failed;       /* of writing the last best weights */
    hpct_progress progress;
    int global_batch, evaluation_batch;
    double *step_times; /* seconds, a ring buffer of num_step_times; without step 1 */
    int64_t num_step_times, steps_done;
    double *epoch_seconds;
    int epochs_done, signal;
    int64_t samples_done;
    hpct_status input_failed; /* error of this rank's input, if any */
    hpct_results_end end;
    double start_seconds, began;
    hpct_fit_result result;
} hpct_fit_run;

/* Step of the whole training, earlier runs included. */
int64_t hpct_fit_global_step(const hpct_fit_run *run, const hpct_place *place);

/* Opens the folder of checkpoints, if the options name one, and continues from what it holds:
 * run->begin is where. Once the sampler exists, and before the model is built. Collective. */
hpct_status hpct_fit_open_checkpoints(hpct_fit_run *run);

/* What decides after an epoch (agent/train/control.h). Opens it; takes what the run that is
 * continued has noted. Collective. */
hpct_status hpct_fit_open_control(hpct_fit_run *run);
hpct_status hpct_fit_recall_control(hpct_fit_run *run);

/* At the begin of an epoch, and at its end, evaluated and `gathered` or not: sets
 * result.stopped_epoch if training ends. Collective. */
hpct_status hpct_fit_control_epoch(hpct_fit_run *run, int epoch);
hpct_status hpct_fit_control_epoch_ended(hpct_fit_run *run, int epoch, bool gathered);

/* Calls the program's callbacks for a moment, at a step or, with -1, an epoch; `train` may be NULL.
 * Collective for epochs. */
hpct_status hpct_fit_call_back(hpct_fit_run *run, hpct_control_moment moment, int epoch,
                               int64_t step, const hpct_metrics *train);

/* After the last checkpoint: the best epoch's weights, if restore_best was asked for, into the
 * gathered model. Collective. */
hpct_status hpct_fit_restore_best(hpct_fit_run *run);

/* run.json in the log folder: its facts; once an epoch has ended well, with pace.jsonl, in the
 * place of an earlier run's. Errors before the end are printed. */
void hpct_fit_add_versions(hpct_run_facts *facts);
hpct_status hpct_fit_open_run_file(hpct_fit_run *run);
void hpct_fit_settle(hpct_fit_run *run);

/* status.json and --metrics-file (agent/results/live.h): after a step of `step` seconds in the
 * mean; once an epoch is evaluated, with step_loss NaN; when the pace of all ranks is known; at the
 * end. */
hpct_status hpct_fit_open_live(hpct_fit_run *run);
void hpct_fit_show_live(hpct_fit_run *run, int epoch, const hpct_fit_sums *sums, double step_loss,
                        double step);
void hpct_fit_show_ranks(hpct_fit_run *run);
void hpct_fit_close_live(hpct_fit_run *run, hpct_status status, bool goes_back);

/* At the end: --summary-json and run.json. HPCT_ERR_IO. Collective. */
hpct_status hpct_fit_write_summary(hpct_fit_run *run);
void hpct_fit_fail_run_file(hpct_fit_run *run);

/* After a run that has gone back and failed: run.json, if it was `settled` before, and status.json
 * say so. Local to rank 0. */
void hpct_fit_restate_failed(const hpct_fit_run *run, bool settled);

/* The sums that an epoch begins with: zeros, or those of the run that is continued. */
hpct_fit_sums hpct_fit_begin_epoch(const hpct_fit_run *run, int epoch, int64_t steps);

/* Once an epoch is evaluated, gathered or not: saves its weights if they are the best so far.
 * Errors are printed, and returned by hpct_fit_best_saved. Collective. */
hpct_status hpct_fit_note_best(hpct_fit_run *run, bool gathered);

/* HPCT_ERR_IO if the best weights are not in place. The same on all ranks. */
hpct_status hpct_fit_best_saved(const hpct_fit_run *run);

/* The event files in log_dir. Once the history is open; on rank 0, without effect on others. */
hpct_status hpct_fit_open_board(hpct_fit_run *run);

/* Before a step: so that the gradients of the `last` one of an epoch with histograms are there. */
void hpct_fit_show_gradients(hpct_fit_run *run, int epoch, bool last);

/* Once an epoch is evaluated, *gathered or not, before hpct_fit_note_board: adds the histograms
 * that are due. Collective. */
hpct_status hpct_fit_note_histograms(hpct_fit_run *run, int epoch, bool *gathered);

/* Adds the epoch's points; an error is printed now, and reported again at the end. */
void hpct_fit_note_board(hpct_fit_run *run, int epoch, const hpct_fit_sums *sums,
                         double step_seconds, bool good);

/* Collective. HPCT_ERR_IO if not everything was written. */
hpct_status hpct_fit_close_board(hpct_fit_run *run);

/* A step's loss is not finite: finds the layer and rank that it comes from, for the last message.
 * Collective. */
hpct_status hpct_fit_note_nan(hpct_fit_run *run, int count, int global_count);

/* After that, with --on-nan resume: whether there is a checkpoint to go back to, and this has not
 * been done yet; then *path is its folder, on rank 0, and the caller frees it. Collective. */
hpct_status hpct_fit_goes_back(hpct_fit_run *run, bool *back, char **path);

/* After each step: saves if a checkpoint is due; at the end of an epoch hpct_fit_epoch_ended does,
 * once it is evaluated and logged. After the last step hpct_fit_save_last, also if the run was
 * stopped: HPCT_ERR_IO if the last checkpoint is not complete. Collective. */
hpct_status hpct_fit_step_ended(hpct_fit_run *run, int epoch, int64_t step,
                                const hpct_fit_sums *sums);
hpct_status hpct_fit_epoch_ended(hpct_fit_run *run, int epoch);
hpct_status hpct_fit_save_last(hpct_fit_run *run);

#endif
