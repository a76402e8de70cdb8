/* agent/strategy/mirrored_apart.h - strategies of replicas where these do not share the host's
 * memory: what mirrored.c and central_storage.c open for models on GPUs. */
#ifndef HPCT_STRATEGY_MIRRORED_APART_H
#define HPCT_STRATEGY_MIRRORED_APART_H

#include "agent/strategy/strategy.h"

/* Who does it: of several replicas each is a rank of multi-worker-mirrored, as one alone is. */
const hpct_strategy_ops *hpct_mirrored_apart(const hpct_strategy_plan *plan);

#endif
