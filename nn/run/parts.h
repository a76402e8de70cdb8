/* nn/run/parts.h - the operations of a model one by one: dependencies, times without communication,
 * and emulated computation. For predictions and `bench --emulate`. */
#ifndef HPCT_NN_RUN_PARTS_H
#define HPCT_NN_RUN_PARTS_H

#include <hpctrain/model.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How an operation can be split by channels (features, for Dense). */
typedef enum hpct_run_part_split {
    HPCT_RUN_PART_WHOLE,     /* cannot: softmax, joins */
    HPCT_RUN_PART_MAKES,     /* an output channel needs the whole source: conv2d, dense */
    HPCT_RUN_PART_PASSES_ON, /* an output channel needs the same source channel: pools, activations
                              */
} hpct_run_part_split;

typedef struct hpct_run_part {
    const char *layer, *kind; /* "dense_1", "dense"; owned by the model */
    hpct_run_part_split split;
    bool dense;
    int input;          /* producer of its first source; -1: the model's input */
    bool joins;         /* has more than one source */
    size_t gradients;   /* floats of its trained parameters */
    size_t rows, cols;  /* of its kernel as a matrix; 0 without one */
    size_t results;     /* floats of the output, per sample */
    size_t cells;       /* output cells a convolution can split by (nn/graph/parallel.h), or 0 */
    size_t synchronize; /* floats it sums over the replicas per step */
} hpct_run_part;

int hpct_model_count_parts(const hpct_model *model);
/* part < hpct_model_count_parts, in topological order; backward is in reverse. The model need not
 * be built. */
hpct_run_part hpct_model_part(const hpct_model *model, int part);

/* Equal for equal operations and shapes. */
uint64_t hpct_model_parts_fingerprint(const hpct_model *model);

/* Seconds of one step. */
typedef struct hpct_run_part_seconds {
    double forward, backward;
} hpct_run_part_seconds;

typedef struct hpct_run_step_seconds {
    hpct_run_part_seconds *parts; /* [hpct_model_count_parts], allocated by the caller */
    double loss, update;
} hpct_run_step_seconds;

/* Runs `steps` training steps (>= 1) of n samples after one warm-up step, as the only replica:
 * nothing is sent. Medians of each part; 0 for the collectives of a split model. The model must be
 * built for training with n samples, and its input be set; its weights change, its step count does
 * not. */
hpct_status hpct_model_time_parts(hpct_model *model, int n, int steps, hpct_run_step_seconds *out);

/* From now on forward, loss, backward and update of this build sleep for these times; collectives
 * are still executed. Activations, gradients and parameters are not written, the loss sums are
 * zeros. A sleep that is too long shortens the next one, so that errors do not accumulate. seconds
 * = NULL ends emulation. Returns HPCT_ERR_CONFIG on a device. */
hpct_status hpct_model_emulate(hpct_model *model, const hpct_run_step_seconds *seconds);

#endif
