/* nn/head.h - the end of a classifier, where a backend does it at once: forward of the last Dense,
 * the loss of its result, and its backward (hpct_backend.head). Only where a whole step is made;
 * one of parts has the operations themselves. */
#ifndef HPCT_NN_HEAD_H
#define HPCT_NN_HEAD_H

#include "nn/run.h"

/* Which node that is, if any; operations must have been made. */
void hpct_run_find_head(const hpct_model *model, hpct_run *run);

/* In the place of those of all these nodes and of the loss: by the call of the head, and of the
 * node before it if there is one. */
hpct_status hpct_run_make_head(const hpct_run *run, const hpct_op_call *call,
                               const hpct_op_call *call_before, const hpct_loss_call *loss);

#endif
