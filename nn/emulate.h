/* nn/emulate.h - the calls that a step makes of its operations, which an emulation (nn/parts.h)
 * takes the place of. Private to nn/. */
#ifndef HPCT_NN_EMULATE_H
#define HPCT_NN_EMULATE_H

#include "nn/run.h"

struct hpct_emulation {
    hpct_step_seconds seconds;
    double ahead; /* seconds slept more than was asked for, so far */
};

/* The operation of a node, or its emulation. */
hpct_status hpct_emulate_forward(const hpct_model *model, int node, const hpct_op_call *call);
hpct_status hpct_emulate_backward(const hpct_model *model, int node, const hpct_op_call *call);

/* Whether this part of a step was slept instead. */
bool hpct_emulate_loss(hpct_run *run, hpct_batch_sums *sums);
bool hpct_emulate_update(hpct_run *run);

void hpct_emulation_free(hpct_emulation *emulation);

#endif
