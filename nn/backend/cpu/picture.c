/* Resizing and RandomCrop. Interpolation points are computed when the operation is
 * created; boxes that are not resized are copied. */
#include "nn/backend/cpu/cpu.h"

#include "base/status.h"
#include "nn/backend/cpu/loops.h"
#include "nn/backend/picture.h"

#include <stdlib.h>
#include <string.h>

/* hpct_backend_between with offsets in floats. */
typedef struct look {
    int low, high;
    float part;
} look;

typedef struct picture_op {
    hpct_op op;
    hpct_backend_box box; /* the box, unless it is random per sample */
    look *rows, *columns; /* [out_h], [out_w]: interpolation points within that box */
} picture_op;

typedef struct job {
    const picture_op *picture;
    const hpct_op_call *call;
} job;

static size_t in_floats(const hpct_graph_picture *p)
{
    return (size_t) p->in_h * (size_t) p->in_w * (size_t) p->channels;
}

static size_t row_floats(const hpct_graph_picture *p)
{
    return (size_t) p->out_w * (size_t) p->channels;
}

static hpct_backend_box box_of(const picture_op *picture, const hpct_op_call *call, size_t sample)
{
    const hpct_op *op = &picture->op;
    if (op->spec.kind != HPCT_OP_RANDOM_CROP || !call->training)
        return picture->box;
    uint32_t words[4];
    hpct_op_draw_words(op, call, sample, words);
    return hpct_backend_box_random(&op->spec.picture, words);
}

static bool same_size(const hpct_graph_picture *p, const hpct_backend_box *box)
{
    return box->height == p->out_h && box->width == p->out_w;
}

static void mix_row(const picture_op *picture, const float *low, const float *high, float part,
                    float *dst)
{
    const hpct_graph_picture *p = &picture->op.spec.picture;
    for (int x = 0; x < p->out_w; x++) {
        const look *at = &picture->columns[x];
        for (int c = 0; c < p->channels; c++) {
            float top = low[at->low + c] + (low[at->high + c] - low[at->low + c]) * at->part;
            float bottom = high[at->low + c] + (high[at->high + c] - high[at->low + c]) * at->part;
            *dst++ = top + (bottom - top) * part;
        }
    }
}

/* Output rows are numbered over the whole batch. */
static void forward_rows(size_t first, size_t count, void *arg)
{
    const job *j = arg;
    const hpct_graph_picture *p = &j->picture->op.spec.picture;
    size_t in_row = (size_t) p->in_w * (size_t) p->channels;
    for (size_t row = first; row < first + count; row++) {
        size_t sample = row / (size_t) p->out_h;
        int y = (int) (row % (size_t) p->out_h);
        const float *src = j->call->src[0] + sample * in_floats(p);
        float *dst = j->call->dst + row * row_floats(p);
        hpct_backend_box box = box_of(j->picture, j->call, sample);
        src += (size_t) box.top * in_row + (size_t) (box.left * p->channels);
        const look *at = &j->picture->rows[y];
        if (same_size(p, &box))
            memcpy(dst, src + (size_t) y * in_row, row_floats(p) * sizeof *dst);
        else
            mix_row(j->picture, src + (size_t) at->low * in_row, src + (size_t) at->high * in_row,
                    at->part, dst);
    }
}

static hpct_status forward(hpct_op *op, const hpct_op_call *call)
{
    job j = {.picture = (const picture_op *) op, .call = call};
    hpct_cpu_loops_split((size_t) call->n * (size_t) op->spec.picture.out_h, 16, forward_rows, &j);
    return HPCT_OK;
}

/* Adds to each of the four source cells of an output cell its weighted gradient. */
static void share_row(const picture_op *picture, const float *diff, float part, float *low,
                      float *high)
{
    const hpct_graph_picture *p = &picture->op.spec.picture;
    for (int x = 0; x < p->out_w; x++) {
        const look *at = &picture->columns[x];
        for (int c = 0; c < p->channels; c++) {
            float bottom = *diff * part, top = *diff++ - bottom;
            low[at->low + c] += top * (1 - at->part);
            low[at->high + c] += top * at->part;
            high[at->low + c] += bottom * (1 - at->part);
            high[at->high + c] += bottom * at->part;
        }
    }
}

/* RESIZING's, of the whole image. */
static void backward_sample(const picture_op *picture, const float *diff_dst, float *diff_src)
{
    const hpct_graph_picture *p = &picture->op.spec.picture;
    size_t in_row = (size_t) p->in_w * (size_t) p->channels;
    memset(diff_src, 0, in_floats(p) * sizeof *diff_src);
    for (int y = 0; y < p->out_h; y++, diff_dst += row_floats(p)) {
        const look *at = &picture->rows[y];
        if (same_size(p, &picture->box))
            memcpy(diff_src + (size_t) y * in_row, diff_dst, row_floats(p) * sizeof *diff_src);
        else
            share_row(picture, diff_dst, at->part, diff_src + (size_t) at->low * in_row,
                      diff_src + (size_t) at->high * in_row);
    }
}

static void backward_samples(size_t first, size_t count, void *arg)
{
    const job *j = arg;
    const hpct_graph_picture *p = &j->picture->op.spec.picture;
    for (size_t sample = first; sample < first + count; sample++)
        backward_sample(j->picture, j->call->diff_dst + sample * (size_t) p->out_h * row_floats(p),
                        j->call->diff_src[0] + sample * in_floats(p));
}

static hpct_status backward(hpct_op *op, const hpct_op_call *call)
{
    job j = {.picture = (const picture_op *) op, .call = call};
    if (call->diff_src[0] != NULL)
        hpct_cpu_loops_split((size_t) call->n, 1, backward_samples, &j);
    return HPCT_OK;
}

static void destroy(hpct_op *op)
{
    picture_op *picture = (picture_op *) op;
    free(picture->rows);
    free(picture->columns);
    free(picture);
}

static look *make_looks(int out_size, int in_size, bool nearest, int step)
{
    look *looks = calloc((size_t) out_size, sizeof *looks);
    for (int i = 0; looks != NULL && i < out_size; i++) {
        hpct_backend_between b = hpct_backend_look(i, out_size, in_size, nearest);
        looks[i] = (look){b.low * step, b.high * step, (float) b.part};
    }
    return looks;
}

hpct_status hpct_cpu_make_picture(hpct_op **out, const hpct_op_spec *spec,
                                  const hpct_op_build *build)
{
    static const hpct_op_class class = {
        .forward = forward, .backward = backward, .destroy = destroy};
    const hpct_graph_picture *p = &spec->picture;
    HPCT_TRY(hpct_op_new(out, sizeof(picture_op), &class, spec, build));
    picture_op *picture = (picture_op *) *out;
    picture->box =
        spec->kind == HPCT_OP_RANDOM_CROP ? hpct_backend_box_centre(p) : hpct_backend_box_whole(p);
    picture->rows = make_looks(p->out_h, picture->box.height, p->nearest, 1);
    picture->columns = make_looks(p->out_w, picture->box.width, p->nearest, p->channels);
    return picture->rows != NULL && picture->columns != NULL ? HPCT_OK : hpct_fail_memory(0);
}
