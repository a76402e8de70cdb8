/* nn/split/shard_plan.h - which operations are split among shards, and the consequences for tensors
 * and gradients. Private to nn/split/shard*. */
#ifndef HPCT_NN_SPLIT_SHARD_PLAN_H
#define HPCT_NN_SPLIT_SHARD_PLAN_H

#include "nn/graph/graph.h"
#include "nn/graph/parallel.h"
#include "nn/split/shard_options.h"

/* Whether and how an operation splits its output. */
typedef enum hpct_split_shard_begin {
    HPCT_SPLIT_SHARD_WHOLE,
    HPCT_SPLIT_SHARD_CHANNELS,
    HPCT_SPLIT_SHARD_CELLS
} hpct_split_shard_begin;

/* Arrays over tensors are set at the root. */
typedef struct hpct_split_shard_plan {
    const hpct_model *model;
    int part, parts;
    int front; /* operations in the front, on the local batch; all others split */
    hpct_split_shard_begin *begins;   /* [nodes] chosen by the search */
    hpct_graph_channel_split *splits; /* [tensors] */
    bool *sums;                       /* [nodes] produces a partial sum; a SUM_PARTS follows */
    bool *wants_whole;                /* [nodes] needs its split inputs gathered */
    bool *gathers;                    /* [tensors] a GATHER_PARTS follows its producer */
    bool *sum_diff;                   /* [nodes] its SUM_PARTS sums gradients in backward */
    bool *gather_sum_diff;            /* [tensors] its GATHER_PARTS or GATHER_SAMPLES does */
    bool *local;                      /* [tensors] local batch: in the front */
    bool *collects;                   /* [tensors] in the front, followed by a GATHER_SAMPLES */
    bool *partial;                    /* [nodes] its parameter gradients are partial sums */
    double seconds;                   /* predicted step time (see hpct_split_shard_open) */
    double wire_floats;               /* floats that one shard sends per step */
    void *memory;
} hpct_split_shard_plan;

/* Searches the fastest plan; HPCT_ERR_CONFIG, with the reason, if no choice sends less than the sum
 * of all gradients. */
hpct_status hpct_split_shard_plan_make(hpct_split_shard_plan *plan, const hpct_model *model,
                                       const hpct_split_shard_options *options);
void hpct_split_shard_plan_free(hpct_split_shard_plan *plan);

/* Splits of the inputs (equal for all) and the output of a node in its shard. */
hpct_graph_channel_split hpct_split_shard_plan_in(const hpct_split_shard_plan *plan, int node);
hpct_graph_channel_split hpct_split_shard_plan_out(const hpct_split_shard_plan *plan, int node);

/* The collective after a node; kind HPCT_OP_KINDS: none. */
hpct_op_spec hpct_split_shard_plan_meeting(const hpct_split_shard_plan *plan, int node);

#endif
