/* MaxPool2D. Backward searches the maximum again. */
#include "nn/backend/ref/kernels.h"

#include <string.h>

static size_t cell_at(int s, int h, int w, int c, int y, int x, int k)
{
    return (((size_t) s * (size_t) h + (size_t) y) * (size_t) w + (size_t) x) * (size_t) c +
           (size_t) k;
}

#define PADDING (SIZE_MAX - 1)

static hpct_ref_real value_at(const hpct_ref_real *src, size_t at)
{
    return at == PADDING ? 0 : src[at];
}

/* Index in src of a window's first maximum, or PADDING if that is a zero of the padding. Every
 * window overlaps the input. */
static size_t largest(const hpct_graph_window *w, const hpct_ref_real *src, int s, int i, int j,
                      int c)
{
    size_t best = SIZE_MAX;
    for (int u = 0; u < w->kernel_h; u++) {
        for (int v = 0; v < w->kernel_w; v++) {
            int y = i * w->stride_h + u - w->pad_top, x = j * w->stride_w + v - w->pad_left;
            bool outside = y < 0 || y >= w->in_h || x < 0 || x >= w->in_w;
            if (outside && !w->pad_zeros)
                continue;
            size_t at = outside ? PADDING : cell_at(s, w->in_h, w->in_w, w->in_c, y, x, c);
            if (best == SIZE_MAX || value_at(src, at) > value_at(src, best))
                best = at;
        }
    }
    return best;
}

void HPCT_REF(max_pool2d_forward)(const hpct_graph_window *w, int n, const hpct_ref_real *src,
                                  hpct_ref_real *dst)
{
    for (int s = 0; s < n; s++)
        for (int i = 0; i < w->out_h; i++)
            for (int j = 0; j < w->out_w; j++)
                for (int c = 0; c < w->out_c; c++)
                    dst[cell_at(s, w->out_h, w->out_w, w->out_c, i, j, c)] =
                        value_at(src, largest(w, src, s, i, j, c));
}

void HPCT_REF(max_pool2d_backward)(const hpct_graph_window *w, int n, const hpct_ref_real *src,
                                   const hpct_ref_real *diff_dst, hpct_ref_real *diff_src)
{
    memset(diff_src, 0, cell_at(n, w->in_h, w->in_w, w->in_c, 0, 0, 0) * sizeof *diff_src);
    for (int s = 0; s < n; s++)
        for (int i = 0; i < w->out_h; i++)
            for (int j = 0; j < w->out_w; j++)
                for (int c = 0; c < w->out_c; c++) {
                    size_t at = largest(w, src, s, i, j, c);
                    if (at != PADDING)
                        diff_src[at] += diff_dst[cell_at(s, w->out_h, w->out_w, w->out_c, i, j, c)];
                }
}
