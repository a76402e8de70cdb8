/* agent/strategy/gradients/buckets.h - reduction of gradients overlapped with backward: the arena
 * in buckets, in the order in which backward completes them, one reduction each. Uses arenas,
 * communicators and network cost; independent of models. */
#ifndef HPCT_AGENT_STRATEGY_GRADIENTS_BUCKETS_H
#define HPCT_AGENT_STRATEGY_GRADIENTS_BUCKETS_H

#include "agent/comm/network.h"
#include "agent/rank/context.h"
#include "agent/rank/timeline.h"

#include <hpctrain/strategy.h>

#define HPCT_GRAD_BUCKETS_MOST HPCT_COMM_NETWORK_MOST_BUCKETS

/* Ends of the buckets of an arena of `count` floats, at cache lines except for the last; returns
 * their number. Size: hpct_comm_network_bucket_bytes, by default one bucket on a latency-bound
 * network, several on a bandwidth-bound one. */
int hpct_grad_buckets_plan(size_t ends[HPCT_GRAD_BUCKETS_MOST], size_t count, size_t bucket_bytes,
                           int ranks, const hpct_comm_network *network);

typedef struct hpct_grad_buckets hpct_grad_buckets;

typedef struct hpct_grad_buckets_options {
    float *gradients; /* [count + sums], owned by the caller */
    size_t count;
    int sums; /* piggybacked floats behind the gradients, reduced with the last bucket, in fp32 */
    const hpct_strategy_options *strategy; /* wire, bucket_bytes */
    hpct_rank_timeline *timeline;          /* records each reduction; may be NULL */
} hpct_grad_buckets_options;

/* groups[size]: by node; for very many ranks with one per node, a square grid; else each rank
 * alone. *grouped: some group has several ranks. Collective. */
hpct_status hpct_grad_buckets_groups(hpct_context *context, hpct_wire wire, int *groups,
                                     bool *grouped);

/* Collective. With several nodes the ranks of a node are summed first. */
hpct_status hpct_grad_buckets_open(hpct_grad_buckets **out, hpct_context *context,
                                   const hpct_grad_buckets_options *options);
void hpct_grad_buckets_close(hpct_grad_buckets *buckets);

/* Maximal number of bytes allocated by open, with several ranks. */
size_t hpct_grad_buckets_need(size_t gradient_bytes, hpct_wire wire);

/* A step: call advance as gradients become final (the first `done`), as often as possible, as it
 * progresses messages; then finish, after the sums have been set, which returns when everything is
 * reduced. Without advance, finish does everything. */
hpct_status hpct_grad_buckets_advance(hpct_grad_buckets *buckets, size_t done);
hpct_status hpct_grad_buckets_finish(hpct_grad_buckets *buckets);

/* Reduces the piggybacked sums only, in a step whose gradients are accumulated locally; without
 * advance before it. */
hpct_status hpct_grad_buckets_sums(hpct_grad_buckets *buckets);

/* Bytes a rank passes to reductions in a step with gradients, and in one with sums only. */
size_t hpct_grad_buckets_bytes(const hpct_grad_buckets *buckets);
size_t hpct_grad_buckets_sum_bytes(const hpct_grad_buckets *buckets);

#endif
