/* nn/backend/picture.h - resizing and cropping of one image, for every backend: the crop box, the
 * interpolation points. */
#ifndef HPCT_NN_BACKEND_PICTURE_H
#define HPCT_NN_BACKEND_PICTURE_H

#include "nn/graph/op.h"
#include "nn/graph/rng.h"

/* A rectangle of the input. */
typedef struct hpct_backend_box {
    int top, left, height, width;
} hpct_backend_box;

/* The whole input. */
hpct_backend_box hpct_backend_box_whole(const hpct_graph_picture *picture);

/* RandomCrop's box without randomness: the largest centered one with the output's aspect ratio; it
 * is then resized. */
hpct_backend_box hpct_backend_box_centre(const hpct_graph_picture *picture);

/* RandomCrop's box of this sample: of the output's size at a random position, or the centered one
 * if the input is not larger than the output in both dimensions. */
hpct_backend_box hpct_backend_box_random(const hpct_graph_picture *picture,
                                         const hpct_graph_draw *draw, uint32_t sample);

/* Source of an output cell along one axis: interpolated between two input cells, counted within the
 * box, or the nearest one. Cell centers are at halves, as in tf.image.resize. */
typedef struct hpct_backend_between {
    int low, high;
    double part; /* weight of `high` */
} hpct_backend_between;
hpct_backend_between hpct_backend_look(int out, int out_size, int in_size, bool nearest);

#endif
