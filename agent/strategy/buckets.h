/* agent/strategy/buckets.h - gradients that travel while backward computes the next: the arena in
 * buckets, in the order in which backward finishes them, each a reduction of its own. Knows arenas,
 * communicators and what the network costs; nothing of models. */
#ifndef HPCT_STRATEGY_BUCKETS_H
#define HPCT_STRATEGY_BUCKETS_H

#include "agent/comm/network.h"
#include "agent/context.h"
#include "agent/timeline.h"

#include <hpctrain/strategy.h>

#define HPCT_BUCKETS_MOST HPCT_NETWORK_MOST_BUCKETS

/* Where the buckets of an arena of `count` floats end, each behind a cache line but the last; how
 * many there are. bucket_bytes > 0: as large as that, as far as HPCT_BUCKETS_MOST are enough.
 * Else as many as hpct_network_buckets says: one on a network bound by latency, several on one
 * bound by its rate. */
int hpct_buckets_plan(size_t ends[HPCT_BUCKETS_MOST], size_t count, size_t bucket_bytes, int ranks,
                      const hpct_network *network);

typedef struct hpct_buckets hpct_buckets;

typedef struct hpct_buckets_options {
    float *gradients; /* [count + sums], the caller's */
    size_t count;
    int sums; /* floats behind the gradients that travel with the last bucket, in fp32 */
    const hpct_strategy_options *strategy; /* wire, bucket_bytes */
    hpct_timeline *timeline;               /* gets each reduction; may be NULL */
} hpct_buckets_options;

/* groups[size]: the ranks of a node; or of a square grid, where there are very many; or each its
 * own. *grouped: whether they are any but each its own. Collective. */
hpct_status hpct_buckets_groups(hpct_context *context, hpct_wire wire, int *groups, bool *grouped);

/* Collective. Ranks of a node add up among themselves first, where there are several nodes. */
hpct_status hpct_buckets_open(hpct_buckets **out, hpct_context *context,
                              const hpct_buckets_options *options);
void hpct_buckets_close(hpct_buckets *buckets);

/* Bytes that open takes, at most, on a rank that is not alone. */
size_t hpct_buckets_need(size_t gradient_bytes, hpct_wire wire);

/* A step: advance while gradients come (the first `done` are final), as often as possible, because
 * messages move in it; then finish, when the sums are there too, which returns when all is added
 * up. Without an advance finish does all. */
hpct_status hpct_buckets_advance(hpct_buckets *buckets, size_t done);
hpct_status hpct_buckets_finish(hpct_buckets *buckets);

/* The sums alone, in a step whose gradients stay where they are; no advance before it. */
hpct_status hpct_buckets_sums(hpct_buckets *buckets);

int hpct_buckets_count(const hpct_buckets *buckets);
/* Bytes that a rank hands over in a step of gradients, and in one of sums alone. */
size_t hpct_buckets_bytes(const hpct_buckets *buckets);
size_t hpct_buckets_sum_bytes(const hpct_buckets *buckets);

#endif
