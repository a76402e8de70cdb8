/* nn/parts.h - the operations of a model one by one: what each has to do with the others, how long
 * each takes when nobody else is waited for, and steps that sleep that long instead of computing.
 * For predictions and for `bench --emulate`. Between the trainer (agent/) and nn, as nn/step.h is.
 */
#ifndef HPCT_NN_PARTS_H
#define HPCT_NN_PARTS_H

#include <hpctrain/model.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How the work of an operation can be shared by channels (features, of a Dense). */
typedef enum hpct_part_split {
    HPCT_PART_WHOLE,     /* not at all: softmax, joins */
    HPCT_PART_MAKES,     /* a channel of the result needs all of the source: conv2d, dense */
    HPCT_PART_PASSES_ON, /* a channel of the result needs that of the source: pools, activations */
} hpct_part_split;

typedef struct hpct_part {
    const char *layer, *kind; /* "dense_1", "dense"; the model's */
    hpct_part_split split;
    bool dense;
    int input;          /* the part that makes its first source; -1: the model's input does */
    bool joins;         /* it has other sources besides */
    size_t gradients;   /* floats of its own parameters that are trained */
    size_t rows, cols;  /* of its kernel as a matrix; 0 without one */
    size_t results;     /* floats of one sample's result */
    size_t cells;       /* that a convolution can make one by one for others (nn/parallel.h), or 0 */
    size_t synchronize; /* floats that it adds up over the replicas in a step */
} hpct_part;

int hpct_model_count_parts(const hpct_model *model);
/* part < hpct_model_count_parts, in an order in which they can be computed; backward is in the
 * opposite order. The model need not be built. */
hpct_part hpct_model_part(const hpct_model *model, int part);

/* Equal numbers: the same operations with the same shapes. */
uint64_t hpct_model_parts_fingerprint(const hpct_model *model);

/* Seconds of one step. */
typedef struct hpct_part_seconds {
    double forward, backward;
} hpct_part_seconds;

typedef struct hpct_step_seconds {
    hpct_part_seconds *parts; /* [hpct_model_count_parts], the caller's */
    double loss, update;
} hpct_step_seconds;

/* Takes `steps` training steps (>= 1) of n samples after one to warm up, as if this were the only
 * replica: nothing is sent. Medians of each part; 0 for the collectives of a split model. The model
 * must be built for training with n samples, and have an input; its weights change, the count of its
 * steps does not. */
hpct_status hpct_model_time_parts(hpct_model *model, int n, int steps, hpct_step_seconds *out);

/* From now on forward, loss, backward and update of this build sleep for these times; what replicas
 * tell one another is sent nevertheless. Results stay what they are, and the loss's sums are zeros.
 * What one sleep is too long the next is shorter, so that errors do not add up. NULL: compute
 * again. */
hpct_status hpct_model_emulate(hpct_model *model, const hpct_step_seconds *seconds);

#endif
