/* AveragePooling2D: the mean over the cells of a window inside the image. */
#include "nn/backend/ref/kernels.h"

#include <string.h>

/* Intersection of a window and the input: rows [top, bottom), columns [left, right). */
typedef struct part {
    int top, bottom, left, right;
} part;

static part part_of(const hpct_graph_window *w, int i, int j)
{
    int y = i * w->stride_h - w->pad_top, x = j * w->stride_w - w->pad_left;
    return (part){
        .top = y > 0 ? y : 0,
        .bottom = y + w->kernel_h < w->in_h ? y + w->kernel_h : w->in_h,
        .left = x > 0 ? x : 0,
        .right = x + w->kernel_w < w->in_w ? x + w->kernel_w : w->in_w,
    };
}

static double cells_of(const part *p)
{
    return (double) (p->bottom - p->top) * (p->right - p->left);
}

static size_t src_at(const hpct_graph_window *w, int s, int y, int x)
{
    return (((size_t) s * (size_t) w->in_h + (size_t) y) * (size_t) w->in_w + (size_t) x) *
           (size_t) w->in_c;
}

static size_t dst_at(const hpct_graph_window *w, int s, int i, int j)
{
    return (((size_t) s * (size_t) w->out_h + (size_t) i) * (size_t) w->out_w + (size_t) j) *
           (size_t) w->in_c;
}

static double mean(const hpct_graph_window *w, const hpct_ref_real *src, int s, int i, int j, int c)
{
    part p = part_of(w, i, j);
    double sum = 0;
    for (int y = p.top; y < p.bottom; y++)
        for (int x = p.left; x < p.right; x++)
            sum += (double) src[src_at(w, s, y, x) + (size_t) c];
    return sum / cells_of(&p);
}

void HPCT_REF(average_pool2d_forward)(const hpct_graph_window *w, int n, const hpct_ref_real *src,
                                      hpct_ref_real *dst)
{
    for (int s = 0; s < n; s++)
        for (int i = 0; i < w->out_h; i++)
            for (int j = 0; j < w->out_w; j++)
                for (int c = 0; c < w->in_c; c++)
                    dst[dst_at(w, s, i, j) + (size_t) c] = (hpct_ref_real) mean(w, src, s, i, j, c);
}

static void spread(const hpct_graph_window *w, const hpct_ref_real *diff_dst, int s, int i, int j,
                   hpct_ref_real *diff_src)
{
    part p = part_of(w, i, j);
    const hpct_ref_real *diff = diff_dst + dst_at(w, s, i, j);
    for (int y = p.top; y < p.bottom; y++)
        for (int x = p.left; x < p.right; x++)
            for (int c = 0; c < w->in_c; c++)
                diff_src[src_at(w, s, y, x) + (size_t) c] +=
                    (hpct_ref_real) ((double) diff[c] / cells_of(&p));
}

void HPCT_REF(average_pool2d_backward)(const hpct_graph_window *w, int n,
                                       const hpct_ref_real *diff_dst, hpct_ref_real *diff_src)
{
    memset(diff_src, 0, src_at(w, n, 0, 0) * sizeof *diff_src);
    for (int s = 0; s < n; s++)
        for (int i = 0; i < w->out_h; i++)
            for (int j = 0; j < w->out_w; j++)
                spread(w, diff_dst, s, i, j, diff_src);
}
