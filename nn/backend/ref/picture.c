/* Resizing of a box of an image. One sample [h][w][channels]. */
#include "nn/backend/ref/kernels.h"

#include <string.h>

static size_t in_at(const hpct_graph_picture *p, const hpct_backend_box *box, int y, int x)
{
    return ((size_t) (box->top + y) * (size_t) p->in_w + (size_t) (box->left + x)) *
           (size_t) p->channels;
}

static size_t out_at(const hpct_graph_picture *p, int y, int x)
{
    return ((size_t) y * (size_t) p->out_w + (size_t) x) * (size_t) p->channels;
}

/* The four source cells of an output cell, and their weights. */
typedef struct corners {
    size_t at[4];
    double weight[4];
} corners;

static corners corners_of(const hpct_graph_picture *p, const hpct_backend_box *box, int y, int x)
{
    hpct_backend_between v = hpct_backend_look(y, p->out_h, box->height, p->nearest),
                         h = hpct_backend_look(x, p->out_w, box->width, p->nearest);
    return (corners){
        .at = {in_at(p, box, v.low, h.low), in_at(p, box, v.low, h.high),
               in_at(p, box, v.high, h.low), in_at(p, box, v.high, h.high)},
        .weight = {(1 - v.part) * (1 - h.part), (1 - v.part) * h.part, v.part * (1 - h.part),
                   v.part * h.part},
    };
}

void HPCT_REF(resize_forward)(const hpct_graph_picture *picture, const hpct_backend_box *box,
                              const hpct_ref_real *src, hpct_ref_real *dst)
{
    for (int y = 0; y < picture->out_h; y++) {
        for (int x = 0; x < picture->out_w; x++) {
            corners k = corners_of(picture, box, y, x);
            for (int c = 0; c < picture->channels; c++) {
                double sum = 0;
                for (int i = 0; i < 4; i++)
                    sum += k.weight[i] * (double) src[k.at[i] + (size_t) c];
                dst[out_at(picture, y, x) + (size_t) c] = (hpct_ref_real) sum;
            }
        }
    }
}

void HPCT_REF(resize_backward)(const hpct_graph_picture *picture, const hpct_ref_real *diff_dst,
                               hpct_ref_real *diff_src)
{
    hpct_backend_box box = hpct_backend_box_whole(picture);
    size_t count = (size_t) picture->in_h * (size_t) picture->in_w * (size_t) picture->channels;
    memset(diff_src, 0, count * sizeof *diff_src);
    for (int y = 0; y < picture->out_h; y++) {
        for (int x = 0; x < picture->out_w; x++) {
            corners k = corners_of(picture, &box, y, x);
            for (int c = 0; c < picture->channels; c++)
                for (int i = 0; i < 4; i++)
                    diff_src[k.at[i] + (size_t) c] +=
                        (hpct_ref_real) (k.weight[i] *
                                         (double) diff_dst[out_at(picture, y, x) + (size_t) c]);
        }
    }
}
