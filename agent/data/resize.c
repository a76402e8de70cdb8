/* Resizes in two passes: each required source row along its columns, then two such rows to one
 * output row. */
#include "agent/data/resize.h"

#include "base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HPCT_BODY "agent/data/resize_body.h"
#include "base/variants.h"

const hpct_data_resize_loops *const hpct_data_resize_variants[] = {HPCT_VARIANTS(loops)};

/* ---- the resizer ---- */

/* One axis: output cell i is between source cells low[i] and high[i]. */
typedef struct axis {
    int src, dst;
    int32_t *low, *high; /* of columns: indices of floats in a row, channels included */
    float *weight;
} axis;

struct hpct_data_resizer {
    const hpct_data_resize_loops *loops;
    int channels;
    axis x, mirrored, y;
    float *memory;   /* holds all rows below */
    float *widened;  /* [src width * channels] */
    float *kept[2];  /* [dst width * channels] each: source rows kept_row[] along the columns */
    float *moved;    /* [dst width * channels] */
    int kept_row[2]; /* -1: none */
};

hpct_status hpct_data_resizer_new(hpct_data_resizer **out)
{
    hpct_data_resizer *resizer = calloc(1, sizeof *resizer);
    if (resizer == NULL)
        return hpct_fail_memory(sizeof *resizer);
    int best = 0;
    while (!hpct_data_resize_variants[best]->supported())
        best++;
    resizer->loops = hpct_data_resize_variants[best];
    *out = resizer;
    return HPCT_OK;
}

void hpct_data_resizer_use(hpct_data_resizer *resizer, const hpct_data_resize_loops *loops)
{
    resizer->loops = loops;
}

static void axis_free(axis *a)
{
    free(a->low);
    free(a->high);
    free(a->weight);
    *a = (axis){0};
}

void hpct_data_resizer_free(hpct_data_resizer *resizer)
{
    if (resizer == NULL)
        return;
    axis_free(&resizer->x);
    axis_free(&resizer->mirrored);
    axis_free(&resizer->y);
    free(resizer->memory);
    free(resizer);
}

/* In single precision, like TensorFlow. */
static hpct_status axis_make(axis *a, int src, int dst, int channels, bool mirrored)
{
    size_t count = (size_t) dst * (size_t) channels;
    float scale = (float) src / (float) dst;
    axis_free(a);
    a->low = malloc(count * sizeof *a->low);
    a->high = malloc(count * sizeof *a->high);
    a->weight = malloc(count * sizeof *a->weight);
    if (a->low == NULL || a->high == NULL || a->weight == NULL) {
        axis_free(a);
        return hpct_fail_memory(count * sizeof *a->weight);
    }
    for (int i = 0; i < dst; i++) {
        float at = ((float) i + 0.5f) * scale - 0.5f;
        int low = at > 0 ? (int) at : 0, high = low + 1 < src ? low + 1 : src - 1;
        float weight = at > 0 ? at - (float) low : 0;
        size_t cell = (size_t) (mirrored ? dst - 1 - i : i) * (size_t) channels;
        for (int c = 0; c < channels; c++) {
            a->low[cell + (size_t) c] = low * channels + c;
            a->high[cell + (size_t) c] = high * channels + c;
            a->weight[cell + (size_t) c] = weight;
        }
    }
    a->src = src;
    a->dst = dst;
    return HPCT_OK;
}

static size_t rounded(size_t floats)
{
    return (floats + 15) & ~(size_t) 15;
}

