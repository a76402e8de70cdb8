/* agent/strategy/gradients/select.h - the k values of largest magnitude, exactly, without sorting,
 * copying or allocating: radix selection on the magnitudes' bits, which order like integers. (Three
 * passes over memory instead of quickselect's expected 3.4 comparisons per value and a copy: Alabi
 * et al., Fast k-selection algorithms for graphics processing units, 2012.) */
#ifndef HPCT_AGENT_STRATEGY_GRADIENTS_SELECT_H
#define HPCT_AGENT_STRATEGY_GRADIENTS_SELECT_H

#include <stddef.h>
#include <stdint.h>

/* Index in the arena, and value, as sent. */
typedef struct hpct_grad_pair {
    uint32_t index;
    float value;
} hpct_grad_pair;

#define HPCT_GRAD_SELECT_BINS 2048

/* residue += gradient; moves the k (1 … count) values of largest magnitude, ties by index, to
 * pairs[k], with their index plus `first`, in the order of indices; they become 0 in the residual.
 * NaN is largest. histogram: scratch, [HPCT_GRAD_SELECT_BINS]. */
void hpct_grad_select_largest(size_t count, size_t k, const float *gradient, float *residue,
                              size_t first, hpct_grad_pair *pairs, uint32_t *histogram);

#endif
