/* ZeroPadding2D and Cropping2D. */
#include "nn/backend/ref/kernels.h"

#include <string.h>

/* The cells of one axis that are in both: the first in the source, and their number. */
static int shared(int in, int out, int before, int *first)
{
    int end = out - before < in ? out - before : in;
    *first = before < 0 ? -before : 0;
    return end - *first;
}

void HPCT_REF(pad2d_forward)(const hpct_graph_window *w, int n, const hpct_ref_real *src,
                             hpct_ref_real *dst)
{
    size_t cell = (size_t) w->in_c, row = (size_t) w->in_w * cell,
           out_row = (size_t) w->out_w * cell;
    int top, left, rows = shared(w->in_h, w->out_h, w->pad_top, &top),
                   columns = shared(w->in_w, w->out_w, w->pad_left, &left);
    memset(dst, 0, (size_t) n * (size_t) w->out_h * out_row * sizeof *dst);
    for (int s = 0; s < n; s++, src += (size_t) w->in_h * row, dst += (size_t) w->out_h * out_row)
        for (int y = top; y < top + rows; y++)
            memcpy(dst + (size_t) (y + w->pad_top) * out_row + (size_t) (left + w->pad_left) * cell,
                   src + (size_t) y * row + (size_t) left * cell,
                   (size_t) columns * cell * sizeof *dst);
}

void HPCT_REF(pad2d_backward)(const hpct_graph_window *w, int n, const hpct_ref_real *diff_dst,
                              bool add, hpct_ref_real *diff_src)
{
    size_t cell = (size_t) w->in_c, row = (size_t) w->in_w * cell,
           out_row = (size_t) w->out_w * cell;
    int top, left, rows = shared(w->in_h, w->out_h, w->pad_top, &top),
                   columns = shared(w->in_w, w->out_w, w->pad_left, &left);
    bool crops = rows < w->in_h || columns < w->in_w;
    if (crops && !add)
        memset(diff_src, 0, (size_t) n * (size_t) w->in_h * row * sizeof *diff_src);
    for (int s = 0; s < n; s++) {
        for (int y = top; y < top + rows; y++) {
            hpct_ref_real *to = diff_src + ((size_t) s * (size_t) w->in_h + (size_t) y) * row +
                                (size_t) left * cell;
            const hpct_ref_real *from =
                diff_dst + ((size_t) s * (size_t) w->out_h + (size_t) (y + w->pad_top)) * out_row +
                (size_t) (left + w->pad_left) * cell;
            for (size_t i = 0; i < (size_t) columns * cell; i++)
                to[i] = add ? to[i] + from[i] : from[i];
        }
    }
}
