/* RandAugment: what is drawn for a sample, and applying it. */
#include "agent/data/rand_augment.h"

#include "agent/data/colour.h"
#include "agent/data/draws.h"
#include "base/status.h"

/* As RandomPosterization(max(1, int(8 * strength))): from 1 to one less than that. */
static int posterization_bits(hpct_data_draws *draws, double strength)
{
    int most = (int) (8 * strength);
    return most > 1 ? 1 + (int) hpct_data_draws_below(draws, (uint32_t) most - 1) : 1;
}

/* What is drawn: so many numbers, uniform from `from` to from + reach * strength. */
static const struct {
    int numbers;
    double from, reach;
} ranges[HPCT_DATA_RAND_OPERATIONS] = {
    [HPCT_DATA_RAND_SHEAR] = {2, 0, 1},
    [HPCT_DATA_RAND_TRANSLATION] = {2, 0, 1},
    [HPCT_DATA_RAND_ROTATION] = {1, 0, 360},
    [HPCT_DATA_RAND_BRIGHTNESS] = {1, 0, 255},
    [HPCT_DATA_RAND_COLOR_DEGENERATION] = {1, 0, 1},
    [HPCT_DATA_RAND_CONTRAST] = {1, 1, 1},
    [HPCT_DATA_RAND_SHARPNESS] = {1, 0, 1},
    [HPCT_DATA_RAND_SOLARIZATION] = {2, 0, 255},
};

hpct_data_rand_draw hpct_data_rand_draw_for(uint64_t sample_bits,
                                            hpct_data_rand_operation operation, double strength)
{
    hpct_data_draws draws =
        hpct_data_draws_for(sample_bits, HPCT_DATA_DRAW_OPERATION + (int) operation);
    hpct_data_rand_draw out = {.operation = operation};
    double low = ranges[operation].from, high = low + ranges[operation].reach * strength, sign = 1;
    if (operation == HPCT_DATA_RAND_POSTERIZATION)
        out.a = posterization_bits(&draws, strength);
    if (operation == HPCT_DATA_RAND_SHEAR)
        sign = hpct_data_draws_uniform(&draws, 0, 1) > 0.5 ? -1 : 1;
    if (ranges[operation].numbers > 0)
        out.a = sign * hpct_data_draws_uniform(&draws, low, high);
    if (ranges[operation].numbers > 1)
        out.b = sign * hpct_data_draws_uniform(&draws, low, high);
    return out;
}

void hpct_data_rand_augment_draw(uint64_t sample_bits, int count, double strength,
                                 hpct_data_rand_draw *draws)
{
    hpct_data_draws which = hpct_data_draws_for(sample_bits, HPCT_DATA_DRAW_OPERATIONS);
    for (int i = 0; i < count; i++)
        draws[i] = hpct_data_rand_draw_for(
            sample_bits,
            (hpct_data_rand_operation) hpct_data_draws_below(&which, HPCT_DATA_RAND_OPERATIONS),
            strength);
}

static hpct_data_affine geometry_of(const hpct_data_rand_draw *draw, const hpct_data_canvas *canvas)
{
    if (draw->operation == HPCT_DATA_RAND_SHEAR)
        return hpct_data_affine_shear(draw->a, draw->b);
    if (draw->operation == HPCT_DATA_RAND_TRANSLATION)
        return hpct_data_affine_translation(draw->a * canvas->width, draw->b * canvas->height);
    return hpct_data_affine_rotation(draw->a, canvas->height, canvas->width);
}

hpct_status hpct_data_rand_augment_apply(hpct_data_affine_sampler *sampler,
                                         const hpct_data_rand_draw *draw,
                                         const hpct_data_canvas *canvas, float *room)
{
    hpct_data_affine geometry = geometry_of(draw, canvas);
    switch (draw->operation) {
    case HPCT_DATA_RAND_SHEAR:
    case HPCT_DATA_RAND_TRANSLATION:
    case HPCT_DATA_RAND_ROTATION:
        return hpct_data_affine_apply(sampler, &geometry, canvas, room);
    case HPCT_DATA_RAND_BRIGHTNESS:
        hpct_data_colour_brightness(canvas, draw->a);
        break;
    case HPCT_DATA_RAND_COLOR_DEGENERATION:
        hpct_data_colour_degeneration(canvas, draw->a);
        break;
    case HPCT_DATA_RAND_CONTRAST:
        hpct_data_colour_contrast(canvas, draw->a);
        break;
    case HPCT_DATA_RAND_SHARPNESS:
        hpct_data_colour_sharpness(canvas, draw->a, room);
        break;
    case HPCT_DATA_RAND_POSTERIZATION:
        hpct_data_colour_posterization(canvas, (int) draw->a);
        break;
    case HPCT_DATA_RAND_SOLARIZATION:
        hpct_data_colour_solarization(canvas, draw->a, draw->b);
        break;
    case HPCT_DATA_RAND_AUTO_CONTRAST:
        hpct_data_colour_auto_contrast(canvas);
        break;
    case HPCT_DATA_RAND_EQUALIZATION:
        hpct_data_colour_equalization(canvas);
        break;
    case HPCT_DATA_RAND_OPERATIONS:
        break;
    }
    return HPCT_OK;
}
