/* nn/rng.h - random numbers as a function of (seed, stream, index), so that they do not depend on
 * who draws them, in which order, on how many threads. */
#ifndef HPCT_NN_RNG_H
#define HPCT_NN_RNG_H

#include <stdint.h>

/* Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as 1, 2, 3, 2011). */
void hpct_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* Uniform in [0, 1), a multiple of 2^-24: the index-th number of that stream under that seed. */
float hpct_uniform(uint64_t seed, uint32_t stream, uint64_t index);

#endif
