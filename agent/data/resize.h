/* agent/data/resize.h - converts a picture's bytes to the floats of the model's input: resized,
 * scaled, flipped and shifted in one pass. Independent of data sets. */
#ifndef HPCT_AGENT_DATA_RESIZE_H
#define HPCT_AGENT_DATA_RESIZE_H

#include "agent/data/picture.h"

/* Preparation of a picture: resized to height x width, bytes x to x * factor + offset; then flipped
 * left to right; then shifted: dst (y, x) is its (y + move_y, x + move_x), black outside. */
typedef struct hpct_data_preparation {
    int height, width;
    float factor, offset;
    bool flip;
    int move_y, move_x;
} hpct_data_preparation;

/* Buffers of one thread, kept from picture to picture. */
typedef struct hpct_data_resizer hpct_data_resizer;
hpct_status hpct_data_resizer_new(hpct_data_resizer **out);
void hpct_data_resizer_free(hpct_data_resizer *resizer);

/* dst[height][width][channels of src]. Bilinear with half-pixel centres, without antialiasing, as
 * tf.image.resize and torch's interpolate(align_corners=False): output cell i is at (i + 0.5) * src
 * / dst - 0.5 of the source. */
hpct_status hpct_data_resize(hpct_data_resizer *resizer, const hpct_data_picture *src,
                             const hpct_data_preparation *how, float *dst);

/* ---- loops for each instruction set ---- */

typedef struct hpct_data_resize_loops {
    const char *name;
    bool (*supported)(void);
    /* dst[i] = src[i] * factor + offset */
    void (*widen)(size_t count, const uint8_t *src, float factor, float offset, float *dst);
    /* dst[i] = src[low[i]] + (src[high[i]] - src[low[i]]) * weight[i] */
    void (*columns)(size_t count, const float *src, const int32_t *low, const int32_t *high,
                    const float *weight, float *dst);
    /* dst[i] = a[i] + (b[i] - a[i]) * weight */
    void (*rows)(size_t count, const float *a, const float *b, float weight, float *dst);
} hpct_data_resize_loops;

/* Fastest first; the last one runs on every processor. NULL-terminated. */
extern const hpct_data_resize_loops *const hpct_data_resize_variants[];

/* Makes hpct_data_resize use these loops; for tests and measurements. */
void hpct_data_resizer_use(hpct_data_resizer *resizer, const hpct_data_resize_loops *loops);

#endif
