/* agent/strategy/alike.h - builds models so that summed data has the same layout on all ranks: the
 * fastest, or, if processors and layouts differ, the plain one. */
#ifndef HPCT_AGENT_STRATEGY_ALIKE_H
#define HPCT_AGENT_STRATEGY_ALIKE_H

#include <hpctrain/context.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct hpct_strategy_alike {
    /* Builds this rank's model, with the plain layout if `plain`. *layout: fingerprint of what is
     * summed; 0 if the rank itself has several layouts. */
    hpct_status (*build)(void *argument, bool plain, uint64_t *layout);
    void *argument;
    int classes; /* rank r has the layout of rank r % classes */
} hpct_strategy_alike;

/* Returns HPCT_ERR_CONFIG, naming two ranks, if models differ. Collective. */
hpct_status hpct_strategy_build_alike(hpct_context *context, const hpct_strategy_alike *how);

#endif
