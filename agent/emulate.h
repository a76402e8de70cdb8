/* agent/emulate.h - has a rank sleep instead of computing, for as long as its operations were
 * measured to take: what `bench --emulate` does before its steps. */
#ifndef HPCT_AGENT_EMULATE_H
#define HPCT_AGENT_EMULATE_H

#include "agent/context.h"

#include <hpctrain/model.h>

/* `model` is built, as a strategy has it step on this rank with `count` samples; `whole` is the
 * model of which that may be a part, and `share` the samples of one rank of a step. The times come
 * from `path`, a file of compute times (agent/compute.h) of `whole`; where that is empty ("") they
 * are measured here: ranks share the machine's processors, so those that have the same operations
 * measure once, and one after the other, while the rest sleep. Of a part of the model they are
 * measured with a file, too, in turn with the whole, and are to the file's as they are to those: a
 * machine that is slower than it was makes no difference. Sleeps are `dilation` times as long.
 * Collective. */
typedef struct hpct_emulate_options {
    hpct_model *model;
    const hpct_model *whole;
    int count, share;
    const char *path;
    double dilation;
} hpct_emulate_options;

hpct_status hpct_emulate(hpct_context *context, const hpct_emulate_options *options);

#endif
