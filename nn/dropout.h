/* nn/dropout.h - which elements Dropout keeps: the same ones in every backend, for every number of
 * ranks and threads, in forward and in backward. */
#ifndef HPCT_NN_DROPOUT_H
#define HPCT_NN_DROPOUT_H

#include "nn/rng.h"

#include <stddef.h>

/* Numbers are drawn in groups, so that vectors of HPCT_DROPOUT_LANES blocks can be drawn at once:
 * element e of a sample has word (e / LANES) % 4 of block e / GROUP * LANES + e % LANES. */
#define HPCT_DROPOUT_LANES 16
#define HPCT_DROPOUT_GROUP 64

typedef struct hpct_dropout {
    hpct_draw draw;
    uint32_t threshold; /* an element is kept when its word is not below it */
    float scale;        /* of kept ones, so that the mean stays: 1 / (1 - rate) */
} hpct_dropout;

/* `rate` lies within [0, 1]; at 1 everything is kept, times zero. */
static inline hpct_dropout hpct_dropout_make(const hpct_draw *draw, double rate)
{
    return (hpct_dropout){.draw = *draw,
                          .threshold = rate < 1 ? (uint32_t) (rate * 0x1p32) : 0,
                          .scale = rate < 1 ? (float) (1 / (1 - rate)) : 0};
}

#endif
