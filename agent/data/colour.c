/* Operations on the values of a picture. In single precision where rounding decides, as Keras. */
#include "agent/data/colour.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define WHITE 255.0f
#define BINS 256

static inline float clipped(float x)
{
    return x < 0 ? 0 : x > WHITE ? WHITE : x;
}

/* Every channel of a pixel in turn: cell i of channel c is values[i * step]. */
typedef struct channel {
    float *values;
    size_t count, step;
} channel;

static channel channel_of(const hpct_data_canvas *canvas, int c)
{
    return (channel){canvas->values + c, hpct_data_canvas_pixels(canvas),
                     (size_t) canvas->channels};
}

static void stretch(channel ch, float factor, float offset)
{
#pragma omp simd
    for (size_t i = 0; i < ch.count; i++)
        ch.values[i * ch.step] = clipped(ch.values[i * ch.step] * factor + offset);
}

void hpct_data_colour_contrast(const hpct_data_canvas *canvas, double factor)
{
    for (int c = 0; c < canvas->channels; c++) {
        channel ch = channel_of(canvas, c);
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (size_t i = 0; i < ch.count; i++)
            sum += (double) ch.values[i * ch.step];
        stretch(ch, (float) factor, (float) (sum / (double) ch.count * (1 - factor)));
    }
}

void hpct_data_colour_brightness(const hpct_data_canvas *canvas, double delta)
{
    float *values = canvas->values, by = (float) delta;
    size_t count = hpct_data_canvas_floats(canvas);
#pragma omp simd
    for (size_t i = 0; i < count; i++)
        values[i] = clipped(values[i] + by);
}

void hpct_data_colour_degeneration(const hpct_data_canvas *canvas, double factor)
{
    float part = (float) factor;
    size_t count = hpct_data_canvas_pixels(canvas);
    if (canvas->channels != 3)
        return; /* grey as it is */
#pragma omp simd
    for (size_t i = 0; i < count; i++) {
        float *x = canvas->values + 3 * i;
        float grey = 0.2989f * x[0] + 0.5870f * x[1] + 0.1140f * x[2];
        for (int c = 0; c < 3; c++)
            x[c] = clipped(x[c] + part * (grey - x[c]));
    }
}

/* Sum of the cells of a row, and of those left and right of it. */
static float sum_of_three(const hpct_data_canvas *canvas, const float *row, int x, int c)
{
    const float *at = row + (ptrdiff_t) x * canvas->channels + c;
    float sum = at[0];
    if (x > 0)
        sum += at[-canvas->channels];
    if (x + 1 < canvas->width)
        sum += at[canvas->channels];
    return sum;
}

void hpct_data_colour_sharpness(const hpct_data_canvas *canvas, double factor, float *before)
{
    const float part = 1 - (float) (2 * factor);
    const size_t stride = (size_t) canvas->width * (size_t) canvas->channels;
    memcpy(before, canvas->values, hpct_data_canvas_floats(canvas) * sizeof *before);
    for (int y = 0; y < canvas->height; y++) {
        const float *row = before + (size_t) y * stride;
        float *dst = canvas->values + (size_t) y * stride;
        for (size_t i = 0; i < stride; i++) {
            int x = (int) i / canvas->channels, c = (int) i % canvas->channels;
            float sum = sum_of_three(canvas, row, x, c) + 4 * row[i]; /* the centre counts 5 */
            if (y > 0)
                sum += sum_of_three(canvas, row - stride, x, c);
            if (y + 1 < canvas->height)
                sum += sum_of_three(canvas, row + stride, x, c);
            dst[i] = clipped(row[i] + part * (sum / 13 - row[i]));
        }
    }
}

void hpct_data_colour_posterization(const hpct_data_canvas *canvas, int bits)
{
    const int lost = 8 - bits;
    float *values = canvas->values;
    size_t count = hpct_data_canvas_floats(canvas);
#pragma omp simd
    for (size_t i = 0; i < count; i++)
        values[i] = (float) ((int) values[i] >> lost << lost);
}

void hpct_data_colour_solarization(const hpct_data_canvas *canvas, double addition,
                                   double threshold)
{
    const float by = (float) addition, from = (float) threshold;
    float *values = canvas->values;
    size_t count = hpct_data_canvas_floats(canvas);
#pragma omp simd
    for (size_t i = 0; i < count; i++) {
        float x = clipped(values[i] + by);
        values[i] = x < from ? x : WHITE - x;
    }
}

void hpct_data_colour_auto_contrast(const hpct_data_canvas *canvas)
{
    for (int c = 0; c < canvas->channels; c++) {
        channel ch = channel_of(canvas, c);
        float low = ch.values[0], high = low;
        for (size_t i = 1; i < ch.count; i++) {
            float x = ch.values[i * ch.step];
            low = x < low ? x : low;
            high = x > high ? x : high;
        }
        float scale = WHITE / (high - low);
        if (high > low) /* one value stays as it is */
            stretch(ch, scale, -low * scale);
    }
}

/* table[b]: value of bin b. False if all values are in one bin. */
static int make_table(const channel *ch, float *table)
{
    int64_t histogram[BINS] = {0}, total = (int64_t) ch->count, below = 0, first = 0;
    int used = 0;
    for (size_t i = 0; i < ch->count; i++)
        histogram[(int) (ch->values[i * ch->step] * (BINS - 1) / WHITE)]++;
    for (int b = 0; b < BINS; b++) {
        used += histogram[b] > 0;
        below += histogram[b];
        first = first == 0 ? below : first;
        double part = (double) (below - first) * 255 / (double) (total > first ? total - first : 1);
        table[b] = clipped((float) rint(part));
    }
    return used > 1;
}

void hpct_data_colour_equalization(const hpct_data_canvas *canvas)
{
    float table[BINS];
    for (int c = 0; c < canvas->channels; c++) {
        channel ch = channel_of(canvas, c);
        if (!make_table(&ch, table))
            continue;
        for (size_t i = 0; i < ch.count; i++) {
            float *x = &ch.values[i * ch.step];
            *x = table[(int) (*x / WHITE * (BINS - 1))];
        }
    }
}
