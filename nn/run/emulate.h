/* nn/run/emulate.h - emulated computation (nn/run/parts.h): sleeps instead of calling operations.
 * Private to nn/. */
#ifndef HPCT_NN_RUN_EMULATE_H
#define HPCT_NN_RUN_EMULATE_H

#include "nn/plan/run.h"
#include "nn/run/parts.h"

struct hpct_run_emulation {
    hpct_run_step_seconds seconds;
    double ahead; /* excess of all sleeps so far, in seconds; shortens the next */
};

/* Calls a node's operation, or emulates it. */
hpct_status hpct_run_emulate_forward(const hpct_model *model, int node, const hpct_op_call *call);
hpct_status hpct_run_emulate_backward(const hpct_model *model, int node, const hpct_op_call *call);

/* If emulated: sleeps, returns true. */
bool hpct_run_emulate_loss(hpct_run *run, hpct_backend_batch_sums *sums);
bool hpct_run_emulate_update(hpct_run *run);

#endif