/* Computes tables and allocates rows for these sizes, unless unchanged. */
static hpct_status prepare(hpct_data_resizer *r, const hpct_data_picture *src, int height,
                           int width)
{
    hpct_status status = HPCT_OK;
    bool same_columns = r->x.src == src->width && r->x.dst == width && r->channels == src->channels;
    if (r->y.src != src->height || r->y.dst != height)
        status = axis_make(&r->y, src->height, height, 1, false);
    if (same_columns || status != HPCT_OK)
        return status;
    status = axis_make(&r->mirrored, src->width, width, src->channels, true);
    if (status == HPCT_OK)
        status = axis_make(&r->x, src->width, width, src->channels, false);
    size_t in = rounded((size_t) src->width * (size_t) src->channels);
    size_t out = rounded((size_t) width * (size_t) src->channels);
    free(r->memory);
    r->memory = aligned_alloc(64, (in + 3 * out) * sizeof(float));
    if (status == HPCT_OK && r->memory == NULL)
        status = hpct_fail_memory((in + 3 * out) * sizeof(float));
    if (status != HPCT_OK) {
        axis_free(&r->x);
        return status;
    }
    r->channels = src->channels;
    r->widened = r->memory;
    r->kept[0] = r->memory + in;
    r->kept[1] = r->kept[0] + out;
    r->moved = r->kept[1] + out;
    return HPCT_OK;
}

/* One picture being resized. */
typedef struct task {
    hpct_data_resizer *r;
    const hpct_data_picture *src;
    const hpct_data_preparation *how;
    size_t row_floats; /* floats in a row of dst */
} task;

/* Computes source row `row` at its final width and scale. */
static void make_row(const task *t, int row, float *dst)
{
    const hpct_data_resizer *r = t->r;
    size_t in = (size_t) t->src->width * (size_t) t->src->channels;
    const uint8_t *bytes = t->src->pixels + (size_t) row * in;
    bool as_it_is = r->x.src == r->x.dst && !t->how->flip;
    const axis *a = t->how->flip ? &r->mirrored : &r->x;
    r->loops->widen(in, bytes, t->how->factor, t->how->offset, as_it_is ? dst : r->widened);
    if (!as_it_is)
        r->loops->columns(t->row_floats, r->widened, a->low, a->high, a->weight, dst);
}

/* The same with a cache of two rows; row `other` is not replaced. */
static const float *keep_row(const task *t, int row, int other)
{
    hpct_data_resizer *r = t->r;
    for (int i = 0; i < 2; i++) {
        if (r->kept_row[i] == row)
            return r->kept[i];
    }
    int free_one = r->kept_row[0] == other ? 1 : 0;
    make_row(t, row, r->kept[free_one]);
    r->kept_row[free_one] = row;
    return r->kept[free_one];
}

/* Computes row y of the resized picture. */
static void resized_row(const task *t, int y, float *dst)
{
    const axis *a = &t->r->y;
    if (a->weight[y] == 0 && a->src == a->dst) {
        make_row(t, a->low[y], dst);
        return;
    }
    const float *low = keep_row(t, a->low[y], a->high[y]);
    const float *high = keep_row(t, a->high[y], a->low[y]);
    t->r->loops->rows(t->row_floats, low, high, a->weight[y], dst);
}

static void fill(float *dst, size_t count, float value)
{
    for (size_t i = 0; i < count; i++)
        dst[i] = value;
}

/* dst = src shifted left by `move` pixels, filled with black. */
static void move_row(const task *t, const float *src, float *dst)
{
    int move = t->how->move_x, width = t->how->width;
    size_t channels = (size_t) t->src->channels;
    size_t gap = (size_t) (abs(move) < width ? abs(move) : width) * channels;
    size_t rest = t->row_floats - gap;
    memcpy(move > 0 ? dst : dst + gap, move > 0 ? src + gap : src, rest * sizeof *dst);
    fill(move > 0 ? dst + rest : dst, gap, t->how->offset);
}

hpct_status hpct_data_resize(hpct_data_resizer *resizer, const hpct_data_picture *src,
                             const hpct_data_preparation *how, float *dst)
{
    HPCT_TRY(prepare(resizer, src, how->height, how->width));
    task t = {resizer, src, how, (size_t) how->width * (size_t) src->channels};
    resizer->kept_row[0] = resizer->kept_row[1] = -1;
    for (int y = 0; y < how->height; y++, dst += t.row_floats) {
        int from = y + how->move_y;
        if (from < 0 || from >= how->height) {
            fill(dst, t.row_floats, how->offset);
        } else if (how->move_x == 0) {
            resized_row(&t, from, dst);
        } else {
            resized_row(&t, from, resizer->moved);
            move_row(&t, resizer->moved, dst);
        }
    }
    return HPCT_OK;
}
