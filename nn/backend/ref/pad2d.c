/* ZeroPadding2D. */
#include "nn/backend/ref/kernels.h"

#include <string.h>

void HPCT_REF(pad2d_forward)(const hpct_window *w, int n, const hpct_real *src, hpct_real *dst)
{
    size_t row = (size_t) w->in_w * (size_t) w->in_c,
           out_row = (size_t) w->out_w * (size_t) w->in_c;
    memset(dst, 0, (size_t) n * (size_t) w->out_h * out_row * sizeof *dst);
    for (int s = 0; s < n; s++)
        for (int y = 0; y < w->in_h; y++, src += row)
            memcpy(dst + ((size_t) s * (size_t) w->out_h + (size_t) (y + w->pad_top)) * out_row +
                       (size_t) w->pad_left * (size_t) w->in_c,
                   src, row * sizeof *dst);
}

void HPCT_REF(pad2d_backward)(const hpct_window *w, int n, const hpct_real *diff_dst, bool add,
                              hpct_real *diff_src)
{
    size_t row = (size_t) w->in_w * (size_t) w->in_c,
           out_row = (size_t) w->out_w * (size_t) w->in_c;
    for (int s = 0; s < n; s++) {
        for (int y = 0; y < w->in_h; y++, diff_src += row) {
            const hpct_real *from =
                diff_dst + ((size_t) s * (size_t) w->out_h + (size_t) (y + w->pad_top)) * out_row +
                (size_t) w->pad_left * (size_t) w->in_c;
            for (size_t i = 0; i < row; i++)
                diff_src[i] = add ? diff_src[i] + from[i] : from[i];
        }
    }
}
