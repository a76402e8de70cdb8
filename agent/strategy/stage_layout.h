/* agent/strategy/stage_layout.h - assignment of pipeline stages to ranks, and of a batch to
 * micro-batches: arithmetic, equal on all ranks. */
#ifndef HPCT_AGENT_STRATEGY_STAGE_LAYOUT_H
#define HPCT_AGENT_STRATEGY_STAGE_LAYOUT_H

#include <hpctrain/model.h>
#include <hpctrain/strategy.h>

/* Rank r has stage r % stages of replica r / stages: neighbouring stages are neighbouring ranks.
 * Replicas share the samples of a batch. */
typedef struct hpct_strategy_stage_layout {
    int stages, replicas;
    int micro_batches; /* per replica, in a full batch */
} hpct_strategy_stage_layout;

/* For a full batch of so many samples over all replicas. Defaults: as many stages as ranks, or
 * their largest divisor the model has operations for; micro-batches by
 * hpct_strategy_stage_layout_default. Returns HPCT_ERR_CONFIG if ranks are not a multiple of
 * stages; for one stage on several ranks (data parallelism) unless given; for more stages than
 * operations, or more micro-batches than samples of a replica. */
hpct_status hpct_strategy_stage_layout_find(hpct_strategy_stage_layout *out,
                                            const hpct_model *model,
                                            const hpct_strategy_options *options, int ranks,
                                            int samples);

/* Micro-batches for n samples in S stages. The bubble, the idle share of a stage, is (S - 1) / (M +
 * S - 1); M = 4 (S - 1) keeps it at a fifth. The least M from there to twice that which divides n
 * into pieces of 4 samples or more; else M = 4 (S - 1), or n / 4 if less, at least 1. */
int hpct_strategy_stage_layout_default(int stages, int samples);

/* Micro-batches of each replica in a batch of so many samples: fewer if a short batch has fewer
 * samples. */
int hpct_strategy_stage_layout_pieces(const hpct_strategy_stage_layout *layout, int samples);

/* Maximal number of micro-batches of a stage between forward and backward: one-forward-one-backward
 * (PipeDream-Flush: Narayanan et al., Memory-Efficient Pipeline-Parallel DNN Training, 2021;
 * Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM, 2021). */
int hpct_strategy_stage_layout_in_flight(const hpct_strategy_stage_layout *layout, int stage,
                                         int pieces);

#endif
