/* agent/train/checkpoints.h - when a run saves its state, and continuing from it. Rank 0 writes, in
 * a thread, while training goes on. */
#ifndef HPCT_AGENT_TRAIN_CHECKPOINTS_H
#define HPCT_AGENT_TRAIN_CHECKPOINTS_H

#include "agent/train/place.h"

#include <hpctrain/context.h>
#include <hpctrain/model.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct hpct_checkpoints_options {
    hpct_context *context;
    hpct_model *model;
    const char *dir, *every, *resume; /* as in hpct_fit_options; dir is not NULL */
    int keep;                         /* 0: default */
    int64_t steps_per_epoch;
    bool speaks;  /* rank 0 prints */
    json_t *same; /* what a run must have in common with the checkpoint: {name: value} */
} hpct_checkpoints_options;

typedef struct hpct_checkpoints hpct_checkpoints;

/* HPCT_ERR_USAGE for options that mean nothing. Independent of ranks. */
hpct_status hpct_checkpoints_check(const char *dir, const char *every, const char *resume,
                                   int keep);

/* Takes the folder's lock, and continues from the newest valid checkpoint, or the given one: the
 * model, not yet built, receives its state, and *place is where to go on (zeros without one). The
 * caller keeps options->same. Collective. Returns HPCT_ERR_CONFIG, naming the difference, if the
 * checkpoint is of another run; HPCT_ERR_NO_INPUT if a given one is missing. */
hpct_status hpct_checkpoints_open(hpct_checkpoints **out, const hpct_checkpoints_options *options,
                                  hpct_place *place, bool *continues);

/* Once the model is built for training, which broadcasts rank 0's weights: this rank's own moving
 * statistics, if the checkpoint is of as many ranks. */
hpct_status hpct_checkpoints_restore_own(hpct_checkpoints *checkpoints);

/* Whether to save after step `done` of the run (from 1 on, with those of earlier runs); the same on
 * all ranks. Collective now and then. `epoch_ended`: its last step. */
hpct_status hpct_checkpoints_due(hpct_checkpoints *checkpoints, int64_t done, bool epoch_ended,
                                 bool *due);

/* Copies the state and has it written; skipped, after a message, while an earlier one still is
 * written, unless `last`, which waits. A failed write is reported and tried again at the next time.
 * Collective. */
hpct_status hpct_checkpoints_save(hpct_checkpoints *checkpoints, const hpct_place *place,
                                  bool last);

/* Waits for the writer. Returns HPCT_ERR_IO if the last checkpoint is not complete. Not
 * collective: on ranks other than 0 always HPCT_OK. */
hpct_status hpct_checkpoints_finish(hpct_checkpoints *checkpoints);

/* Path of the last complete checkpoint, or "". Rank 0. */
const char *hpct_checkpoints_last(const hpct_checkpoints *checkpoints);

void hpct_checkpoints_close(hpct_checkpoints *checkpoints); /* NULL is allowed */

#endif
