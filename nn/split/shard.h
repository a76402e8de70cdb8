/* nn/split/shard.h - one part of a model that several replicas compute together (tensor
 * parallelism): large layers are split by channels, rows or columns. Shards communicate at
 * SUM_PARTS, GATHER_PARTS and GATHER_SAMPLES (nn/backend/collective.h), through
 * hpct_graph_step_peers.
 *
 * Two forms with all shards on the same samples, for a Dense whose gradient dominates; small layers
 * are replicated:
 *   rows     the operation before the Dense is split by output channels, all in between follow,
 *            the Dense has the matching rows of its kernel: one sum of its outputs in forward, none
 *            in backward (Dense layers as in Krizhevsky, One weird trick for parallelizing
 *            convolutional neural networks, 2014; the channels before them are this project's).
 *   columns  the Dense is split by output channels, what follows continues with them, and the next
 *            Dense sums its outputs (Shoeybi et al., Megatron-LM, 2019). Everything before the
 *            Dense is replicated.
 * In backward the gradient of a tensor that all shards read is a partial sum, and is not summed:
 * backward is linear in it, so the few gradients of the parameters before it are summed instead
 * (hpct_split_shard_summed). It is summed only if another split precedes it.
 * A third form, back, for deep networks with their parameters in the last layers: each shard
 * computes the layers before them, the front, on its local batch, with summed gradients; then
 * samples are gathered, and every operation that can begin a split does, convolutions included.
 *
 * Private to nn/ and strategies. */
#ifndef HPCT_NN_SPLIT_SHARD_H
#define HPCT_NN_SPLIT_SHARD_H

#include "nn/split/shard_options.h"

#include <hpctrain/model.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hpct_split_shard hpct_split_shard;

/* Creates shard `part` of a compiled model, without weights. The choice of splits depends only on
 * the model, the number of shards and the samples: for every Dense, largest first, the permitted
 * forms are tried, then every front, and kept if the predicted step time falls, at 50 GFLOP/s, 20
 * GB/s of activations, and messages at 50 us and 1 Gb/s, a sum over N shards being 2 (N - 1) / N of
 * its size. Returns HPCT_ERR_CONFIG if no split sends less than the sum of all gradients, or for
 * fewer channels than shards. */
hpct_status hpct_split_shard_open(hpct_split_shard **out, const hpct_model *whole,
                                  const hpct_split_shard_options *options);
void hpct_split_shard_close(hpct_split_shard *shard); /* NULL is allowed */

/* A shard's part of one operation of the whole model, for predictions. */
typedef struct hpct_split_shard_step {
    bool local;         /* local batch; else global, */
    bool split;         /* and 1 / parts of the operation */
    bool partial;       /* its parameter gradients are summed */
    bool sums, gathers; /* a collective follows */
    double floats;      /* per sample, that this shard sends to each other one */
    bool again;         /* as many are sent back as gradients */
} hpct_split_shard_step;

/* steps[operations of the model]: as hpct_split_shard_open would split it. */
hpct_status hpct_split_shard_outline(hpct_split_shard_step *steps, const hpct_model *whole,
                                     const hpct_split_shard_options *options);

/* The front, computed on the local batch (hpct_graph_samples_first). Gradients of its parameters
 * are in the last of the ranges below, at the end of the arena; its unsynchronized moving
 * statistics, in a range of the states' arena, are local. */
size_t hpct_split_shard_front_floats(
    const hpct_split_shard *shard); /* of its gradients, without padding */

/* The shard's compiled model, for nn/run/step.h: build, set_peers, forward, ... Owned by the
 * shard. */
hpct_model *hpct_split_shard_model(hpct_split_shard *shard);

/* Copies the shard's weights, states and optimizer slots from the whole model. */
hpct_status hpct_split_shard_take(hpct_split_shard *shard, const hpct_model *whole);

/* The same as floats, to be sent: record of `part`; values that all shards share are in the first
 * one's record only. put: this shard's record. */
size_t hpct_split_shard_record_floats(const hpct_split_shard *shard, int part);
hpct_status hpct_split_shard_put(const hpct_split_shard *shard, float *record);

/* Copies the records of all shards, concatenated, to the whole model; shared values also to this
 * shard, so that all shards continue with identical bits. */
hpct_status hpct_split_shard_spread(hpct_split_shard *shard, const float *records,
                                    hpct_model *whole);

/* One parameter, or its slots, value by value. */
typedef struct hpct_split_shard_hold {
    bool split;  /* shards have parts of it, else all of it */
    bool local;  /* of the front: a moving statistic is local */
    bool summed; /* its gradient is in hpct_split_shard_summed */
} hpct_split_shard_hold;
hpct_split_shard_hold hpct_split_shard_holds(const hpct_split_shard *shard, int param);
int hpct_split_shard_num_params(const hpct_split_shard *shard);
size_t hpct_split_shard_part_floats(const hpct_split_shard *shard, int param, int part);
/* Copies this shard's part out of the whole value; and the part of shard `part` into it. */
void hpct_split_shard_cut(const hpct_split_shard *shard, int param, const float *whole,
                          float *local);
void hpct_split_shard_paste(const hpct_split_shard *shard, int param, int part, const float *local,
                            float *whole);

/* Copies the whole model's step count, which determines the learning rate. */
void hpct_split_shard_tell_steps(const hpct_split_shard *shard, hpct_model *whole);

/* Ranges of the shard's gradient arena to be summed over all shards after backward, in order; *num
 * may be 0. Valid until the next build. */
typedef struct hpct_split_shard_range {
    size_t offset, count; /* floats */
} hpct_split_shard_range;
const hpct_split_shard_range *hpct_split_shard_summed(hpct_split_shard *shard, int *num);
hpct_split_shard_range hpct_split_shard_own_states(const hpct_split_shard *shard);
/* Equal iff layouts and messages of forward and backward are equal. */
uint64_t hpct_split_shard_fingerprint(hpct_split_shard *shard);

/* Floats passed to sums and gathers in forward and backward of n samples. */
size_t hpct_split_shard_floats(const hpct_split_shard *shard, int n);

#endif
