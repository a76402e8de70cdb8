/* nn/shard.h - one part of a model that several replicas compute together (tensor parallelism):
 * large layers are split by channels, rows or columns. The parts say to one another what the whole
 * needs at SUM_PARTS, GATHER_PARTS and GATHER_SAMPLES (nn/collective.h), through hpct_replicas.
 *
 * Two forms of all parts on the same samples, for a Dense by whose gradient the model's bytes are
 * given; what has few numbers is computed by all of them:
 *   rows     the operation that feeds the Dense is split by output channels, all between follow,
 * the Dense has the rows of its kernel that read them: one sum of its outputs in forward, none in
 * backward (Krizhevsky, One weird trick for parallelizing convolutional neural networks, 2014, has
 * the Dense layers so; the channels before them are this project's). columns  the Dense is split by
 * output channels, what follows it goes on with them, and a next Dense sums: in forward one sum of
 * that one's outputs (Shoeybi et al., Megatron-LM, 2019). All before the Dense is computed by every
 * part. In backward the gradient of what all parts read is in parts. It is not added up there:
 * backward is linear in it, so the gradients of the parameters before it are added up instead
 * (hpct_shard_summed), which are few. Only where another split lies before it is the gradient
 * itself added up.
 * A third, back, for deep networks whose numbers are in the last layers: each part computes the
 * layers before them, the front, of its own samples, whose gradients are added up; behind it
 * all samples are gathered, and whatever can begin a split does, convolutions too.
 *
 * Private to nn/ and the strategies. */
#ifndef HPCT_NN_SHARD_H
#define HPCT_NN_SHARD_H

#include <hpctrain/model.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum hpct_shard_form {
    HPCT_SHARD_AUTO, /* the one that is predicted to be faster, for each Dense */
    HPCT_SHARD_ROWS,
    HPCT_SHARD_COLUMNS,
    HPCT_SHARD_BACK, /* the last layers, behind others that are data parallel */
} hpct_shard_form;

typedef struct hpct_shard_options {
    int part, parts; /* which of how many, from 0 */
    int samples;     /* of a step, of all parts: what it costs depends on them */
    hpct_shard_form form;
    bool without_front; /* HPCT_SHARD_AUTO tries none */
} hpct_shard_options;

typedef struct hpct_shard hpct_shard;

/* Makes part `part` of a compiled model; its weights are not set yet. Part of the answer is the
 * same for all parts: which operations are split follows from the model, the number of parts and
 * samples. For every Dense, the largest first, the forms allowed are tried, and then every front,
 * and kept where the predicted time of a step falls; predicted at 50 GFLOP/s, 20 GB/s of
 * activations, and messages at 50 us and 1 Gb/s, a sum over N parts being 2 (N - 1) / N times its
 * numbers. HPCT_ERR_CONFIG: no split that sends less than the sum of all gradients would; fewer
 * channels than parts. */
hpct_status hpct_shard_open(hpct_shard **out, const hpct_model *whole,
                            const hpct_shard_options *options);
void hpct_shard_close(hpct_shard *shard); /* allows NULL */

/* What a part does for one operation of the whole model, for predictions. */
typedef struct hpct_shard_step {
    bool own;           /* its own samples alone; else all, */
    bool split;         /* and 1 / parts of the operation */
    bool partial;       /* the gradients of its parameters are added up */
    bool sums, gathers; /* a collective follows */
    double floats;      /* of a sample, that this gives to each part */
    bool again;         /* as many go back as gradients */
} hpct_shard_step;

/* steps[operations of the model]: what hpct_shard_open would make. */
hpct_status hpct_shard_outline(hpct_shard_step *steps, const hpct_model *whole,
                               const hpct_shard_options *options);

/* There may be a front, of which the part computes its own samples alone
 * (hpct_samples_first). The gradients of its parameters, where it has any, are the last of the
 * ranges below, and the end of the arena; its moving statistics, in a range of the arena of states,
 * are of those samples where they are not synchronized. */
size_t hpct_shard_front_floats(const hpct_shard *shard); /* of its gradients, without padding */

/* A compiled model of its own, for nn/step.h: build, set_replicas, forward, … Owned by the shard.
 */
hpct_model *hpct_shard_model(hpct_shard *shard);

/* Sets the part's weights, states and optimizer slots from the whole model's. */
hpct_status hpct_shard_take(hpct_shard *shard, const hpct_model *whole);

/* The same as a record of floats, to be sent: what `part` has, what all parts have being in the
 * first one's record alone. put: this part's own. */
size_t hpct_shard_record_floats(const hpct_shard *shard, int part);
hpct_status hpct_shard_put(const hpct_shard *shard, float *record);

/* From the records of all parts, one behind the other, into the whole model; and what all parts
 * have into this part too, so that all go on with the same bits. */
hpct_status hpct_shard_spread(hpct_shard *shard, const float *records, hpct_model *whole);

/* The whole model's count of steps, on which its learning rate depends, becomes the part's. */
void hpct_shard_tell_steps(const hpct_shard *shard, hpct_model *whole);

/* Ranges of the part's gradient arena that must be added up over all parts after backward, in the
 * order of the arena; *num may be 0. Valid until the next build. */
typedef struct hpct_shard_range {
    size_t offset, count; /* floats */
} hpct_shard_range;
const hpct_shard_range *hpct_shard_summed(hpct_shard *shard, int *num);
hpct_shard_range hpct_shard_own_states(const hpct_shard *shard);
/* Equal where these lie alike, so that they can be added up, and so does what parts send in forward
 * and backward. */
uint64_t hpct_shard_fingerprint(hpct_shard *shard);

/* Floats that this part hands to sums and gathers within forward and backward of n samples. */
size_t hpct_shard_floats(const hpct_shard *shard, int n);

#endif
