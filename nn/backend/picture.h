/* nn/backend/picture.h - resizing and cropping of one image, for every backend: the crop box, the
 * interpolation points. Included from C and CUDA C++. */
#ifndef HPCT_NN_BACKEND_PICTURE_H
#define HPCT_NN_BACKEND_PICTURE_H

#include "nn/graph/variation.h"

/* A rectangle of the input. */
typedef struct hpct_backend_box {
    int top, left, height, width;
} hpct_backend_box;

/* The whole input. */
HPCT_HOST_AND_DEVICE hpct_backend_box hpct_backend_box_whole(const hpct_graph_picture *picture)
{
    hpct_backend_box box = {0, 0, picture->in_h, picture->in_w};
    return box;
}

/* min(size, other * wanted / other_wanted), at least 1. */
HPCT_HOST_AND_DEVICE int hpct_backend_proportional(int size, int other, int wanted,
                                                   int other_wanted)
{
    int64_t length = (int64_t) other * wanted / other_wanted;
    return length < 1 ? 1 : length < size ? (int) length : size;
}

/* RandomCrop's box without randomness: the largest centered one with the output's aspect ratio; it
 * is then resized. */
HPCT_HOST_AND_DEVICE hpct_backend_box hpct_backend_box_centre(const hpct_graph_picture *picture)
{
    const hpct_graph_picture *p = picture;
    int height = hpct_backend_proportional(p->in_h, p->in_w, p->out_h, p->out_w),
        width = hpct_backend_proportional(p->in_w, p->in_h, p->out_w, p->out_h);
    hpct_backend_box box = {(p->in_h - height) / 2, (p->in_w - width) / 2, height, width};
    return box;
}

/* Random integer in [0, range). */
HPCT_HOST_AND_DEVICE int hpct_backend_pick(uint32_t word, int range)
{
    return (int) ((uint64_t) word * (uint64_t) range >> 32);
}

/* RandomCrop's box of a sample: of the output's size at a random position, or the centered one if
 * the input is not larger than the output in both dimensions. words: block 0 of the sample. */
HPCT_HOST_AND_DEVICE hpct_backend_box hpct_backend_box_random(const hpct_graph_picture *picture,
                                                              const uint32_t *words)
{
    const hpct_graph_picture *p = picture;
    if (p->in_h <= p->out_h || p->in_w <= p->out_w)
        return hpct_backend_box_centre(picture);
    hpct_backend_box box = {hpct_backend_pick(words[0], p->in_h - p->out_h + 1),
                            hpct_backend_pick(words[1], p->in_w - p->out_w + 1), p->out_h,
                            p->out_w};
    return box;
}

/* Source of an output cell along one axis: interpolated between two input cells, counted within the
 * box, or the nearest one. Cell centers are at halves, as in tf.image.resize. */
typedef struct hpct_backend_between {
    int low, high;
    double part; /* weight of `high` */
} hpct_backend_between;

HPCT_HOST_AND_DEVICE hpct_backend_between hpct_backend_look(int out, int out_size, int in_size,
                                                            bool nearest)
{
    double at = (out + 0.5) * ((double) in_size / out_size) - 0.5, low = floor(at);
    int cell = (int) ((out + 0.5) * in_size / out_size);
    hpct_backend_between one = {cell, cell, 0},
                         two = {low < 0 ? 0 : (int) low,
                                low + 1 < in_size ? (int) low + 1 : in_size - 1, at - low};
    return nearest ? one : two;
}

#endif
