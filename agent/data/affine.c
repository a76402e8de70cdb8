/* Affine transforms: matrices as Keras' layers make them, and one sampler for all. */
#include "agent/data/affine.h"

#include "base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A coordinate reflected into the picture, as TensorFlow's ImageProjectiveTransformV3 does it in
 * mode REFLECT, in single precision like it. */
static inline float reflected(float at, float length)
{
    float period = 2 * length;
    float before = at + period * (float) (int) (-at / period); /* in (-period, 0] for at < 0 */
    float after = at - period * (float) (int) (at / period);   /* in [0, period) for at >= 0 */
    float low = before < -length ? before + period : -before - 1;
    float high = after >= length ? period - after - 1 : after;
    float inside = at < 0 ? low : at > length - 1 ? high : at;
    inside = inside < 0 ? 0 : inside;
    return inside > length - 1 ? length - 1 : inside;
}

#define HPCT_BODY "agent/data/affine_body.h"
#include "base/variants.h"

const hpct_data_affine_loops *const hpct_data_affine_variants[] = {HPCT_VARIANTS(loops)};

/* ---- matrices ---- */

hpct_data_affine hpct_data_affine_rotation(double degrees, int height, int width)
{
    double angle = degrees * M_PI / 180, c = cos(angle), s = sin(angle);
    double x = (width - 1) / 2.0, y = (height - 1) / 2.0;
    return (hpct_data_affine){
        .xx = c, .xy = -s, .x0 = x - x * c + y * s, .yx = s, .yy = c, .y0 = y - x * s - y * c};
}

hpct_data_affine hpct_data_affine_zoom(double factor, int height, int width)
{
    return (hpct_data_affine){.xx = factor,
                              .x0 = (width - 1) / 2.0 * (1 - factor),
                              .yy = factor,
                              .y0 = (height - 1) / 2.0 * (1 - factor)};
}

hpct_data_affine hpct_data_affine_shear(double x, double y)
{
    return (hpct_data_affine){.xx = 1, .xy = x, .yx = y, .yy = 1};
}

hpct_data_affine hpct_data_affine_translation(double right, double down)
{
    return (hpct_data_affine){.xx = 1, .x0 = -right, .yy = 1, .y0 = -down};
}

/* A transform maps cells of the result to the picture, so the last one maps first. */
hpct_data_affine hpct_data_affine_compose(const hpct_data_affine *first,
                                          const hpct_data_affine *then)
{
    const hpct_data_affine *f = first, *t = then;
    return (hpct_data_affine){
        .xx = f->xx * t->xx + f->xy * t->yx,
        .xy = f->xx * t->xy + f->xy * t->yy,
        .x0 = f->xx * t->x0 + f->xy * t->y0 + f->x0,
        .yx = f->yx * t->xx + f->yy * t->yx,
        .yy = f->yx * t->xy + f->yy * t->yy,
        .y0 = f->yx * t->x0 + f->yy * t->y0 + f->y0,
    };
}

/* ---- the sampler ---- */

struct hpct_data_affine_sampler {
    const hpct_data_affine_loops *loops;
    hpct_data_affine_row row;
    int32_t *memory; /* of the row */
    int width;       /* that it has room for */
};

hpct_status hpct_data_affine_sampler_new(hpct_data_affine_sampler **out)
{
    hpct_data_affine_sampler *sampler = calloc(1, sizeof *sampler);
    if (sampler == NULL)
        return hpct_fail_memory(sizeof *sampler);
    int best = 0;
    while (!hpct_data_affine_variants[best]->supported())
        best++;
    sampler->loops = hpct_data_affine_variants[best];
    *out = sampler;
    return HPCT_OK;
}

void hpct_data_affine_sampler_use(hpct_data_affine_sampler *sampler,
                                  const hpct_data_affine_loops *loops)
{
    sampler->loops = loops;
}

void hpct_data_affine_sampler_free(hpct_data_affine_sampler *sampler)
{
    if (sampler == NULL)
        return;
    free(sampler->memory);
    free(sampler);
}

static hpct_status make_room(hpct_data_affine_sampler *s, int width)
{
    size_t count = ((size_t) width + 15) & ~(size_t) 15;
    if (width <= s->width)
        return HPCT_OK;
    free(s->memory);
    s->width = 0;
    s->memory = aligned_alloc(64, 6 * count * sizeof *s->memory);
    if (s->memory == NULL)
        return hpct_fail_memory(6 * count * sizeof *s->memory);
    float *weights = (float *) (void *) (s->memory + 4 * count);
    s->row = (hpct_data_affine_row){.top_left = s->memory,
                                    .top_right = s->memory + count,
                                    .bottom_left = s->memory + 2 * count,
                                    .bottom_right = s->memory + 3 * count,
                                    .right = weights,
                                    .lower = weights + count};
    s->width = width;
    return HPCT_OK;
}

hpct_status hpct_data_affine_apply(hpct_data_affine_sampler *sampler, const hpct_data_affine *how,
                                   const hpct_data_canvas *canvas, float *before)
{
    HPCT_TRY(make_room(sampler, canvas->width));
    hpct_data_affine_line line = {.dx = (float) how->xx,
                                  .dy = (float) how->yx,
                                  .height = canvas->height,
                                  .width = canvas->width,
                                  .channels = canvas->channels};
    size_t stride = (size_t) canvas->width * (size_t) canvas->channels;
    memcpy(before, canvas->values, hpct_data_canvas_floats(canvas) * sizeof *before);
    for (int y = 0; y < canvas->height; y++) {
        line.x = (float) (how->xy * y + how->x0);
        line.y = (float) (how->yy * y + how->y0);
        sampler->loops->locate(&line, &sampler->row);
        sampler->loops->sample(&line, &sampler->row, before, canvas->values + (size_t) y * stride);
    }
    return HPCT_OK;
}
