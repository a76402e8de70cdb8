/* hpctrain/strategy.h - how the ranks share the work of a step. */
#ifndef HPCTRAIN_STRATEGY_H
#define HPCTRAIN_STRATEGY_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero means the default named; all ranks give the same. */
typedef struct hpct_strategy_options {
    /* "multi-worker-mirrored" (the default): every rank has the whole model and a slice of each
     * global batch; the gradients are summed over the ranks.
     * "parameter-server": ranks of the role ps own the variables, which those of the role worker
     * pull, and push gradients to; workers may come and go. For fit alone, in a context of
     * hpct_context_open_apart; see doc/parameter-server.md. */
    const char *name;

    /* parameter-server: each update is made from the gradients of one global batch, and the result
     * is that of one rank. Default: every gradient is an update of its own. */
    bool ps_synchronous;
    int ps_backup_workers; /* synchronous: a global batch is shared by so many workers fewer, and
                              who is idle computes again what the slowest have in work */
    bool ps_bounded;       /* asynchronous: no gradient is older than ps_max_staleness updates: */
    int64_t ps_max_staleness; /* who is too fast waits */
} hpct_strategy_options;

#ifdef __cplusplus
}
#endif
#endif
