/* nn/backend/dropout.h - the elements that Dropout keeps: equal in every backend, for any number of
 * ranks and threads, in forward and backward. */
#ifndef HPCT_NN_BACKEND_DROPOUT_H
#define HPCT_NN_BACKEND_DROPOUT_H

#include "nn/graph/rng.h"

#include <stddef.h>

/* Random words are drawn in groups, so that HPCT_BACKEND_DROPOUT_LANES blocks are drawn as a
 * vector: element e of a sample has word (e / LANES) % 4 of block e / GROUP * LANES + e % LANES. */
#define HPCT_BACKEND_DROPOUT_LANES 16
#define HPCT_BACKEND_DROPOUT_GROUP 64

typedef struct hpct_backend_dropout {
    hpct_graph_draw draw;
    uint32_t threshold; /* an element is kept if its word is not below this */
    float scale;        /* of kept elements, preserving the mean: 1 / (1 - rate) */
} hpct_backend_dropout;

/* `rate` in [0, 1]; at 1 all elements are kept and multiplied by zero. */
static inline hpct_backend_dropout hpct_backend_dropout_make(const hpct_graph_draw *draw,
                                                             double rate)
{
    return (hpct_backend_dropout){.draw = *draw,
                                  .threshold = rate < 1 ? (uint32_t) (rate * 0x1p32) : 0,
                                  .scale = rate < 1 ? (float) (1 / (1 - rate)) : 0};
}

#endif
