/* agent/strategy/replicas/mirrored_gpus.h - multi-GPU replicas: used by mirrored.c and
 * central_storage.c for models on GPUs. */
#ifndef HPCT_AGENT_STRATEGY_REPLICAS_MIRRORED_GPUS_H
#define HPCT_AGENT_STRATEGY_REPLICAS_MIRRORED_GPUS_H

#include "agent/strategy/strategy.h"

/* The strategy table: each of several replicas is a rank of multi-worker-mirrored; so is a single
 * one. */
const hpct_strategy_ops *hpct_replicas_mirrored_gpus(const hpct_strategy_plan *plan);

#endif
