/* nn/plan/plan.h - memory plan: offsets in one block such that buffers with overlapping live ranges
 * do not overlap. Knows only sizes and times. */
#ifndef HPCT_NN_PLAN_PLAN_H
#define HPCT_NN_PLAN_PLAN_H

#include <stddef.h>

typedef struct hpct_run_plan_item {
    size_t bytes;
    int first, last; /* live range, both ends included */
    size_t offset;   /* out: a multiple of 64 */
} hpct_run_plan_item;

/* Computes the offsets and returns the size of the block. Greedy by size: the largest item first,
 * at the lowest offset free during its live range (Pisarchyk and Lee, Efficient Memory Management
 * for Deep Neural Net Inference, 2020). */
size_t hpct_plan(hpct_run_plan_item *items, int count);

#endif
