/* agent/emulate.h - has a rank sleep instead of computing, for as long as its operations were
 * measured to take: what `bench --emulate` does before its steps. */
#ifndef HPCT_AGENT_EMULATE_H
#define HPCT_AGENT_EMULATE_H

#include "agent/context.h"

#include <hpctrain/model.h>

/* `model` is built, as a strategy has it step on this rank with `count` samples. The times come
 * from `path`, a file of compute times (agent/compute.h) of the same model; where that is empty
 * ("") they are measured here: ranks share the machine's processors, so those that have the same
 * operations measure once, and one after the other, while the rest sleep. Sleeps are `dilation`
 * times as long. Collective. */
hpct_status hpct_emulate(hpct_context *context, hpct_model *model, int count, const char *path,
                         double dilation);

#endif
