/* nn/drawn.h - a sample of a batch, by its number in the data set and what was drawn for it. */
#ifndef HPCT_NN_DRAWN_H
#define HPCT_NN_DRAWN_H

#include <stdint.h>

typedef struct hpct_drawn {
    uint32_t index;
    int16_t move_y, move_x; /* cell (y, x) of the batch's picture is (y + move_y, x + move_x) of the
                               resized and mirrored one; black where that is outside */
    uint32_t flip;          /* 1: mirrored left to right */
} hpct_drawn;

#endif
