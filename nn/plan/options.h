/* nn/plan/options.h - building a model: options, memory plan, build. */
#ifndef HPCT_NN_PLAN_OPTIONS_H
#define HPCT_NN_PLAN_OPTIONS_H

#include <hpctrain/model.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Floats after the gradients for the caller's piggybacked sums. */
#define HPCT_RUN_ARENA_PIGGYBACK 16

/* Limit of hpct_model_fetch. */
#define HPCT_RUN_FETCH_BYTES 64

typedef struct hpct_run_build_options {
    const char *backend;    /* "cpu", "ref" or "cuda"; NULL: hpct_model_set_device's */
    const int *batch_sizes; /* all batch sizes of forward, > 0 */
    int num_batch_sizes;
    bool inference_only; /* no gradients, no optimizer slots */
    bool fuse_update;    /* backward applies updates itself where that saves memory traffic;
                            gradients() is then undefined, and update() does the rest. For one rank.
                            No effect unless the update is rate * gradient. */
    bool dense_targets;  /* the loss uses hpct_model_targets instead of labels */
    bool plain_layout;   /* processor-independent layout of parameters, for ranks with different
                            fingerprints; may cost speed */
    bool fp32;           /* fp32 whatever the model's precision */
    bool no_slots;       /* no optimizer slots and no update: another rank updates */
    int input_samples;   /* capacity of hpct_model_input if larger than the largest batch: replicas
                            read parts of it (nn/run/clone.h) */
    hpct_model
        *storage; /* a built model of the same layers whose parameters are shared without a copy; no
                     slots and no update here. Only with equal layouts (fingerprints), else ignored.
                     Its build must outlive this one. Default NULL. */
} hpct_run_build_options;

/* Allocates and plans everything for these batch sizes. The model must be compiled. Weights and
 * optimizer slots are kept, also from an earlier build. */
hpct_status hpct_model_build(hpct_model *model, const hpct_run_build_options *options);

/* The peak of activations and gradients: forward or backward of which layer. */
typedef struct hpct_run_memory_peak {
    size_t bytes;
    const char *layer;
    bool backward;
} hpct_run_memory_peak;

/* Bytes used by a build and its steps, for the batch size that needs most. */
typedef struct hpct_run_memory_plan {
    size_t parameters;  /* and states */
    size_t copies;      /* copies of parameters in the compute precision */
    size_t gradients;   /* stored ones; not those applied by backward */
    size_t optimizer;   /* slots, accumulated gradients */
    size_t activations; /* with gradients, and what forward saves for backward */
    hpct_run_memory_peak peak;
    size_t scratch; /* of the operation that wants most; dense targets */
    size_t input;   /* hpct_model_input and _labels, if allocated */
    size_t freed;   /* freed by moving in: the unbuilt model's values, or an earlier build */
} hpct_run_memory_plan;

/* Plans without allocating; leaves the model unchanged. */
hpct_status hpct_model_plan(const hpct_model *model, const hpct_run_build_options *options,
                            hpct_run_memory_plan *plan);

/* Total, without the input. Growth of the process is less: memory is freed after moving. */
size_t hpct_run_memory_plan_total(const hpct_run_memory_plan *plan);
size_t hpct_run_memory_plan_growth(const hpct_run_memory_plan *plan);

/* The largest batch whose elements an int can count; at least 1. */
int hpct_model_largest_batch(const hpct_model *model);

/* Number of builds: detects stale pointers into the model. */
int64_t hpct_model_builds(const hpct_model *model);

/* A parameter as a row-major matrix in the arena; a vector has one row. The kernel's matrix (Dense:
 * or transposed; convolution: by output channel) if the layout keeps it; otherwise (oneDNN's
 * blocked kernels) memory in rows of output channels: a fixed permutation, equal on ranks with
 * equal fingerprints. */
typedef struct hpct_run_arena_matrix {
    size_t offset, rows, columns; /* floats */
} hpct_run_arena_matrix;
/* All trained parameters, in the arena's order; returns how many. `out` may be NULL. */
int hpct_model_matrices(const hpct_model *model, hpct_run_arena_matrix *out);

/* Sets bits[i / 32] >> i % 32 & 1 of each float i that is padding of a trained parameter's layout,
 * where kernels require zeros; the others remain. *any: whether there are some. */
hpct_status hpct_model_mark_padding(const hpct_model *model, uint32_t *bits, bool *any);

#endif
