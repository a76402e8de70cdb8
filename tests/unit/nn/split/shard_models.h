/* tests/unit/nn/split/shard_models.h - models for tests of models in parts: drawn graphs, and
 * others of which one thing is known. */
#ifndef HPCT_TESTS_UNIT_NN_SPLIT_SHARD_MODELS_H
#define HPCT_TESTS_UNIT_NN_SPLIT_SHARD_MODELS_H

#include <hpctrain/model.h>
#include <stdint.h>

#define SHARD_SAMPLES 6
#define SHARD_CLASSES 5

extern int
    shard_most_vectors; /* of 16 channels that a drawn convolution may have; 0: any number of few */
extern double shard_clipnorm, shard_global_clipnorm; /* of all models that are made */

/* From low to high. */
int shard_draw(uint64_t *state, int low, int high);
void shard_draw_convolution(hpct_model *model, uint64_t *state, int filters);

/* Compiled and initialized, the caller's. */
hpct_model *shard_draw_model(uint64_t seed);
hpct_model *shard_deep_model(uint64_t seed);
hpct_model *shard_narrow_model(uint64_t seed);
hpct_model *shard_picture_model(uint64_t seed);
hpct_model *shard_deep_convolutions(uint64_t seed);
hpct_model *shard_separable_model(uint64_t seed);

/* The model's input, labels and position: a batch of SHARD_SAMPLES. */
void shard_fill(hpct_model *model, uint64_t seed);

#endif
