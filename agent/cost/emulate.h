/* agent/cost/emulate.h - emulated computation of `bench --emulate`: operations sleep for their
 * measured time. */
#ifndef HPCT_AGENT_COST_EMULATE_H
#define HPCT_AGENT_COST_EMULATE_H

#include "agent/rank/context.h"

#include <hpctrain/model.h>

/* `model` is built as the strategy steps it on this rank with `count` samples; it may be a shard of
 * `whole`; `share` is the local batch. Times are from `path`, a file of `whole`
 * (agent/cost/compute.h), or with "" measured here: as ranks share processors, those with equal
 * operations measure once, in turn, while the others sleep. Shards are measured even with a file,
 * alternating with the whole, and scaled to the file's times, which compensates for changes of the
 * machine's speed. Sleeps are `dilation` times as long. Collective. */
typedef struct hpct_cost_emulate_options {
    hpct_model *model;
    const hpct_model *whole;
    int count, share;
    const char *path;
    double dilation;
} hpct_cost_emulate_options;

hpct_status hpct_cost_emulate(hpct_context *context, const hpct_cost_emulate_options *options);

#endif
