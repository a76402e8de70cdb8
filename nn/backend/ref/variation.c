/* RANDOM_FLIP, RANDOM_AFFINE and RANDOM_TONE of one sample [h][w][channels]. */
#include "nn/backend/ref/kernels.h"

/* A cell's value, or the one for outside. */
static double value_at(const hpct_graph_picture *p, const hpct_ref_real *src, int y, int x, int c)
{
    size_t cell = (size_t) y * (size_t) p->in_w + (size_t) x;
    return y < 0 || x < 0 ? (double) p->variation.fill_value
                          : (double) src[cell * (size_t) p->channels + (size_t) c];
}

void HPCT_REF(affine)(const hpct_graph_picture *p, const uint32_t *words, const hpct_ref_real *src,
                      hpct_ref_real *dst)
{
    const hpct_graph_variation *v = &p->variation;
    hpct_graph_cell_map map = hpct_graph_vary_map(v, words, p->in_h, p->in_w);
    for (int y = 0; y < p->in_h; y++) {
        for (int x = 0; x < p->in_w; x++) {
            hpct_graph_two_cells across =
                hpct_graph_cells_at(v, map.xx * x + map.xy * y + map.x0, p->in_w);
            hpct_graph_two_cells down =
                hpct_graph_cells_at(v, map.yx * x + map.yy * y + map.y0, p->in_h);
            double right = (double) across.part, lower = (double) down.part;
            for (int c = 0; c < p->channels; c++) {
                double top = (1 - right) * value_at(p, src, down.low, across.low, c) +
                             right * value_at(p, src, down.low, across.high, c);
                double bottom = (1 - right) * value_at(p, src, down.high, across.low, c) +
                                right * value_at(p, src, down.high, across.high, c);
                *dst++ = (hpct_ref_real) ((1 - lower) * top + lower * bottom);
            }
        }
    }
}

void HPCT_REF(tone)(const hpct_graph_picture *p, const uint32_t *words, const hpct_ref_real *src,
                    hpct_ref_real *dst)
{
    const hpct_graph_variation *v = &p->variation;
    hpct_graph_tone tone = hpct_graph_vary_tone(v, words);
    size_t cells = (size_t) p->in_h * (size_t) p->in_w, step = (size_t) p->channels;
    for (size_t c = 0; c < step; c++) {
        double sum = 0;
        for (size_t i = 0; v->kind == HPCT_GRAPH_VARY_CONTRAST && i < cells; i++)
            sum += (double) src[i * step + c];
        float mean = (float) (sum / (double) cells);
        for (size_t i = 0; i < cells; i++)
            dst[i * step + c] =
                (hpct_ref_real) hpct_graph_vary_value(v, tone, mean, (float) src[i * step + c]);
    }
}
