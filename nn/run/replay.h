/* nn/run/replay.h - recordings (CUDA graphs) of a step's parts: one host call instead of one per
 * operation. A part is a whole step; or forward, loss, backward or update, if a step runs by parts
 * and without other replicas. It is called the first time, recorded the second, and replayed
 * afterwards. The arguments of a call are its key; seeds, steps and learning rates are read by the
 * device on replay (hpct_backend_device, set_draws and set_rates). Private to nn/. */
#ifndef HPCT_NN_RUN_REPLAY_H
#define HPCT_NN_RUN_REPLAY_H

#include "nn/plan/run.h"

typedef enum hpct_run_recorded_part {
    HPCT_RUN_RECORDED_FORWARD,
    HPCT_RUN_RECORDED_LOSS,
    HPCT_RUN_RECORDED_BACKWARD,
    HPCT_RUN_RECORDED_UPDATE,
    HPCT_RUN_RECORDED_STEP /* all of the above, and the device's work on the input */
} hpct_run_recorded_part;

/* Everything that may differ between two calls of a part and is decided by the host. */
typedef struct hpct_run_recording_key {
    hpct_run_recorded_part part;
    int n;                  /* samples */
    bool stale;             /* copies of parameters are remade in this part */
    float scale;            /* of the loss */
    const float *gradients; /* read by the update */
    uint64_t resident;      /* number of the data set on the device; 0: none */
} hpct_run_recording_key;

typedef struct hpct_run_recordings hpct_run_recordings; /* of a run; NULL at first */

/* What the caller must do. */
typedef enum hpct_run_recording_way {
    HPCT_RUN_RECORDING_CALL,     /* make the calls, then call hpct_run_recording_end */
    HPCT_RUN_RECORDING_DONE,     /* nothing: *status is the result */
    HPCT_RUN_RECORDING_REHEARSE, /* call without other replicas, then hpct_run_recording_rehearsed
                                  */
} hpct_run_recording_way;

hpct_run_recording_way hpct_run_recording_begin(const hpct_model *model,
                                                const hpct_run_recording_key *key,
                                                hpct_status *status);

/* A step with other replicas is recorded twice. The first recording, discarded, shows whether this
 * replica can record, without communicating. If all can, the second is used, and an error then
 * fails the step. *status: in, the result of the calls; out, that of the agreement. */
hpct_run_recording_way hpct_run_recording_rehearsed(const hpct_model *model, hpct_status *status);

/* To be called after the calls, with their status. True if recording failed and the calls must be
 * repeated. */
bool hpct_run_recording_end(const hpct_model *model, hpct_status *status);

void hpct_run_recordings_free(hpct_run *run);

#endif
