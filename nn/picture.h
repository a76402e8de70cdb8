/* nn/picture.h - what resizing, cropping and flipping do to one picture, before any backend: which
 * part of it is shown, where each output cell looks, which way round it is. */
#ifndef HPCT_NN_PICTURE_H
#define HPCT_NN_PICTURE_H

#include "nn/op.h"
#include "nn/rng.h"

/* A part of the input. */
typedef struct hpct_box {
    int top, left, height, width;
} hpct_box;

/* All of it. */
hpct_box hpct_box_whole(const hpct_picture *picture);

/* What RandomCrop shows where it does not draw: the largest part, from the middle, whose sides have
 * the output's proportions; it is then resized. */
hpct_box hpct_box_centre(const hpct_picture *picture);

/* What RandomCrop shows of this sample: a part of the output's size from anywhere, or the centre
 * when the input is not larger than the output both ways. */
hpct_box hpct_box_random(const hpct_picture *picture, const hpct_draw *draw, uint32_t sample);

/* Whether RandomFlip turns this sample. With both ways chosen it is turned both ways or not at all,
 * as Keras 3 does. */
bool hpct_flips(const hpct_draw *draw, uint32_t sample);

/* Where an output cell looks along one axis: between two cells of the input, counted within the
 * box. Cell centres lie at halves, as in tf.image.resize. */
typedef struct hpct_between {
    int low, high;
    double part; /* how far from low to high */
} hpct_between;
hpct_between hpct_look(int out, int out_size, int in_size);

#endif
