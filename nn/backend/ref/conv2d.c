/* Conv2D, directly from its definition. */
#include "nn/backend/ref/kernels.h"

/* Input row that kernel row u reads for output row i; out of range: padding. */
static int row_at(const hpct_graph_window *w, int i, int u)
{
    return i * w->stride_h + u * w->dilation_h - w->pad_top;
}

static int column_at(const hpct_graph_window *w, int j, int v)
{
    return j * w->stride_w + v * w->dilation_w - w->pad_left;
}

static size_t src_at(const hpct_graph_window *w, int s, int y, int x)
{
    return (((size_t) s * (size_t) w->in_h + (size_t) y) * (size_t) w->in_w + (size_t) x) *
           (size_t) w->in_c;
}

static size_t dst_at(const hpct_graph_window *w, int s, int i, int j)
{
    size_t cell = (size_t) (i * w->out_w + j - w->first_cell);
    return ((size_t) s * (size_t) hpct_graph_window_cells(w) + cell) * (size_t) w->out_c;
}

/* Whether the operation computes this output cell. */
static bool has_cell(const hpct_graph_window *w, int i, int j)
{
    int cell = i * w->out_w + j - w->first_cell;
    return cell >= 0 && cell < hpct_graph_window_cells(w);
}

/* `c`: input channel within the group. */
static size_t kernel_at(const hpct_graph_window *w, int u, int v, int c)
{
    return (((size_t) u * (size_t) w->kernel_w + (size_t) v) * (size_t) (w->in_c / w->groups) +
            (size_t) c) *
           (size_t) w->out_c;
}

/* First input channel of output channel o's group. */
static int first_channel(const hpct_graph_window *w, int o)
{
    return o / (w->out_c / w->groups) * (w->in_c / w->groups);
}

static bool inside(const hpct_graph_window *w, int y, int x)
{
    return y >= 0 && y < w->in_h && x >= 0 && x < w->in_w;
}

static double value_at(const hpct_graph_window *w, const hpct_ref_real *src,
                       const hpct_ref_real *kernel, int s, int i, int j, int o)
{
    double sum = 0;
    for (int u = 0; u < w->kernel_h; u++) {
        for (int v = 0; v < w->kernel_w; v++) {
            int y = row_at(w, i, u), x = column_at(w, j, v);
            if (!inside(w, y, x))
                continue;
            const hpct_ref_real *cell = src + src_at(w, s, y, x) + first_channel(w, o);
            for (int c = 0; c < w->in_c / w->groups; c++)
                sum += (double) cell[c] * (double) kernel[kernel_at(w, u, v, c) + (size_t) o];
        }
    }
    return sum;
}

void HPCT_REF(conv2d_forward)(const hpct_graph_window *w, int n, const hpct_ref_real *src,
                              const hpct_ref_real *kernel, const hpct_ref_real *bias,
                              hpct_ref_real *dst)
{
    for (int s = 0; s < n; s++)
        for (int i = 0; i < w->out_h; i++)
            for (int j = 0; j < w->out_w; j++)
                for (int o = 0; o < w->out_c && has_cell(w, i, j); o++)
                    dst[dst_at(w, s, i, j) + (size_t) o] =
                        (hpct_ref_real) ((bias != NULL ? (double) bias[o] : 0) +
                                         value_at(w, src, kernel, s, i, j, o));
}

/* Gradient of one input cell: over all output cells whose windows cover it. */
static double diff_at(const hpct_graph_window *w, const hpct_ref_real *diff_dst,
                      const hpct_ref_real *kernel, int s, int y, int x, int c)
{
    int group = c / (w->in_c / w->groups), outs = w->out_c / w->groups;
    double sum = 0;
    for (int u = 0; u < w->kernel_h; u++) {
        for (int v = 0; v < w->kernel_w; v++) {
            int i = y + w->pad_top - u * w->dilation_h, j = x + w->pad_left - v * w->dilation_w;
            if (i < 0 || j < 0 || i % w->stride_h != 0 || j % w->stride_w != 0)
                continue;
            i /= w->stride_h;
            j /= w->stride_w;
            if (i >= w->out_h || j >= w->out_w || !has_cell(w, i, j))
                continue;
            for (int o = group * outs; o < (group + 1) * outs; o++)
                sum += (double) diff_dst[dst_at(w, s, i, j) + (size_t) o] *
                       (double) kernel[kernel_at(w, u, v, c % (w->in_c / w->groups)) + (size_t) o];
        }
    }
    return sum;
}

void HPCT_REF(conv2d_backward_data)(const hpct_graph_window *w, int n,
                                    const hpct_ref_real *diff_dst, const hpct_ref_real *kernel,
                                    hpct_ref_real *diff_src)
{
    for (int s = 0; s < n; s++)
        for (int y = 0; y < w->in_h; y++)
            for (int x = 0; x < w->in_w; x++)
                for (int c = 0; c < w->in_c; c++)
                    diff_src[src_at(w, s, y, x) + (size_t) c] =
                        (hpct_ref_real) diff_at(w, diff_dst, kernel, s, y, x, c);
}

/* Gradient of one kernel element: over all samples and output cells. */
static double kernel_diff_at(const hpct_graph_window *w, int n, const hpct_ref_real *src,
                             const hpct_ref_real *diff_dst, int u, int v, int c, int o)
{
    double sum = 0;
    for (int s = 0; s < n; s++) {
        for (int i = 0; i < w->out_h; i++) {
            for (int j = 0; j < w->out_w; j++) {
                int y = row_at(w, i, u), x = column_at(w, j, v);
                if (inside(w, y, x) && has_cell(w, i, j))
                    sum += (double) src[src_at(w, s, y, x) + (size_t) (first_channel(w, o) + c)] *
                           (double) diff_dst[dst_at(w, s, i, j) + (size_t) o];
            }
        }
    }
    return sum;
}

void HPCT_REF(conv2d_backward_weights)(const hpct_graph_window *w, int n, const hpct_ref_real *src,
                                       const hpct_ref_real *diff_dst, hpct_ref_real *diff_kernel,
                                       hpct_ref_real *diff_bias)
{
    for (int u = 0; u < w->kernel_h; u++)
        for (int v = 0; v < w->kernel_w; v++)
            for (int c = 0; c < w->in_c / w->groups; c++)
                for (int o = 0; o < w->out_c; o++)
                    diff_kernel[kernel_at(w, u, v, c) + (size_t) o] =
                        (hpct_ref_real) kernel_diff_at(w, n, src, diff_dst, u, v, c, o);
    size_t cells = (size_t) n * (size_t) hpct_graph_window_cells(w), width = (size_t) w->out_c;
    for (size_t o = 0; diff_bias != NULL && o < width; o++) {
        double sum = 0;
        for (size_t cell = 0; cell < cells; cell++)
            sum += (double) diff_dst[cell * width + o];
        diff_bias[o] = (hpct_ref_real) sum;
    }
}
