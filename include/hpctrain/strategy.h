/* hpctrain/strategy.h - how the ranks share the work of a step. */
#ifndef HPCTRAIN_STRATEGY_H
#define HPCTRAIN_STRATEGY_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero means the default named; all ranks give the same. */
typedef struct hpct_strategy_options {
    /* "multi-worker-mirrored" (the default): every rank has the whole model and a slice of each
     * global batch; the gradients are summed over the ranks. */
    const char *name;
    bool allow_lossy; /* strategies and options that change the mathematics may be chosen */
} hpct_strategy_options;

#ifdef __cplusplus
}
#endif
#endif
