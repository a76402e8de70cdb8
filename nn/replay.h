/* nn/replay.h - parts of a step that a device makes again from a recording: one call of the host
 * instead of one for each operation. A whole step is a part; or forward, loss, backward and update
 * are one each, where a step is made by parts and no other replica takes part in it. A part is made
 * by its calls the first time, recorded the second, and replayed from then on. What it was called
 * with is its key; seeds, steps and rates of the optimizer, which differ from step to step, the
 * device reads when it replays (hpct_device, set_draws and set_rates). Private to nn/. */
#ifndef HPCT_NN_REPLAY_H
#define HPCT_NN_REPLAY_H

#include "nn/run.h"

typedef enum hpct_recorded_part {
    HPCT_RECORDED_FORWARD,
    HPCT_RECORDED_LOSS,
    HPCT_RECORDED_BACKWARD,
    HPCT_RECORDED_UPDATE,
    HPCT_RECORDED_STEP /* all of these, and what a device does for the input */
} hpct_recorded_part;

/* All that may differ between two calls of a part, and that the host decides. */
typedef struct hpct_recording_key {
    hpct_recorded_part part;
    int n;                  /* samples */
    bool stale;             /* copies of parameters are made anew */
    float scale;            /* of the loss */
    const float *gradients; /* that the update takes */
    uint64_t resident;      /* number of the pictures that the input is made of; 0: none */
} hpct_recording_key;

typedef struct hpct_recordings hpct_recordings; /* of a run; begins as NULL */

/* What the caller has to do. */
typedef enum hpct_recording_way {
    HPCT_RECORDING_CALL,     /* make the calls, then hpct_recording_end */
    HPCT_RECORDING_DONE,     /* nothing: *status says what came of the replay */
    HPCT_RECORDING_REHEARSE, /* make the calls without the other replicas, then
                                hpct_recording_rehearsed */
} hpct_recording_way;

hpct_recording_way hpct_recording_begin(const hpct_model *model, const hpct_recording_key *key,
                                        hpct_status *status);

/* A step in which others take part is noted twice. The first time shows whether this replica can,
 * while nobody waits for it; that is dropped. Where all can, the second time is the one that
 * counts, and what fails then, fails the step. *status: what came of the calls; then of agreeing.
 */
hpct_recording_way hpct_recording_rehearsed(const hpct_model *model, hpct_status *status);

/* After the calls, with what came of them. True where they were noted to no avail, and have to be
 * made once more. */
bool hpct_recording_end(const hpct_model *model, hpct_status *status);

void hpct_recordings_free(hpct_run *run);

#endif
