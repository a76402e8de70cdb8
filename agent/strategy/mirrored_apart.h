/* agent/strategy/mirrored_apart.h - strategy mirrored where replicas do not share the host's
 * memory: what mirrored.c opens for models on GPUs. */
#ifndef HPCT_STRATEGY_MIRRORED_APART_H
#define HPCT_STRATEGY_MIRRORED_APART_H

#include "agent/strategy/strategy.h"

/* The table of such a strategy; it is not in the list of those with a name of their own. */
extern const hpct_strategy_ops hpct_mirrored_apart;

#endif
