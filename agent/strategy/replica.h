/* agent/strategy/replica.h - a whole model on every rank, built alike with rank 0's weights; and a
 * step's sums and flags as piggybacked floats. Independent of when gradients or weights are
 * exchanged. */
#ifndef HPCT_AGENT_STRATEGY_REPLICA_H
#define HPCT_AGENT_STRATEGY_REPLICA_H

#include "agent/strategy/alike.h"
#include "agent/strategy/strategy.h"

/* Builds the plan's model on all ranks in the fastest layout, or in the plain one if layouts
 * differ; then broadcasts rank 0's weights and states. Returns HPCT_ERR_CONFIG if models differ.
 * fuse_update: as in hpct_run_build_options. Collective. */
hpct_status hpct_strategy_replica_build(const hpct_strategy_plan *plan, bool fuse_update);

/* The same with another function that builds the plan's model and perhaps others. */
hpct_status hpct_strategy_replica_build_by(const hpct_strategy_plan *plan,
                                           const hpct_strategy_alike *how);

/* Broadcasts rank 0's weights and states of a built model; its loss scale. Collective. */
hpct_status hpct_strategy_replica_share_weights(hpct_context *context, hpct_model *model);
hpct_status hpct_strategy_replica_share_scaling(hpct_context *context, hpct_model *model);

/* Bytes by which the process grows, and how many of these are gradients. */
hpct_status hpct_strategy_replica_need(const hpct_strategy_plan *plan, bool fuse_update,
                                       size_t *bytes, size_t *gradients);

/* Forward over this replica's samples; and their loss and backward, with gradients multiplied by
 * `scale`. Without samples: takes part in the collectives, with zero gradients. */
hpct_status hpct_strategy_replica_forward(hpct_model *model, int count, bool training);
hpct_status hpct_strategy_replica_backward(hpct_model *model, int count, float scale);

/* Sums over `count` samples, with forward for inference. */
hpct_status hpct_strategy_replica_evaluate(hpct_model *model, int count,
                                           hpct_backend_batch_sums *sums);

/* Averages arena[count] of the model over the ranks; or all its states (moving statistics).
 * Collective. */
hpct_status hpct_strategy_replica_mean(hpct_comm *comm, const hpct_model *model, float *arena,
                                       size_t count);
hpct_status hpct_strategy_replica_mean_states(hpct_comm *comm, hpct_model *model);

/* Sets loss and metrics of *sums. */
void hpct_strategy_sums_set(hpct_strategy_step_sums *sums, const hpct_backend_batch_sums *own);

/* A step's sums and flags as floats to be summed over ranks, and back; at most
 * HPCT_RUN_ARENA_PIGGYBACK floats. */
#define HPCT_STRATEGY_SUMS_FLOATS 6
void hpct_strategy_sums_pack(const hpct_strategy_step_sums *sums, float *piggyback);
void hpct_strategy_sums_unpack(hpct_strategy_step_sums *sums, const float *piggyback);

#endif
