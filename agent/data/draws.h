/* agent/data/draws.h - random numbers of one sample in one pass: each is a function of the sample's
 * bits (agent/data/sampler.h), a purpose, and how many of that purpose were drawn before. Purposes
 * do not affect one another. */
#ifndef HPCT_AGENT_DATA_DRAWS_H
#define HPCT_AGENT_DATA_DRAWS_H

#include <stdint.h>

typedef enum hpct_data_purpose {
    HPCT_DATA_DRAW_ROTATION = 1,
    HPCT_DATA_DRAW_ZOOM,
    HPCT_DATA_DRAW_CONTRAST,
    HPCT_DATA_DRAW_MIX,
    HPCT_DATA_DRAW_OPERATIONS, /* of RandAugment */
    HPCT_DATA_DRAW_OPERATION,  /* + number of the operation: its parameters */
    HPCT_DATA_DRAW_TRANSLATION = 64
} hpct_data_purpose;

typedef struct hpct_data_draws {
    uint64_t key, count;
} hpct_data_draws;

hpct_data_draws hpct_data_draws_for(uint64_t sample_bits, int purpose);

/* In [low, high). */
double hpct_data_draws_uniform(hpct_data_draws *draws, double low, double high);

/* From 0 to count - 1. */
uint32_t hpct_data_draws_below(hpct_data_draws *draws, uint32_t count);

/* Of the distribution Beta(alpha, alpha), alpha > 0. */
double hpct_data_draws_beta(hpct_data_draws *draws, double alpha);

#endif
