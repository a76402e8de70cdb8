/* nn/graph/variation.h - the random changes of RANDOM_FLIP, RANDOM_AFFINE (RandomRotation,
 * RandomZoom, RandomTranslation) and RANDOM_TONE (RandomContrast, RandomBrightness): their
 * settings, what they draw for a sample, and where a cell of the result comes from, with the
 * numbers of Keras' layers and of TensorFlow's ImageProjectiveTransformV3. The same for every
 * backend: included from C and CUDA C++. */
#ifndef HPCT_NN_GRAPH_VARIATION_H
#define HPCT_NN_GRAPH_VARIATION_H

#include "base/host_and_device.h"

#include <hpctrain/model.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum hpct_graph_variation_kind {
    HPCT_GRAPH_VARY_FLIP,
    HPCT_GRAPH_VARY_ROTATION, /* by a part of a turn */
    HPCT_GRAPH_VARY_ZOOM,     /* by 1 + parts of height and width */
    HPCT_GRAPH_VARY_TRANSLATION,
    HPCT_GRAPH_VARY_CONTRAST,  /* by a factor */
    HPCT_GRAPH_VARY_BRIGHTNESS /* by an addition */
} hpct_graph_variation_kind;

typedef struct hpct_graph_variation {
    hpct_graph_variation_kind kind;
    bool horizontal, vertical; /* FLIP: permitted ones */
    double low[2], high[2]; /* numbers are drawn from [low, high): height's or only one, width's */
    bool square;            /* ZOOM: the width's number is the height's */
    bool nearest;           /* cell, instead of a bilinear mean */
    hpct_fill_mode fill;    /* cells outside, */
    float fill_value;       /* with HPCT_FILL_CONSTANT */
    float least, most;      /* RANDOM_TONE: bounds of the result */
} hpct_graph_variation;

/* Sizes of an image operation; the mapping is in nn/backend/picture.h. */
typedef struct hpct_graph_picture {
    int in_h, in_w, out_h, out_w, channels;
    bool nearest;                   /* RESIZING: the nearest cell instead of a bilinear mean */
    hpct_graph_variation variation; /* RANDOM_FLIP, RANDOM_AFFINE, RANDOM_TONE */
} hpct_graph_picture;

/* words: block 0 of the sample (hpct_graph_draw_words). */
HPCT_HOST_AND_DEVICE double hpct_graph_vary_number(const hpct_graph_variation *v, int which,
                                                   const uint32_t *words)
{
    return v->low[which] + (v->high[which] - v->low[which]) * ((double) words[which] * 0x1p-32);
}

/* ---- RANDOM_FLIP, RANDOM_AFFINE ---- */

/* Whether FLIP flips the sample: if both directions are permitted in both or none, as Keras 3. */
HPCT_HOST_AND_DEVICE bool hpct_graph_vary_flips(const uint32_t *words)
{
    return words[0] >> 31 != 0;
}

/* Cell (x, y) of the result is at (xx x + xy y + x0, yx x + yy y + y0) of the source. */
typedef struct hpct_graph_cell_map {
    double xx, xy, x0, yx, yy, y0;
} hpct_graph_cell_map;

/* Around the centre. */
HPCT_HOST_AND_DEVICE void hpct_graph_vary_turn(double turns, int height, int width,
                                               hpct_graph_cell_map *map)
{
    double angle = turns * 6.283185307179586, c = cos(angle), s = sin(angle);
    double x = (width - 1) / 2.0, y = (height - 1) / 2.0;
    map->xx = c;
    map->xy = -s;
    map->x0 = x - x * c + y * s;
    map->yx = s;
    map->yy = c;
    map->y0 = y - x * s - y * c;
}

