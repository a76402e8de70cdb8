/* MixUp and CutMix. */
#include "agent/data/mix.h"

#include "agent/data/draws.h"

#include <math.h>
#include <string.h>

void hpct_data_mixing_place(hpct_data_mixing *m, double across, double down, int height, int width)
{
    double ratio = sqrt(1 - (double) m->share), w = ratio * width, h = ratio * height;
    m->x0 = (float) (across * (width - w));
    m->y0 = (float) (down * (height - h));
    m->x1 = m->x0 + (float) w;
    m->y1 = m->y0 + (float) h;
    m->share = 1 - (m->x1 - m->x0) * (m->y1 - m->y0) / ((float) width * (float) height);
}

hpct_data_mixing hpct_data_mixing_draw(const hpct_dataset_options *options, uint64_t sample_bits,
                                       size_t size, int height, int width)
{
    hpct_data_draws draws = hpct_data_draws_for(sample_bits, HPCT_DATA_DRAW_MIX);
    hpct_data_mixing m = {.other = hpct_data_draws_below(&draws, (uint32_t) size)};
    bool one_of_two = hpct_data_draws_uniform(&draws, 0, 1) < 0.5;
    m.cut = options->cutmix > 0 && (options->mixup == 0 || one_of_two);
    m.share = (float) hpct_data_draws_beta(&draws, m.cut ? options->cutmix : options->mixup);
    if (m.cut) {
        double across = hpct_data_draws_uniform(&draws, 0, 1),
               down = hpct_data_draws_uniform(&draws, 0, 1);
        hpct_data_mixing_place(&m, across, down, height, width);
    }
    return m;
}

static void blend(size_t count, float share, const float *restrict other, float *restrict values)
{
#pragma omp simd
    for (size_t i = 0; i < count; i++)
        values[i] = share * values[i] + (1 - share) * other[i];
}

/* First cell at or behind a coordinate, at most `size`. */
static size_t cell(float at, int size)
{
    int first = (int) ceilf(at);
    return (size_t) (first < 0 ? 0 : first < size ? first : size);
}

void hpct_data_mixing_apply(const hpct_data_mixing *m, const hpct_data_canvas *canvas,
                            const float *other)
{
    if (!m->cut) {
        blend(hpct_data_canvas_floats(canvas), m->share, other, canvas->values);
        return;
    }
    size_t channels = (size_t) canvas->channels, stride = (size_t) canvas->width * channels;
    size_t left = cell(m->x0, canvas->width), right = cell(m->x1, canvas->width);
    size_t bottom = cell(m->y1, canvas->height);
    for (size_t y = cell(m->y0, canvas->height); y < bottom; y++) {
        size_t at = y * stride + left * channels;
        memcpy(canvas->values + at, other + at, (right - left) * channels * sizeof *other);
    }
}
