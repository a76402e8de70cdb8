/* hpctrain/trainer.h - a training step as separate calls, for own training loops
 * (etc/examples/own_loop.c).
 *
 *   for each step: fill hpct_trainer_input() and hpct_trainer_labels(); forward; backward; reduce;
 *   apply */
#ifndef HPCTRAIN_TRAINER_H
#define HPCTRAIN_TRAINER_H

#include <hpctrain/context.h>
#include <hpctrain/train.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hpct_trainer hpct_trainer;

#define HPCT_TRAINER_BATCH_SIZES 4

typedef struct hpct_trainer_options {
    /* All numbers of samples, other than 0, this rank will have in a step, zero-terminated.
     * Default: 32. */
    int batch_sizes[HPCT_TRAINER_BATCH_SIZES];
    bool dense_targets; /* the loss uses hpct_trainer_targets() instead of labels */
    uint64_t seed;      /* for random layers (Dropout) */
} hpct_trainer_options;

/* Builds a compiled, initialized model for training and broadcasts rank 0's weights. Collective.
 * The caller owns *out and frees it with hpct_trainer_close(), before model and context (a model
 * freed earlier is kept until then). Do not call hpct_fit() or hpct_evaluate() on the model
 * meanwhile: they rebuild it, and the functions below then return HPCT_ERR_USAGE. */
HPCT_API hpct_status hpct_trainer_open(hpct_trainer **out, hpct_context *context, hpct_model *model,
                                       const hpct_trainer_options *options);

/* Frees the trainer; the model keeps weights and optimizer slots. NULL is allowed. */
HPCT_API void hpct_trainer_close(hpct_trainer *trainer);

/* Buffers for a batch: images [batch][height][width][channels]; labels [batch], 0 to outputs - 1;
 * or targets [batch][outputs], NULL without dense_targets. Owned by the trainer, at fixed
 * addresses. */
HPCT_API float *hpct_trainer_input(hpct_trainer *trainer);
HPCT_API int32_t *hpct_trainer_labels(hpct_trainer *trainer);
HPCT_API float *hpct_trainer_targets(hpct_trainer *trainer);

/* Forward over the first `count` samples: one of the batch sizes, or 0 if this rank has none in the
 * step. `training`: as for Keras layers; required before backward. Collective, as backward, if
 * `training` and the model has synchronized BatchNormalization. */
HPCT_API hpct_status hpct_trainer_forward(hpct_trainer *trainer, int count, bool training);

/* Outputs of the last forward, [count][outputs]; valid until the next. */
HPCT_API const float *hpct_trainer_output(const hpct_trainer *trainer);

/* Loss and metrics of the last forward: sums over this rank's samples divided by `global_count`. */
HPCT_API hpct_status hpct_trainer_measure(hpct_trainer *trainer, int global_count,
                                          hpct_metrics *metrics);

/* Computes this rank's gradients of the mean loss over `global_count` samples, after a forward with
 * `training`. */
HPCT_API hpct_status hpct_trainer_backward(hpct_trainer *trainer, int global_count);

/* Completes the sum of gradients over the ranks, and averages moving statistics, so that every rank
 * may save or evaluate after any step. Collective. `metrics` (of the global batch, equal on all
 * ranks) may be NULL. With gradient accumulation gradients are
 * reduced in the last step of each cycle, as their sum over the cycle. */
HPCT_API hpct_status hpct_trainer_reduce(hpct_trainer *trainer, hpct_metrics *metrics);

/* Gradients of all parameters as one array in an internal order and layout, with zero padding;
 * *count is its length in floats. Valid, and may be changed, between reduce and apply only. */
HPCT_API float *hpct_trainer_gradients(hpct_trainer *trainer, size_t *count);

/* Applies the update; while gradients accumulate only counts the step. Called by all ranks or none.
 */
HPCT_API hpct_status hpct_trainer_apply(hpct_trainer *trainer);

#ifdef __cplusplus
}
#endif
#endif
