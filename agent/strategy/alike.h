/* agent/strategy/alike.h - models built so that what ranks add up lies in the same way in them: in
 * the fastest layout, or, where processors differ and with them the layouts, in the one that every
 * processor has. */
#ifndef HPCT_STRATEGY_ALIKE_H
#define HPCT_STRATEGY_ALIKE_H

#include <hpctrain/context.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct hpct_alike {
    /* Builds what this rank has, with parameters laid out as on every processor if `plain`.
     * *layout: a fingerprint of what is added up; 0 where the rank itself has it in several ways.
     */
    hpct_status (*build)(void *argument, bool plain, uint64_t *layout);
    void *argument;
    int classes; /* rank r has the layout of rank r % classes */
} hpct_alike;

/* HPCT_ERR_CONFIG, naming two ranks, when they do not have the same model. Collective. */
hpct_status hpct_build_alike(hpct_context *context, const hpct_alike *how);

#endif
