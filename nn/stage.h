/* nn/stage.h - one stage of a model that was cut (nn/cut.h): the operations of a range, with their
 * parameters, as a model of its own. It steps through pieces of a batch (micro-batches), several of
 * which may be between forward and backward at once, each in a place of its own, which has the
 * activations; gradients add up over the pieces. Knows nothing of who has the other stages: what
 * comes in and goes out are messages, [tensor][sample][numbers of one], in the order of
 * hpct_cut_tensors. Private to nn/ and the strategies.
 *
 * BatchNormalization takes its statistics from one piece (as GPipe has it: Huang et al., GPipe:
 * Efficient Training of Giant Neural Networks using Pipeline Parallelism, 2019), and moves its
 * moving ones once for each: what one replica does that accumulates the gradients of as many
 * batches. */
#ifndef HPCT_NN_STAGE_H
#define HPCT_NN_STAGE_H

#include "nn/cut.h"
#include "nn/step.h"

typedef struct hpct_stage hpct_stage;

/* Its weights are not set yet: see nn/record.h. HPCT_ERR_CONFIG: global_clipnorm, which needs
 * the gradients of all stages. */
hpct_status hpct_stage_open(hpct_stage **out, const hpct_model *whole, const hpct_cut *cut,
                            int stage);
void hpct_stage_close(hpct_stage *stage); /* allows NULL */

/* A compiled model of its own, owned by the stage. Its input, labels and position are those of the
 * whole batch; it is built by hpct_stage_build alone. */
hpct_model *hpct_stage_model(hpct_stage *stage);

/* The whole model's count of steps, on which its learning rate depends, becomes the stage's. */
void hpct_stage_tell_steps(const hpct_stage *stage, hpct_model *whole);

/* Parameters of the stage among those of the whole model: [*first, *first + *count). */
void hpct_stage_parameters(const hpct_model *whole, const hpct_cut *cut, int stage, int *first,
                           int *count);

/* Builds it with so many places, 1 or more. The batch sizes are those of pieces, which
 * options->input_samples of the whole batch are cut into. No update within backward. */
hpct_status hpct_stage_build(hpct_stage *stage, const hpct_build_options *options, int places);
/* Bytes by which the process grows in that. */
hpct_status hpct_stage_need(const hpct_stage *stage, const hpct_build_options *options, int places,
                            size_t *bytes);

/* One piece of a batch. */
typedef struct hpct_piece {
    int place;         /* where its activations lie from its forward to its backward */
    int first, count;  /* of the samples of the batch */
    int number, total; /* which piece of how many, from 0: backwards come in this order */
} hpct_piece;

/* A batch begins, with the input, labels and position that the model was given, and ends; between
 * them each piece goes forward and, later, backward, in the order of the pieces, and forward for
 * inference is not called. None of it allocates. */
void hpct_stage_begin(hpct_stage *stage);
void hpct_stage_end(hpct_stage *stage);

/* Floats of a message of so many samples that crosses the border before the built stage, or behind
 * it: values, or their gradients. Tensors lie in it as they do in memory, which may be in 16 bits.
 */
size_t hpct_stage_message(const hpct_stage *stage, int samples, bool before, bool gradients);

/* Messages are in the memory that the model computes in: the host's, or a device's.
 * in: what comes from the stage before, NULL for the first; out: what goes to the next, NULL for
 * the last. */
hpct_status hpct_stage_forward(hpct_stage *stage, const hpct_piece *piece, const float *in,
                               float *out);

/* in: gradients of what went out, NULL for the last stage, which takes the loss, with `scale` as in
 * hpct_model_loss and adds it to *sums; out: gradients of what came in, NULL for the first. After
 * the last piece the gradient arena has the sum over all. */
hpct_status hpct_stage_backward(hpct_stage *stage, const hpct_piece *piece, float scale,
                                const float *in, float *out, hpct_batch_sums *sums);

/* In place of all pieces: the gradients are zeros, there being no samples. */
hpct_status hpct_stage_skip(hpct_stage *stage);

#endif
