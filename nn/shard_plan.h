/* nn/shard_plan.h - which operations of a model its parts split, and what that means for every
 * tensor and gradient. Private to nn/shard*. */
#ifndef HPCT_NN_SHARD_PLAN_H
#define HPCT_NN_SHARD_PLAN_H

#include "nn/graph.h"
#include "nn/parallel.h"
#include "nn/shard.h"

/* Whether and how an operation splits its output. */
typedef enum hpct_shard_begin {
    HPCT_SHARD_WHOLE,
    HPCT_SHARD_CHANNELS,
    HPCT_SHARD_CELLS
} hpct_shard_begin;

/* By tensor: at the root of each memory. */
typedef struct hpct_shard_plan {
    const hpct_model *model;
    int part, parts;
    int front; /* so many operations, the first ones, each part computes of its own samples; all
                  others split the model */
    hpct_shard_begin *begins;   /* [nodes] what the search chose */
    hpct_channel_split *splits; /* [tensors] */
    bool *sums;                 /* [nodes] gives a part of a sum; a SUM_PARTS follows */
    bool *wants_whole;          /* [nodes] reads its split inputs gathered */
    bool *gathers;              /* [tensors] a GATHER_PARTS follows what makes it */
    bool *sum_diff;             /* [nodes] the SUM_PARTS or … */
    bool *gather_sum_diff;      /* [tensors] … the GATHER_PARTS (or GATHER_SAMPLES) has to add
                                   gradients up */
    bool *own;                  /* [tensors] made by the front, */
    bool *collects;             /* [tensors] and a GATHER_SAMPLES follows it */
    bool *partial;              /* [nodes] the gradients of its parameters are parts of a sum */
    double seconds;             /* predicted (see hpct_shard_open) of one step */
    double wire_floats;         /* that one part sends in it */
    void *memory;
} hpct_shard_plan;

/* Searches; HPCT_ERR_CONFIG, saying why, when no choice sends less than the sum of all gradients.
 */
hpct_status hpct_shard_plan_make(hpct_shard_plan *plan, const hpct_model *model,
                                 const hpct_shard_options *options);
void hpct_shard_plan_free(hpct_shard_plan *plan);

/* What splits input (all alike) and output of a node as its part reads and gives them. */
hpct_channel_split hpct_shard_plan_in(const hpct_shard_plan *plan, int node);
hpct_channel_split hpct_shard_plan_out(const hpct_shard_plan *plan, int node);

/* The collective behind a node, where the parts meet; of kind HPCT_OP_KINDS: none. */
hpct_op_spec hpct_shard_plan_meeting(const hpct_shard_plan *plan, int node);

#endif
