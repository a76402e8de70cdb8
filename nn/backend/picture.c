/* Crop boxes and interpolation points. */
#include "nn/backend/picture.h"

#include <math.h>

hpct_backend_box hpct_backend_box_whole(const hpct_graph_picture *picture)
{
    return (hpct_backend_box){.height = picture->in_h, .width = picture->in_w};
}

/* min(size, other * wanted / other_wanted), at least 1. */
static int proportional(int size, int other, int wanted, int other_wanted)
{
    int64_t length = (int64_t) other * wanted / other_wanted;
    return length < 1 ? 1 : length < size ? (int) length : size;
}

hpct_backend_box hpct_backend_box_centre(const hpct_graph_picture *picture)
{
    const hpct_graph_picture *p = picture;
    hpct_backend_box box = {.height = proportional(p->in_h, p->in_w, p->out_h, p->out_w),
                            .width = proportional(p->in_w, p->in_h, p->out_w, p->out_h)};
    box.top = (p->in_h - box.height) / 2;
    box.left = (p->in_w - box.width) / 2;
    return box;
}

/* Random integer in [0, range). */
static int pick(uint32_t word, int range)
{
    return (int) ((uint64_t) word * (uint64_t) range >> 32);
}

hpct_backend_box hpct_backend_box_random(const hpct_graph_picture *picture,
                                         const hpct_graph_draw *draw, uint32_t sample)
{
    const hpct_graph_picture *p = picture;
    if (p->in_h <= p->out_h || p->in_w <= p->out_w)
        return hpct_backend_box_centre(picture);
    uint32_t words[4];
    hpct_graph_draw_words(draw, sample, 0, words);
    return (hpct_backend_box){.top = pick(words[0], p->in_h - p->out_h + 1),
                              .left = pick(words[1], p->in_w - p->out_w + 1),
                              .height = p->out_h,
                              .width = p->out_w};
}

hpct_backend_between hpct_backend_look(int out, int out_size, int in_size, bool nearest)
{
    if (nearest) {
        int cell = (int) ((out + 0.5) * in_size / out_size);
        return (hpct_backend_between){.low = cell, .high = cell};
    }
    double at = (out + 0.5) * ((double) in_size / out_size) - 0.5, low = floor(at);
    return (hpct_backend_between){
        .low = low < 0 ? 0 : (int) low,
        .high = low + 1 < in_size ? (int) low + 1 : in_size - 1,
        .part = at - low,
    };
}
