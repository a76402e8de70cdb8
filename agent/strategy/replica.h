/* agent/strategy/replica.h - a whole model on every rank, for the strategies that have one: built
 * alike everywhere, with rank 0's weights; and what a step tells all ranks, as floats that ride in
 * a sum. Knows nothing of when gradients or weights travel. */
#ifndef HPCT_STRATEGY_REPLICA_H
#define HPCT_STRATEGY_REPLICA_H

#include "agent/strategy/alike.h"
#include "agent/strategy/strategy.h"

/* Builds the plan's model on all ranks in the fastest layout, or, where processors differ and with
 * them the layouts, in the one that all have; then makes rank 0's weights and states everybody's.
 * HPCT_ERR_CONFIG when the ranks do not have the same model. fuse_update: as in
 * hpct_build_options. Collective. */
hpct_status hpct_replica_build(const hpct_strategy_plan *plan, bool fuse_update);

/* The same by another build than of the plan's model alone: of it, and perhaps of others. */
hpct_status hpct_replica_build_by(const hpct_strategy_plan *plan, const hpct_alike *how);

/* Rank 0's loss scale becomes that of all, which have the model or parts of it. Collective. */
hpct_status hpct_replica_share_scaling(hpct_context *context, hpct_model *model);

/* Bytes by which the process grows in that, and how many of them are gradients. */
hpct_status hpct_replica_need(const hpct_strategy_plan *plan, bool fuse_update, size_t *bytes,
                              size_t *gradients);

/* arena[count] of the model becomes its mean over the ranks; all its states (moving statistics).
 * Collective. */
hpct_status hpct_replica_mean(hpct_comm *comm, const hpct_model *model, float *arena, size_t count);
hpct_status hpct_replica_mean_states(hpct_comm *comm, hpct_model *model);

/* The sums of a step as floats that add up over ranks, and back; at most HPCT_ARENA_TAIL. */
#define HPCT_SUMS_FLOATS 6
void hpct_sums_pack(const hpct_step_sums *sums, float *tail);
void hpct_sums_unpack(hpct_step_sums *sums, const float *tail);

#endif
