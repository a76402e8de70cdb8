/* hpctrain/trainer.h - the parts of a training step as separate calls, for a loop of one's own over
 * the ranks of a context. hpct_fit is such a loop; etc/examples/own_loop.c is a small one.
 *
 *   for each step: fill hpct_trainer_input and _labels; forward; backward; reduce; apply */
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
    /* Every number of samples, other than 0, that this rank will have in a step; zeros behind the
     * last. Default: 32 alone. */
    int batch_sizes[HPCT_TRAINER_BATCH_SIZES];
    bool dense_targets; /* the loss takes hpct_trainer_targets instead of the labels */
    uint64_t seed;      /* of random layers (Dropout) */
} hpct_trainer_options;

/* Builds a compiled, initialized model for training and makes rank 0's weights everybody's;
 * collective. The caller owns *out, and closes it before the model and the context, which it uses
 * until then: trainer, model, context, in this order. (A model that is freed earlier all the same
 * stays until the trainer is closed; a context does not.) Until it is closed, hpct_fit and
 * hpct_evaluate must leave the model alone: they build it anew, after which the calls below return
 * HPCT_ERR_USAGE. */
HPCT_API hpct_status hpct_trainer_open(hpct_trainer **out, hpct_context *context, hpct_model *model,
                                       const hpct_trainer_options *options);

/* The model keeps its weights and its optimizer's state. NULL is allowed. */
HPCT_API void hpct_trainer_close(hpct_trainer *trainer);

/* Where a batch goes, sample first: pictures [batch][height][width][channels], labels [batch], each
 * at least 0 and below the number of outputs, or targets [batch][outputs], NULL without
 * dense_targets. Owned by the trainer; they stay where they are. */
HPCT_API float *hpct_trainer_input(hpct_trainer *trainer);
HPCT_API int32_t *hpct_trainer_labels(hpct_trainer *trainer);
HPCT_API float *hpct_trainer_targets(hpct_trainer *trainer);

/* Forward over the first `count` samples, which is one of the batch sizes, or 0 for a rank that has
 * none in this step. `training`: layers such as Dropout and BatchNormalization behave so, and
 * backward may follow; with synchronized BatchNormalization training is collective here and in
 * backward. */
HPCT_API hpct_status hpct_trainer_forward(hpct_trainer *trainer, int count, bool training);

/* The outputs of the last forward: [count][outputs], until the next. */
HPCT_API const float *hpct_trainer_output(const hpct_trainer *trainer);

/* Loss and metrics of the last forward, summed over this rank's samples and divided by
 * `global_count`. */
HPCT_API hpct_status hpct_trainer_measure(hpct_trainer *trainer, int global_count,
                                          hpct_metrics *metrics);

/* This rank's gradients of the mean loss over all `global_count` samples of the step, after a
 * forward with `training`. */
HPCT_API hpct_status hpct_trainer_backward(hpct_trainer *trainer, int global_count);

/* Adds up the gradients of all ranks (much of that has happened in backward already), and makes the
 * moving statistics their mean, so that every rank may save or evaluate after any step; collective.
 * `metrics`, of all samples of the step and the same on all ranks, may be NULL. With gradient
 * accumulation only the last step of each cycle moves gradients, and then their sum over the cycle.
 */
HPCT_API hpct_status hpct_trainer_reduce(hpct_trainer *trainer, hpct_metrics *metrics);

/* The gradients of all parameters as one array, in the order and layout of the library's own, with
 * zeros between them. They are defined from reduce to apply alone, and may be changed then (scaled,
 * say). */
HPCT_API float *hpct_trainer_gradients(hpct_trainer *trainer, size_t *count);

/* The optimizer's update; does nothing but count while gradients accumulate. All ranks call it, or
 * none. */
HPCT_API hpct_status hpct_trainer_apply(hpct_trainer *trainer);

#ifdef __cplusplus
}
#endif
#endif
