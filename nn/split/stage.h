/* nn/split/stage.h - a pipeline stage (nn/split/cut.h): a range of operations with their parameters
 * as a model of its own. It steps through micro-batches, several of which may be between forward
 * and backward, each with its own block of activations; gradients accumulate. Independent of ranks:
 * stage inputs and outputs are messages, [tensor][sample][values of one], in the order of
 * hpct_split_cut_tensors. Private to nn/ and strategies.
 *
 * BatchNormalization uses the statistics of a micro-batch (GPipe: Huang et al., GPipe: Efficient
 * Training of Giant Neural Networks using Pipeline Parallelism, 2019) and updates moving statistics
 * with each: as one replica that accumulates the gradients of as many batches. */
#ifndef HPCT_NN_SPLIT_STAGE_H
#define HPCT_NN_SPLIT_STAGE_H

#include "nn/run/step.h"
#include "nn/split/cut.h"

typedef struct hpct_split_stage hpct_split_stage;

/* Weights are not set: see nn/run/record.h. Returns HPCT_ERR_CONFIG for global_clipnorm, which
 * needs the gradients of all stages. */
hpct_status hpct_split_stage_open(hpct_split_stage **out, const hpct_model *whole,
                                  const hpct_split_cut *cut, int stage);
void hpct_split_stage_close(hpct_split_stage *stage); /* NULL is allowed */

/* A compiled model owned by the stage. Its input, labels and position are those of the whole batch;
 * to be built by hpct_split_stage_build only. */
hpct_model *hpct_split_stage_model(hpct_split_stage *stage);

/* Copies the whole model's step count, which determines the learning rate. */
void hpct_split_stage_tell_steps(const hpct_split_stage *stage, hpct_model *whole);

/* The stage's parameters among the whole model's: [*first, *first + *count). */
void hpct_split_stage_parameters(const hpct_model *whole, const hpct_split_cut *cut, int stage,
                                 int *first, int *count);

/* Builds it with `places` blocks of activations, 1 or more. Batch sizes are those of micro-batches
 * of options->input_samples. No fused update. */
hpct_status hpct_split_stage_build(hpct_split_stage *stage, const hpct_run_build_options *options,
                                   int places);
/* Bytes by which the process grows in hpct_split_stage_build. */
hpct_status hpct_split_stage_need(const hpct_split_stage *stage,
                                  const hpct_run_build_options *options, int places, size_t *bytes);

/* A micro-batch. */
typedef struct hpct_split_piece {
    int place;         /* its block of activations from forward to backward */
    int first, count;  /* samples within the batch */
    int number, total; /* index from 0, and number of micro-batches; backward runs in this order */
} hpct_split_piece;

/* Begin and end of a batch; input, labels and position of the model must be set before begin.
 * Between them each micro-batch has its forward and later its backward, each in order, without
 * inference in between. Allocates nothing. */
void hpct_split_stage_begin(hpct_split_stage *stage);
void hpct_split_stage_end(hpct_split_stage *stage);

/* Floats of a message of `samples` samples at the stage's input (`before`) or output: values, or
 * gradients. In the type of activations, possibly 16 bits. */
size_t hpct_split_stage_message(const hpct_split_stage *stage, int samples, bool before,
                                bool gradients);

/* Messages are in the model's memory: host or device. in: stage input, NULL for the first; out:
 * stage output, NULL for the last. */
hpct_status hpct_split_stage_forward(hpct_split_stage *stage, const hpct_split_piece *piece,
                                     const float *in, float *out);

/* in: gradients of the stage output, NULL for the last stage, which computes the loss with `scale`
 * as in hpct_model_loss and adds it to *sums; out: gradients of the stage input, NULL for the
 * first. After the last micro-batch the gradient arena has the sum. */
hpct_status hpct_split_stage_backward(hpct_split_stage *stage, const hpct_split_piece *piece,
                                      float scale, const float *in, float *out,
                                      hpct_backend_batch_sums *sums);

/* Instead of all micro-batches, without samples: sets the gradients to zero. */
hpct_status hpct_split_stage_skip(hpct_split_stage *stage);

#endif
