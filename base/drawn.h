/* base/drawn.h - a sample of a batch: index in the data set and its random augmentation. */
#ifndef HPCT_BASE_DRAWN_H
#define HPCT_BASE_DRAWN_H

#include <stdint.h>

typedef struct hpct_drawn {
    uint32_t index;
    int16_t move_y, move_x; /* cell (y, x) of the result is (y + move_y, x + move_x) of the resized
                               and flipped image; black outside */
    uint32_t flip;          /* 1: flipped horizontally */
} hpct_drawn;

#endif
