/* agent/strategy/replicas/replica_set.h - several replicas of a model in one process: the common
 * part of their strategies. They are built alike, each for its part of the rank's samples, and
 * compute in a thread pool; for GPUs, which do not share memory, see mirrored_gpus.h. Weights are
 * updated by the strategy.
 *
 * A rank's slice of the global batch (hpct_data_slice over ranks) is divided by hpct_data_slice
 * over its replicas; no two replicas differ by more than one sample. */
#ifndef HPCT_AGENT_STRATEGY_REPLICAS_REPLICA_SET_H
#define HPCT_AGENT_STRATEGY_REPLICAS_REPLICA_SET_H

#include "agent/strategy/replicas/thread_pool.h"
#include "agent/strategy/state.h"
#include "agent/strategy/strategy.h"

typedef struct hpct_replicas_part hpct_replicas_part;

/* First member of such a strategy's struct. */
typedef struct hpct_replicas {
    hpct_strategy base;
    int num;
    hpct_model **models; /* [num]; the first is the plan's model and has the rank's input */
    hpct_replicas_pool *pool;
    hpct_comm *comm;
    float *gradients; /* of the first model: [count + HPCT_RUN_ARENA_PIGGYBACK] */
    size_t count;
    hpct_replicas_part *parts;      /* [num] */
    const hpct_strategy_plan *plan; /* during open */
    bool one_storage;
    bool due;                    /* the step ends with an update */
    int samples, global_samples; /* of this rank, and of all ranks, in the current call */
    bool training;
} hpct_replicas;

extern const hpct_strategy_ops hpct_replicas_mirrored;
extern const hpct_strategy_ops hpct_replicas_central_storage;

/* HPCT_ERR_USAGE for more than one rank. */
hpct_status hpct_replicas_central_storage_check(int ranks);

/* Bytes by which the process grows with all replicas. one_storage: all replicas read one set of
 * parameters and optimizer slots; on devices they have copies. */
hpct_status hpct_replicas_need(const hpct_strategy_plan *plan, bool one_storage, size_t *bytes);

/* Builds all replicas with rank 0's weights of the plan's model. Collective. */
hpct_status hpct_replicas_open(hpct_strategy **out, const hpct_strategy_ops *ops,
                               const hpct_strategy_plan *plan, bool one_storage);
void hpct_replicas_close(hpct_strategy *strategy);

/* Replica k's share of `samples`, which `num` replicas divide. */
int hpct_replicas_slice(int samples, int k, int num, int *begin);

/* Replica k's distinct sizes of whole[count] batches, without 0; returns their number. */
int hpct_replicas_sizes(const int *whole, int count, int k, int num, int *sizes);

/* As in hpct_strategy_ops. Backward leaves each replica's gradients in its own arena. */
hpct_status hpct_replicas_forward(hpct_strategy *strategy, int count, bool training);
hpct_status hpct_replicas_backward(hpct_strategy *strategy, int count, int global_count,
                                   hpct_strategy_step_sums *sums);
hpct_status hpct_replicas_gather(hpct_strategy *strategy);
hpct_status hpct_replicas_evaluate(hpct_strategy *strategy, int count,
                                   hpct_backend_batch_sums *sums);
hpct_status hpct_replicas_outputs(hpct_strategy *strategy, int k, const float **outputs,
                                  int *count);

/* Sums all replicas' gradients, in the order of the replicas, into the first model's; then
 * accumulates them if the model's optimizer does: `due` says whether an update follows. */
hpct_status hpct_replicas_add_up(hpct_replicas *set);

/* Replicas have moving statistics of their own samples; ranks also sums of gradients until an
 * update. */
extern const struct hpct_strategy_state_ops hpct_replicas_state;

#endif
