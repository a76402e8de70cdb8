/* nn/replicas.h - what replicas of a model that train together say to one another within a step:
 * sums for layers whose numbers are of all their samples (synchronized BatchNormalization), sums
 * and gathers for models of which each replica computes a part (nn/shard.h). Who runs the replicas
 * says how: a strategy, over its ranks, or over those that have this part of the model. */
#ifndef HPCT_NN_REPLICAS_H
#define HPCT_NN_REPLICAS_H

#include <hpctrain/model.h>
#include <stddef.h>

#define HPCT_RIDERS 4 /* floats that a collective within forward takes along */

/* All replicas make the same calls in the same order with the same counts. */
typedef struct hpct_replicas {
    /* data[count], in the backend's memory, becomes the sum over all replicas, the same bits on
     * each. NULL: there are no others. */
    hpct_status (*sum)(void *argument, float *data, size_t count);
    void *argument;
    /* The same over all that update together, which may have other parts of the gradients: in fp16
     * none updates where those of one are not finite (nn/loss_scaling.h). NULL: all have the same.
     */
    hpct_status (*judge)(void *argument, float *data, size_t count);
    /* all[parts][count] receives mine[count] of each part, in their order. Only for models that are
     * parts (nn/shard.h). */
    hpct_status (*gather)(void *argument, const float *mine, float *all, size_t count);
    /* Where not NULL, a sum in two halves, between which its rows can be worked on by one replica
     * each: data[rows][width] holds the sums of this replica's rows [*first, *first + *own), as
     * hpct_samples_first shares them (nn/op.h), the others undefined; then every replica's rows
     * come to all, and the riders' sums where riders is not NULL. For sums of at least halves_from
     * floats; either half may be made alone, of any size. */
    hpct_status (*reduce)(void *argument, float *data, size_t rows, size_t width, size_t *first,
                          size_t *own);
    hpct_status (*spread)(void *argument, float *data, size_t rows, size_t width, float *riders);
    size_t halves_from;
    /* [HPCT_RIDERS] of this replica's own; after a part's forward their sums over all of them, at
     * no message of their own. NULL: none. */
    float *riders;
} hpct_replicas;

/* Those that take parts of one model's input, which is number 0. each: all do work(argument, k,
 * replica k), every one in the thread that computes on its device; what fails first is returned. */
typedef hpct_status (*hpct_replica_work)(void *argument, int k, hpct_model *replica);
typedef struct hpct_division {
    int replicas;
    hpct_status (*each)(void *owner, hpct_replica_work work, void *argument);
    void *owner;
} hpct_division;

#endif
