/* agent/data/affine.h - affine transforms of pictures, with the numbers of Keras'
 * ops.image.affine_transform: bilinear, reflected at the borders (d c b a | a b c d | d c b a). */
#ifndef HPCT_AGENT_DATA_AFFINE_H
#define HPCT_AGENT_DATA_AFFINE_H

#include "agent/data/canvas.h"

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stdint.h>

/* Cell (x, y) of the result is at (xx x + xy y + x0, yx x + yy y + y0) of the picture. */
typedef struct hpct_data_affine {
    double xx, xy, x0, yx, yy, y0;
} hpct_data_affine;

#define HPCT_DATA_AFFINE_IDENTITY ((hpct_data_affine){.xx = 1, .yy = 1})

/* As Keras' RandomRotation, RandomZoom (around the centre), RandomShear and RandomTranslation have
 * them for what they have drawn. */
hpct_data_affine hpct_data_affine_rotation(double degrees, int height, int width);
hpct_data_affine hpct_data_affine_zoom(double factor, int height, int width);
hpct_data_affine hpct_data_affine_shear(double x, double y);
hpct_data_affine hpct_data_affine_translation(double right, double down);

/* `first` is applied to the picture, `then` to its result. */
hpct_data_affine hpct_data_affine_compose(const hpct_data_affine *first,
                                          const hpct_data_affine *then);

/* Buffers of one thread, kept from picture to picture. */
typedef struct hpct_data_affine_sampler hpct_data_affine_sampler;
hpct_status hpct_data_affine_sampler_new(hpct_data_affine_sampler **out);
void hpct_data_affine_sampler_free(hpct_data_affine_sampler *sampler);

/* In place; `before` is room for a picture of the same size. */
hpct_status hpct_data_affine_apply(hpct_data_affine_sampler *sampler, const hpct_data_affine *how,
                                   const hpct_data_canvas *canvas, float *before);

/* ---- loops for each instruction set ---- */

/* Per cell of a row of the result: its four neighbours' indices in the picture, and weights of the
 * right and the lower ones. */
typedef struct hpct_data_affine_row {
    int32_t *top_left, *top_right, *bottom_left, *bottom_right;
    float *right, *lower;
} hpct_data_affine_row;

/* The line of the picture that a row is taken from: cell i is at (x + i dx, y + i dy). */
typedef struct hpct_data_affine_line {
    float x, y, dx, dy;
    int height, width, channels;
} hpct_data_affine_line;

typedef struct hpct_data_affine_loops {
    const char *name;
    bool (*supported)(void);
    void (*locate)(const hpct_data_affine_line *line, const hpct_data_affine_row *row);
    void (*sample)(const hpct_data_affine_line *line, const hpct_data_affine_row *row,
                   const float *src, float *dst);
} hpct_data_affine_loops;

/* Fastest first; the last one runs on every processor. NULL-terminated. */
extern const hpct_data_affine_loops *const hpct_data_affine_variants[];

/* Makes the sampler use these loops; for tests and measurements. */
void hpct_data_affine_sampler_use(hpct_data_affine_sampler *sampler,
                                  const hpct_data_affine_loops *loops);

#endif
