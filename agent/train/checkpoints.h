/* agent/train/checkpoints.h - when a run saves its state, and continuing from it. Threads write
 * while training goes on. */
#ifndef HPCT_AGENT_TRAIN_CHECKPOINTS_H
#define HPCT_AGENT_TRAIN_CHECKPOINTS_H

#include "agent/train/training.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct hpct_train_checkpoints hpct_train_checkpoints;

/* HPCT_ERR_USAGE for options that mean nothing. Independent of ranks. */
hpct_status hpct_train_checkpoints_check(const char *dir, const char *every, const char *resume,
                                         int keep);

/* Takes the lock of the folder that the options name, and finds the newest valid checkpoint, or the
 * given one: training->begin is where to go on, and training->continued says whether there is one.
 * *out: NULL without a folder. Collective. Returns HPCT_ERR_CONFIG, naming the difference, if the
 * checkpoint is of another run; HPCT_ERR_NO_INPUT if a given one is missing. */
hpct_status hpct_train_checkpoints_open(hpct_train_checkpoints **out,
                                        hpct_train_training *training);

/* Once `strategy` is open for the model: it receives the state of the checkpoint, if there is one.
 * The strategy outlives the checkpoints. Collective. */
hpct_status hpct_train_checkpoints_attach(hpct_train_checkpoints *checkpoints,
                                          hpct_strategy *strategy);

/* Whether to save after step `done` of the run (from 1 on, with those of earlier runs); the same on
 * all ranks. Collective now and then. `epoch_ended`: its last step. */
hpct_status hpct_train_checkpoints_due(hpct_train_checkpoints *checkpoints, int64_t done,
                                       bool epoch_ended, bool *due);

/* Copies the state and has it written; skipped, after a message, while an earlier one still is
 * written, unless `last`, which waits. `best`: it stays until another one of these is complete. A
 * failed write is reported and tried again at the next time. Collective. */
hpct_status hpct_train_checkpoints_save(hpct_train_checkpoints *checkpoints,
                                        const hpct_train_place *place, bool best, bool last);

/* Training has also waited so many seconds for the state that was saved last: for the share of time
 * that checkpoints take, where that is limited. */
void hpct_train_checkpoints_waited(hpct_train_checkpoints *checkpoints, double seconds);

/* Waits until all is written. Returns HPCT_ERR_IO, on the rank that failed, if the last checkpoint
 * is not complete. Collective. */
hpct_status hpct_train_checkpoints_finish(hpct_train_checkpoints *checkpoints);

/* Seconds that the last checkpoint took, on this rank; 0 before one, or for NULL. */
double hpct_train_checkpoints_seconds(const hpct_train_checkpoints *checkpoints);

/* Waits until all is written; whether there is a complete one. The same on all ranks. Collective.
 */
hpct_status hpct_train_checkpoints_any(hpct_train_checkpoints *checkpoints, bool *any);

/* Path of the last complete checkpoint, or "". Rank 0. */
const char *hpct_train_checkpoints_last(const hpct_train_checkpoints *checkpoints);

void hpct_train_checkpoints_close(hpct_train_checkpoints *checkpoints); /* NULL is allowed */

#endif
