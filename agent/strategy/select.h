/* agent/strategy/select.h - the k numbers of largest magnitude, exactly, without sorting, copying
 * or allocating: radix selection on the bits of the magnitudes, which are ordered like whole
 * numbers. (A selection in three passes over memory instead of quickselect's expected 3.4
 * comparisons a number with a copy of all: Alabi et al., Fast k-selection algorithms for graphics
 * processing units, 2012.) */
#ifndef HPCT_STRATEGY_SELECT_H
#define HPCT_STRATEGY_SELECT_H

#include <stddef.h>
#include <stdint.h>

/* What travels: where in the arena, and the number there. */
typedef struct hpct_pair {
    uint32_t index;
    float value;
} hpct_pair;

#define HPCT_SELECT_BINS 2048

/* residue += gradient; the k (1 … count) largest of that, ties by the first, go to pairs[k] in the
 * order of their places, with `first` added to these, and are 0 in the residue. NaN is larger than
 * all. histogram: scratch, [HPCT_SELECT_BINS]. */
void hpct_select_largest(size_t count, size_t k, const float *gradient, float *residue,
                         size_t first, hpct_pair *pairs, uint32_t *histogram);

#endif