HPCT_HOST_AND_DEVICE hpct_graph_cell_map hpct_graph_vary_map(const hpct_graph_variation *v,
                                                             const uint32_t *words, int height,
                                                             int width)
{
    hpct_graph_cell_map map = {1, 0, 0, 0, 1, 0};
    bool flips = v->kind == HPCT_GRAPH_VARY_FLIP && hpct_graph_vary_flips(words);
    double down = hpct_graph_vary_number(v, 0, words);
    double right = v->square ? down : hpct_graph_vary_number(v, 1, words);
    if (flips && v->horizontal) {
        map.xx = -1;
        map.x0 = width - 1;
    }
    if (flips && v->vertical) {
        map.yy = -1;
        map.y0 = height - 1;
    }
    if (v->kind == HPCT_GRAPH_VARY_ROTATION)
        hpct_graph_vary_turn(down, height, width, &map);
    if (v->kind == HPCT_GRAPH_VARY_ZOOM) { /* around the centre */
        map.xx = 1 + right;
        map.yy = 1 + down;
        map.x0 = (width - 1) / 2.0 * -right;
        map.y0 = (height - 1) / 2.0 * -down;
    }
    if (v->kind == HPCT_GRAPH_VARY_TRANSLATION) {
        map.x0 = -right * width;
        map.y0 = -down * height;
    }
    return map;
}

/* A coordinate as one inside of an axis of `length` cells. As TensorFlow's, also between the last
 * cell and the first one. */
HPCT_HOST_AND_DEVICE double hpct_graph_fill_inside(double at, int length, hpct_fill_mode fill)
{
    const double last = length - 1;
    if (at >= 0 && at <= last)
        return at;
    if (fill == HPCT_FILL_REFLECT && last > 0) {
        const double period = 2.0 * length;
        at = at < 0 ? -at - 1 : at;
        at = at < 0 ? 0 : at - period * floor(at / period);
        at = at >= length ? period - at - 1 : at;
    }
    if (fill == HPCT_FILL_WRAP && last > 0)
        at = at < 0 ? at + length * (floor(-at / last) + 1) : at - length * floor(at / last);
    return at < 0 ? 0 : at > last ? last : at;
}

/* Two cells of an axis, or the same one twice, and the weight of the second; -1: outside. */
typedef struct hpct_graph_two_cells {
    int low, high;
    float part;
} hpct_graph_two_cells;

HPCT_HOST_AND_DEVICE hpct_graph_two_cells hpct_graph_cells_at(const hpct_graph_variation *v,
                                                              double at, int length)
{
    hpct_graph_two_cells cells = {-1, -1, 0};
    at = v->fill == HPCT_FILL_CONSTANT ? at : hpct_graph_fill_inside(at, length, v->fill);
    if (!(at > -1 && at < length))
        return cells;
    if (v->nearest) {
        int cell = at <= -0.5 ? -1 : (int) (at + 0.5);
        cells.low = cells.high = cell < length ? cell : -1;
        return cells;
    }
    cells.low = (int) (at + 1) - 1;
    cells.high = cells.low + 1 < length ? cells.low + 1 : -1;
    cells.part = (float) (at - cells.low);
    return cells;
}

/* ---- RANDOM_TONE ---- */

/* The result is (x - mean) factor + mean + addition, where CONTRAST has the channel's mean and
 * BRIGHTNESS 0. */
typedef struct hpct_graph_tone {
    float factor, addition;
} hpct_graph_tone;

HPCT_HOST_AND_DEVICE hpct_graph_tone hpct_graph_vary_tone(const hpct_graph_variation *v,
                                                          const uint32_t *words)
{
    hpct_graph_tone tone = {1, 0};
    if (v->kind == HPCT_GRAPH_VARY_CONTRAST)
        tone.factor = (float) hpct_graph_vary_number(v, 0, words);
    else
        tone.addition = (float) hpct_graph_vary_number(v, 0, words);
    return tone;
}

HPCT_HOST_AND_DEVICE float hpct_graph_vary_value(const hpct_graph_variation *v,
                                                 hpct_graph_tone tone, float mean, float x)
{
    float y = (x - mean) * tone.factor + mean + tone.addition;
    return y < v->least ? v->least : y > v->most ? v->most : y;
}

#endif
