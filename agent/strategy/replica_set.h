/* agent/strategy/replica_set.h - several replicas of a model in one process, for the strategies
 * that have them: built alike, each for its part of the rank's samples, and computing side by side
 * on a crew. What becomes of their weights is the strategy's.
 *
 * The cut: a rank's slice of the global batch (hpct_slice over the ranks) is cut again by
 * hpct_slice over its replicas; so no two replicas of a job differ by more than one sample. */
#ifndef HPCT_STRATEGY_REPLICA_SET_H
#define HPCT_STRATEGY_REPLICA_SET_H

#include "agent/strategy/crew.h"
#include "agent/strategy/strategy.h"

typedef struct hpct_replica_part hpct_replica_part;

typedef struct hpct_replica_set {
    int num;
    hpct_model **models; /* [num]; the first is the plan's own, which gets the rank's input */
    hpct_crew *crew;
    hpct_comm *comm;
    float *gradients; /* of the first model: [count + HPCT_ARENA_TAIL] */
    size_t count;
    hpct_replica_part *parts;       /* [num] */
    const hpct_strategy_plan *plan; /* while it is opened */
    bool one_storage;
    int samples, global_samples; /* of this rank, and of all, in the call that is running */
    bool training;
} hpct_replica_set;

/* Bytes by which the process grows with all replicas. one_storage: there is one set of parameters
 * and optimizer slots, which all replicas read. */
hpct_status hpct_replica_set_need(const hpct_strategy_plan *plan, bool one_storage, size_t *bytes);

/* Builds all replicas with the plan's weights, which are rank 0's. Collective. Closed also after a
 * failure. */
hpct_status hpct_replica_set_open(hpct_replica_set *set, const hpct_strategy_plan *plan,
                                  bool one_storage);
void hpct_replica_set_close(hpct_replica_set *set);

/* As in hpct_strategy_ops. Backward leaves each replica's gradients in its own arena. */
hpct_status hpct_replica_set_forward(hpct_replica_set *set, int count, bool training);
hpct_status hpct_replica_set_backward(hpct_replica_set *set, int count, int global_count,
                                      hpct_step_sums *sums);
hpct_status hpct_replica_set_gather(hpct_replica_set *set);
hpct_status hpct_replica_set_evaluate(hpct_replica_set *set, int count, hpct_batch_sums *sums);

/* The first model's gradients become the sum of all, added up in the order of the replicas; then
 * they are accumulated, if the model's optimizer wants that. *due: an update is to follow. */
hpct_status hpct_replica_set_add_up(hpct_replica_set *set, bool *due);

#endif
