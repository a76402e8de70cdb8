/* tests/unit/nn/nn_small.h - a small model, and one step of it, for tests of whole models. */
#ifndef HPCT_TESTS_UNIT_NN_NN_SMALL_H
#define HPCT_TESTS_UNIT_NN_NN_SMALL_H

#include "nn/run/step.h"
#include "tests/unit/unit.h"

/* Something of every layer: oneDNN's convolution and the direct one, odd channels, padding. */
hpct_model *small_model(bool softmax);

/* By SGD; for batches of 8 and 5 unless the options say otherwise. */
void small_compile(hpct_model *model, hpct_loss loss, double momentum);
/* Whose outputs are logits; seed 0: without initial weights. */
void small_logits(hpct_model *model, uint64_t seed);
void small_build(hpct_model *model, hpct_run_build_options options);
hpct_model *small_ready(const char *backend, double momentum);

/* One of every kind, with different clippings, schedules and accumulations. */
#define SMALL_OPTIMIZERS 7
extern const hpct_optimizer small_optimizers[SMALL_OPTIMIZERS];
hpct_model *small_ready_with(const char *backend, const hpct_optimizer *optimizer);

/* Batch t. Labels follow from the picture, so that there is something to learn. */
void small_fill(hpct_model *model, int n, uint32_t t);

/* A whole step on batch t; returns its mean loss. */
double small_step(hpct_model *model, int n, uint32_t t);

void assert_same_weights(const hpct_model *a, const hpct_model *b, float tolerance);

/* A step of models with equal weights, two of them with fused updates: gradients that are shown are
 * those of the third, and do not change the update. Frees the models. */
void expect_shown_gradients(hpct_model *fused, hpct_model *shown, hpct_model *plain);

/* "cpu", or what HPC_TRAIN_TEST_BACKEND names. */
const char *small_backend(void);

#endif
