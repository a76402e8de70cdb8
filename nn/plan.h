/* nn/plan.h - places buffers in one block of memory so that those in use at the same time do not
 * overlap and others share. Knows only sizes and times. */
#ifndef HPCT_NN_PLAN_H
#define HPCT_NN_PLAN_H

#include <stddef.h>

typedef struct hpct_plan_item {
    size_t bytes;
    int first, last; /* times at which it is in use, both included */
    size_t offset;   /* out: a multiple of 64 */
} hpct_plan_item;

/* Fills the offsets and returns the size of the block. Greedy by size: the largest item first, each
 * at the lowest offset free during its whole life (Pisarchyk and Lee, Efficient Memory Management
 * for Deep Neural Net Inference, 2020). */
size_t hpct_plan(hpct_plan_item *items, int count);

#endif
