/* Augmentation of one picture. */
#include "agent/data/augment.h"

#include "agent/data/colour.h"
#include "agent/data/draws.h"
#include "base/status.h"

/* False for what is not a number, too. */
static bool is_within(double x, double most)
{
    return x >= 0 && x <= most;
}

hpct_status hpct_data_augment_check(const hpct_dataset_options *o)
{
    if (!is_within(o->rotation, 1) || !is_within(o->zoom, 1) || !is_within(o->translation, 1) ||
        !is_within(o->contrast, 1) || !is_within(o->rand_augment_factor, 1))
        return hpct_fail(HPCT_ERR_USAGE, "rotation, zoom, translation, contrast and the strength "
                                         "of rand-augment are from 0 to 1");
    if (o->rand_augment < 0 || o->rand_augment > HPCT_DATA_RAND_AUGMENT_MOST)
        return hpct_fail(HPCT_ERR_USAGE, "rand-augment makes 0 to %d operations, not %d",
                         HPCT_DATA_RAND_AUGMENT_MOST, o->rand_augment);
    if (!is_within(o->mixup, 100) || !is_within(o->cutmix, 100))
        return hpct_fail(HPCT_ERR_USAGE, "mixup and cutmix are from 0 to 100");
    return HPCT_OK;
}

bool hpct_data_augment_mixes(const hpct_dataset_options *options)
{
    return options->mixup > 0 || options->cutmix > 0;
}

bool hpct_data_augment_is_deep(const hpct_dataset_options *o)
{
    return o->rotation > 0 || o->zoom > 0 || o->translation > 0 || o->contrast > 0 ||
           o->rand_augment > 0 || hpct_data_augment_mixes(o);
}

/* Uniform around `middle`. */
static double around(uint64_t sample_bits, hpct_data_purpose purpose, double middle, double reach)
{
    hpct_data_draws draws = hpct_data_draws_for(sample_bits, (int) purpose);
    return hpct_data_draws_uniform(&draws, middle - reach, middle + reach);
}

/* By parts of width and height. */
static hpct_data_affine draw_translation(uint64_t sample_bits, double reach, int height, int width)
{
    hpct_data_draws draws = hpct_data_draws_for(sample_bits, HPCT_DATA_DRAW_TRANSLATION);
    double down = hpct_data_draws_uniform(&draws, -reach, reach);
    double right = hpct_data_draws_uniform(&draws, -reach, reach);
    return hpct_data_affine_translation(right * width, down * height);
}

void hpct_data_augment_draw(const hpct_dataset_options *o, uint64_t sample_bits, int height,
                            int width, hpct_data_augmentation *out)
{
    *out = (hpct_data_augmentation){.moves = o->rotation > 0 || o->zoom > 0 || o->translation > 0,
                                    .geometry = HPCT_DATA_AFFINE_IDENTITY,
                                    .contrast = 1,
                                    .count = o->rand_augment};
    if (o->rotation > 0)
        out->geometry = hpct_data_affine_rotation(
            around(sample_bits, HPCT_DATA_DRAW_ROTATION, 0, 360 * o->rotation), height, width);
    if (o->zoom > 0) {
        hpct_data_affine zoom = hpct_data_affine_zoom(
            around(sample_bits, HPCT_DATA_DRAW_ZOOM, 1, o->zoom), height, width);
        out->geometry = hpct_data_affine_compose(&out->geometry, &zoom);
    }
    if (o->translation > 0) {
        hpct_data_affine shift = draw_translation(sample_bits, o->translation, height, width);
        out->geometry = hpct_data_affine_compose(&out->geometry, &shift);
    }
    if (o->contrast > 0)
        out->contrast = around(sample_bits, HPCT_DATA_DRAW_CONTRAST, 1, o->contrast);
    hpct_data_rand_augment_draw(sample_bits, out->count, o->rand_augment_factor, out->operations);
}

hpct_status hpct_data_augment_apply(hpct_data_affine_sampler *sampler,
                                    const hpct_data_augmentation *how,
                                    const hpct_data_canvas *canvas, float *room)
{
    if (how->moves)
        HPCT_TRY(hpct_data_affine_apply(sampler, &how->geometry, canvas, room));
    if (how->contrast != 1)
        hpct_data_colour_contrast(canvas, how->contrast);
    for (int i = 0; i < how->count; i++)
        HPCT_TRY(hpct_data_rand_augment_apply(sampler, &how->operations[i], canvas, room));
    return HPCT_OK;
}
