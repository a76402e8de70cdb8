/* RandomFlip, RandomRotation, RandomZoom, RandomTranslation (RANDOM_AFFINE), RandomContrast and
 * RandomBrightness (RANDOM_TONE). */
#include "nn/backend/cpu/cpu.h"

#include "nn/backend/cpu/loops.h"

#include <string.h>

typedef struct job {
    const hpct_op *op;
    const hpct_op_call *call;
} job;

/* ---- RANDOM_FLIP ---- */

static void flip_row(const hpct_graph_picture *p, bool flips, int y, const float *src, float *dst)
{
    int from = flips && p->variation.vertical ? p->in_h - 1 - y : y, channels = p->channels;
    src += (size_t) from * (size_t) p->in_w * (size_t) channels;
    if (!flips || !p->variation.horizontal) {
        memcpy(dst, src, (size_t) p->in_w * (size_t) channels * sizeof *dst);
        return;
    }
    for (int x = 0; x < p->in_w; x++)
        for (int c = 0; c < channels; c++)
            dst[x * channels + c] = src[(p->in_w - 1 - x) * channels + c];
}

/* ---- RANDOM_AFFINE ---- */

/* The four neighbours of a point, NULL outside of the image, and the weights of the right and the
 * lower ones. */
typedef struct corners {
    const float *top_left, *top_right, *low_left, *low_right;
    float right, lower;
} corners;

static const float *cell_at(const hpct_graph_picture *p, const float *src, int y, int x)
{
    size_t cell = (size_t) y * (size_t) p->in_w + (size_t) x;
    return y < 0 || x < 0 ? NULL : src + cell * (size_t) p->channels;
}

static corners corners_of(const hpct_graph_picture *p, const float *src, double y, double x)
{
    hpct_graph_two_cells down = hpct_graph_cells_at(&p->variation, y, p->in_h),
                         across = hpct_graph_cells_at(&p->variation, x, p->in_w);
    return (corners){.top_left = cell_at(p, src, down.low, across.low),
                     .top_right = cell_at(p, src, down.low, across.high),
                     .low_left = cell_at(p, src, down.high, across.low),
                     .low_right = cell_at(p, src, down.high, across.high),
                     .right = across.part,
                     .lower = down.part};
}

static inline float value_of(const hpct_graph_picture *p, const float *cell, int channel)
{
    return cell == NULL ? p->variation.fill_value : cell[channel];
}

static void move_row(const hpct_graph_picture *p, const uint32_t *words, int y, const float *src,
                     float *dst)
{
    hpct_graph_cell_map map = hpct_graph_vary_map(&p->variation, words, p->in_h, p->in_w);
    for (int x = 0; x < p->in_w; x++) {
        corners k =
            corners_of(p, src, map.yx * x + map.yy * y + map.y0, map.xx * x + map.xy * y + map.x0);
        for (int c = 0; c < p->channels; c++) {
            float top =
                (1 - k.right) * value_of(p, k.top_left, c) + k.right * value_of(p, k.top_right, c);
            float low =
                (1 - k.right) * value_of(p, k.low_left, c) + k.right * value_of(p, k.low_right, c);
            *dst++ = (1 - k.lower) * top + k.lower * low;
        }
    }
}

/* Rows are numbered over the whole batch. */
static void move_rows(size_t first, size_t count, void *arg)
{
    const job *j = arg;
    const hpct_graph_picture *p = &j->op->spec.picture;
    size_t height = (size_t) p->in_h, row_floats = (size_t) p->in_w * (size_t) p->channels;
    for (size_t row = first; row < first + count; row++) {
        int y = (int) (row % height);
        const float *src = j->call->src[0] + row / height * height * row_floats;
        float *dst = j->call->dst + row * row_floats;
        uint32_t words[4];
        hpct_op_draw_words(j->op, j->call, row / height, words);
        if (p->variation.kind == HPCT_GRAPH_VARY_FLIP)
            flip_row(p, hpct_graph_vary_flips(words), y, src, dst);
        else
            move_row(p, words, y, src, dst);
    }
}

/* ---- RANDOM_TONE ---- */

static void tone_channel(const hpct_graph_picture *p, hpct_graph_tone tone, const float *src,
                         float *dst)
{
    size_t cells = (size_t) p->in_h * (size_t) p->in_w, step = (size_t) p->channels;
    double sum = 0;
    for (size_t i = 0; p->variation.kind == HPCT_GRAPH_VARY_CONTRAST && i < cells; i++)
        sum += (double) src[i * step];
    float mean = (float) (sum / (double) cells);
    for (size_t i = 0; i < cells; i++)
        dst[i * step] = hpct_graph_vary_value(&p->variation, tone, mean, src[i * step]);
}

static void tone_samples(size_t first, size_t count, void *arg)
{
    const job *j = arg;
    const hpct_graph_picture *p = &j->op->spec.picture;
    size_t floats = hpct_op_dst_floats(&j->op->spec);
    for (size_t s = first; s < first + count; s++) {
        uint32_t words[4];
        hpct_op_draw_words(j->op, j->call, s, words);
        hpct_graph_tone tone = hpct_graph_vary_tone(&p->variation, words);
        for (int c = 0; c < p->channels; c++)
            tone_channel(p, tone, j->call->src[0] + s * floats + c, j->call->dst + s * floats + c);
    }
}

static hpct_status forward(hpct_op *op, const hpct_op_call *call)
{
    job j = {.op = op, .call = call};
    size_t n = (size_t) call->n;
    if (!call->training)
        memcpy(call->dst, call->src[0], n * hpct_op_dst_floats(&op->spec) * sizeof *call->dst);
    else if (op->spec.kind == HPCT_OP_RANDOM_TONE)
        hpct_cpu_loops_split(n, 1, tone_samples, &j);
    else
        hpct_cpu_loops_split(n * (size_t) op->spec.picture.in_h, 16, move_rows, &j);
    return HPCT_OK;
}

hpct_status hpct_cpu_make_variation(hpct_op **out, const hpct_op_spec *spec,
                                    const hpct_op_build *build)
{
    static const hpct_op_class class = {.forward = forward, .destroy = hpct_op_free};
    return hpct_op_new(out, sizeof **out, &class, spec, build);
}
