/* agent/strategy/stage_layout.h - who has which stage of a pipeline, and how a batch is cut into
 * micro-batches: arithmetic alone, the same on all ranks. */
#ifndef HPCT_STRATEGY_STAGE_LAYOUT_H
#define HPCT_STRATEGY_STAGE_LAYOUT_H

#include <hpctrain/model.h>
#include <hpctrain/strategy.h>

/* Rank r has stage r % stages of replica r / stages of the model: neighbours are next to each
 * other. Replicas share the samples of a batch. */
typedef struct hpct_stage_layout {
    int stages, replicas;
    int micro_batches; /* of each replica in a full batch */
} hpct_stage_layout;

/* For a full batch of so many samples over all replicas. What the options leave open: as many
 * stages as ranks, or as their largest divisor that the model has operations for; and micro-batches
 * as hpct_stage_layout_default says. HPCT_ERR_CONFIG: ranks are no multiple of the stages, one
 * stage for several ranks, which is data parallelism, where that was not asked for; more stages
 * than operations; more micro-batches than a replica has samples. */
hpct_status hpct_stage_layout_find(hpct_stage_layout *out, const hpct_model *model,
                                   const hpct_strategy_options *options, int ranks, int samples);

/* Micro-batches of n samples in S stages. The bubble, the share of a step in which a stage waits,
 * is (S - 1) / (M + S - 1); M = 4 (S - 1) keeps it at a fifth. The least M from there to twice that
 * which divides n into pieces of 4 samples or more; else M = 4 (S - 1), or n / 4 where that is
 * less, 1 at least. */
int hpct_stage_layout_default(int stages, int samples);

/* Pieces of each replica in a batch of so many samples: fewer where a short batch has not as many
 * samples. */
int hpct_stage_layout_pieces(const hpct_stage_layout *layout, int samples);

/* Pieces that stage `stage` has between forward and backward at once, at most: one-forward-one-
 * backward (PipeDream-Flush: Narayanan et al., Memory-Efficient Pipeline-Parallel DNN Training,
 * 2021; Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM, 2021). */
int hpct_stage_layout_in_flight(const hpct_stage_layout *layout, int stage, int pieces);

#endif
