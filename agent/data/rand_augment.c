/* RandAugment: what is drawn for a sample, and applying it. */
#include "agent/data/rand_augment.h"

#include "agent/data/colour.h"
#include "agent/data/draws.h"
#include "base/status.h"

/* As RandomPosterization(max(1, int(8 * strength))): from 1 to one less than that. */
static int posterization_bits(hpct_draws *draws, double strength)
{
    int most = (int) (8 * strength);
    return most > 1 ? 1 + (int) hpct_draws_below(draws, (uint32_t) most - 1) : 1;
}

hpct_rand_draw hpct_rand_draw_for(uint64_t sample_bits, hpct_rand_operation operation,
                                  double strength)
{
    hpct_draws draws = hpct_draws_for(sample_bits, HPCT_DRAW_OPERATION + (int) operation);
    hpct_rand_draw out = {.operation = operation};
    double sign = 1;
    switch (operation) {
    case HPCT_RAND_SHEAR:
        sign = hpct_draws_uniform(&draws, 0, 1) > 0.5 ? -1 : 1;
        __attribute__((fallthrough));
    case HPCT_RAND_TRANSLATION:
        out.a = sign * hpct_draws_uniform(&draws, 0, strength);
        out.b = sign * hpct_draws_uniform(&draws, 0, strength);
        break;
    case HPCT_RAND_ROTATION:
        out.a = hpct_draws_uniform(&draws, 0, 360 * strength);
        break;
    case HPCT_RAND_BRIGHTNESS:
        out.a = hpct_draws_uniform(&draws, 0, 255 * strength);
        break;
    case HPCT_RAND_COLOR_DEGENERATION:
    case HPCT_RAND_SHARPNESS:
        out.a = hpct_draws_uniform(&draws, 0, strength);
        break;
    case HPCT_RAND_CONTRAST:
        out.a = hpct_draws_uniform(&draws, 1, 1 + strength);
        break;
    case HPCT_RAND_POSTERIZATION:
        out.a = posterization_bits(&draws, strength);
        break;
    case HPCT_RAND_SOLARIZATION:
        out.a = hpct_draws_uniform(&draws, 0, 255 * strength);
        out.b = hpct_draws_uniform(&draws, 0, 255 * strength);
        break;
    case HPCT_RAND_AUTO_CONTRAST:
    case HPCT_RAND_EQUALIZATION:
    case HPCT_RAND_OPERATIONS:
        break;
    }
    return out;
}

void hpct_rand_augment_draw(uint64_t sample_bits, int count, double strength, hpct_rand_draw *draws)
{
    hpct_draws which = hpct_draws_for(sample_bits, HPCT_DRAW_OPERATIONS);
    for (int i = 0; i < count; i++)
        draws[i] = hpct_rand_draw_for(
            sample_bits, (hpct_rand_operation) hpct_draws_below(&which, HPCT_RAND_OPERATIONS),
            strength);
}

static hpct_affine geometry_of(const hpct_rand_draw *draw, const hpct_canvas *canvas)
{
    if (draw->operation == HPCT_RAND_SHEAR)
        return hpct_affine_shear(draw->a, draw->b);
    if (draw->operation == HPCT_RAND_TRANSLATION)
        return hpct_affine_translation(draw->a * canvas->width, draw->b * canvas->height);
    return hpct_affine_rotation(draw->a, canvas->height, canvas->width);
}

hpct_status hpct_rand_augment_apply(hpct_affine_sampler *sampler, const hpct_rand_draw *draw,
                                    const hpct_canvas *canvas, float *room)
{
    hpct_affine geometry = geometry_of(draw, canvas);
    switch (draw->operation) {
    case HPCT_RAND_SHEAR:
    case HPCT_RAND_TRANSLATION:
    case HPCT_RAND_ROTATION:
        return hpct_affine_apply(sampler, &geometry, canvas, room);
    case HPCT_RAND_BRIGHTNESS:
        hpct_colour_brightness(canvas, draw->a);
        break;
    case HPCT_RAND_COLOR_DEGENERATION:
        hpct_colour_degeneration(canvas, draw->a);
        break;
    case HPCT_RAND_CONTRAST:
        hpct_colour_contrast(canvas, draw->a);
        break;
    case HPCT_RAND_SHARPNESS:
        hpct_colour_sharpness(canvas, draw->a, room);
        break;
    case HPCT_RAND_POSTERIZATION:
        hpct_colour_posterization(canvas, (int) draw->a);
        break;
    case HPCT_RAND_SOLARIZATION:
        hpct_colour_solarization(canvas, draw->a, draw->b);
        break;
    case HPCT_RAND_AUTO_CONTRAST:
        hpct_colour_auto_contrast(canvas);
        break;
    case HPCT_RAND_EQUALIZATION:
        hpct_colour_equalization(canvas);
        break;
    case HPCT_RAND_OPERATIONS:
        break;
    }
    return HPCT_OK;
}
