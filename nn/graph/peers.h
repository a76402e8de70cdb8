/* nn/graph/peers.h - callbacks of a step: collectives within it (synchronized BatchNormalization,
 * split models of nn/split/shard.h), progress of messages, replicas in this process. One table,
 * filled by the strategy that runs the model: over all its ranks, or over those with the same
 * shard. */
#ifndef HPCT_NN_GRAPH_PEERS_H
#define HPCT_NN_GRAPH_PEERS_H

#include <hpctrain/model.h>
#include <stdbool.h>
#include <stddef.h>

#define HPCT_GRAPH_PIGGYBACK 4 /* floats piggybacked on a collective in forward */

/* Callback of hpct_graph_step_peers.each. */
typedef hpct_status (*hpct_graph_replica_work)(void *argument, int k, hpct_model *replica);

/* Any may be NULL. An error returned by a callback ends the step. */
typedef struct hpct_graph_step_peers {
    void *argument; /* of all except `each` */

    /* ---- collectives: equal calls in equal order with equal counts on all replicas ---- */

    /* All-reduce: data[count], in the backend's memory, becomes the sum over all replicas, bitwise
     * equal on each. NULL: there are no others. */
    hpct_status (*sum)(void *argument, float *data, size_t count);
    /* The same over all replicas that update together, whose gradients may be different parts: in
     * fp16 none updates if one has non-finite gradients (nn/graph/loss_scaling.h). NULL: all have
     * the same gradients. */
    hpct_status (*judge)(void *argument, float *data, size_t count);
    /* All-gather: all[parts][count] receives mine[count] of each part, in their order. For models
     * that are shards only (nn/split/shard.h). */
    hpct_status (*gather)(void *argument, const float *mine, float *all, size_t count);
    /* If not NULL, a sum in two halves, reduce-scatter and all-gather, so that each replica can
     * process some rows in between. reduce_rows: data[rows][width] receives the sums of this
     * replica's rows [*first, *first + *own), divided as by hpct_graph_samples_first
     * (nn/graph/op.h); other rows are undefined. spread_rows: all replicas receive every replica's
     * rows, and the sums of `piggyback` unless NULL. For sums of at least halves_from floats;
     * either half may be used alone, with any size. */
    hpct_status (*reduce_rows)(void *argument, float *data, size_t rows, size_t width,
                               size_t *first, size_t *own);
    hpct_status (*spread_rows)(void *argument, float *data, size_t rows, size_t width,
                               float *piggyback);
    size_t halves_from;
    /* [HPCT_GRAPH_PIGGYBACK] this replica's values; after a shard's forward, their sums over all
     * shards, without a message of their own. */
    float *piggyback;

    /* ---- progress of the step ---- */

    /* Called by backward after each operation, also if it has no parameters: the first `done`
     * floats of the gradient arena are final in this backward. Never decreases. */
    hpct_status (*advance)(void *argument, size_t done);
    /* Called by forward and backward between operations: makes progress on messages without a
     * progress thread. */
    hpct_status (*pause)(void *argument);
    /* Called by hpct_model_step between backward and update: sums the gradients over all
     * replicas. */
    hpct_status (*reduce)(void *argument);
    /* If not NULL, device work of the callbacks above can be recorded with a step
     * (nn/run/replay.h), provided all replicas record and replay the same steps: they then only use
     * hpct_model_step, with the same scales. Collective: *all becomes the logical and over all
     * replicas. */
    hpct_status (*agree)(void *argument, bool *all);

    /* ---- replicas of this process that compute parts of the input; the model is number 0 ---- */

    /* Calls work(argument, k, replica k) for all replicas, each in the thread that uses its device;
     * returns the first error. NULL: the model computes all of its input. */
    hpct_status (*each)(void *owner, hpct_graph_replica_work work, void *argument);
    void *owner;
    int replicas;
} hpct_graph_step_peers;

#endif
