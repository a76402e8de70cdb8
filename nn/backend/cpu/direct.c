/* Conv2D with few input channels: oneDNN's kernels block input channels, of which a first layer has
 * one or three. Vectors are over output channels; forward and backward read and write the large
 * result once, with ReLU and the bias gradient in the same pass, or never store it if a fused max
 * pooling is the only reader. Keras' kernel layout. */
#include "nn/backend/cpu/cpu.h"

#include "base/status.h"
#include "nn/backend/cpu/loops.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BAND (1 << 16) /* floats: fits the L2 cache */

/* The cells in one row of an operation that computes some cells only. */
typedef struct segment {
    size_t src, dst; /* offsets in floats within a sample */
    hpct_cpu_direct direct;
} segment;

/* With a fused pooling the convolution is computed in bands as high as a window: each thread holds
 * one band of its result only. */
typedef struct direct_op {
    hpct_op op;
    hpct_cpu_direct direct;
    segment *segments;         /* [bands], if only some cells are computed; else NULL */
    hpct_cpu_direct_pool pool; /* high == 0: none */
    size_t dst_step;           /* floats between bands of the result */
    int band_rows, bands;      /* per sample */
    int threads;               /* maximum that the scratch has room for */
    float *zeros;              /* [out], used without a bias */
    int offsets[HPCT_GRAPH_SMALL_WINDOW];
} direct_op;

static bool is_padded(const hpct_graph_window *w)
{
    return w->pad_top > 0 || w->pad_left > 0 ||
           (w->out_h - 1) * w->stride_h + w->kernel_h > w->in_h ||
           (w->out_w - 1) * w->stride_w + w->kernel_w > w->in_w;
}

bool hpct_cpu_direct_fits(const hpct_op_spec *spec, const hpct_op_build *build)
{
    _Static_assert(HPCT_CPU_LANES == HPCT_GRAPH_CHANNEL_BLOCK, "output channels fill vectors");
    return hpct_graph_window_is_small(&spec->window) && !build->needs_diff_src;
}

bool hpct_cpu_direct_merges(const hpct_op_spec *spec, const hpct_op_build *build,
                            const hpct_op_spec *next)
{
    const hpct_graph_window *w = &next->window;
    return hpct_cpu_direct_fits(spec, build) && spec->window.cells == 0 && !is_padded(w) &&
           w->stride_h == w->kernel_h && w->stride_w == w->kernel_w &&
           w->kernel_h * w->kernel_w <= INT8_MAX &&
           (size_t) w->kernel_h * (size_t) w->in_w * (size_t) w->in_c <= MAX_BAND;
}

/* Floats of a band of the convolution's result. */
static size_t band_floats(const direct_op *direct)
{
    return (size_t) direct->band_rows * (size_t) direct->direct.out_w * (size_t) direct->direct.out;
}

static size_t sums_floats(const direct_op *direct)
{
    return ((size_t) direct->direct.taps + 1) * (size_t) direct->direct.out;
}

/* Scratch floats of one thread: sums, and a band. */
static size_t thread_floats(const direct_op *direct)
{
    return sums_floats(direct) + band_floats(direct);
}

/* Inputs and outputs of a band; bands are numbered over the whole batch. */
typedef struct band {
    const hpct_cpu_direct *direct;
    const float *src, *diff_dst;
    float *dst;
    int8_t *where;
} band;

static band find_band(const direct_op *direct, const hpct_op_call *call, size_t index)
{
    const hpct_cpu_direct *d = &direct->direct;
    size_t bands = (size_t) direct->bands, sample = index / bands, row = index % bands;
    if (direct->segments != NULL) {
        const segment *s = &direct->segments[row];
        size_t at = sample * hpct_op_dst_floats(&direct->op.spec) + s->dst;
        return (band){.direct = &s->direct,
                      .src = call->src[0] + sample * d->src_floats + s->src,
                      .dst = call->dst + at,
                      .diff_dst = call->diff_dst != NULL ? call->diff_dst + at : NULL};
    }
    size_t results =
        (size_t) (direct->pool.high > 0 ? direct->pool.out_w : d->out_w * direct->band_rows);
    size_t dst = (sample * bands * results) * (size_t) d->out + row * direct->dst_step;
    return (band){.direct = d,
                  .src = call->src[0] + sample * d->src_floats +
                         row * (size_t) direct->band_rows * d->row_step,
                  .dst = call->dst + dst,
                  .diff_dst = call->diff_dst != NULL ? call->diff_dst + dst : NULL,
                  .where = (int8_t *) call->workspace + index * results * (size_t) d->out};
}

static void forward_bands(const direct_op *direct, const hpct_op_call *call, size_t first,
                          size_t end, float *room)
{
    const hpct_cpu_loops *loops = hpct_cpu_loops_best();
    const float *bias = direct->zeros != NULL ? direct->zeros : call->param[HPCT_OP_BIAS];
    for (size_t i = first; i < end; i++) {
        band b = find_band(direct, call, i);
        const hpct_cpu_direct *d = b.direct;
        float *rows = direct->pool.high > 0 ? room : b.dst;
        for (int r = 0; r < direct->band_rows; r++)
            loops->direct_forward(d, b.src + (size_t) r * d->row_step, call->param[HPCT_OP_KERNEL],
                                  bias, rows + (size_t) r * (size_t) d->out_w * (size_t) d->out);
        if (direct->pool.high > 0)
            loops->direct_pool(&direct->pool, room, b.dst, b.where);
    }
}

static void backward_bands(const direct_op *direct, const hpct_op_call *call, size_t first,
                           size_t end, float *room)
{
    const hpct_cpu_loops *loops = hpct_cpu_loops_best();
    float *g = room + sums_floats(direct),
          *diff_bias = room + (size_t) direct->direct.taps * (size_t) direct->direct.out;
    memset(room, 0, sums_floats(direct) * sizeof *room);
    for (size_t i = first; i < end; i++) {
        band b = find_band(direct, call, i);
        if (direct->pool.high > 0)
            loops->direct_unpool(&direct->pool, b.where, b.diff_dst, g, diff_bias);
        else
            loops->direct_mask(b.direct, direct->band_rows, b.dst, b.diff_dst, g, diff_bias);
        loops->direct_backward(b.direct, direct->band_rows, b.src, g, room);
    }
}

/* Calls `part` with equal shares of the batch's bands, on as many threads as there is scratch for;
 * returns their number. */
static int share(const direct_op *direct, const hpct_op_call *call,
                 void (*part)(const direct_op *direct, const hpct_op_call *call, size_t first,
                              size_t end, float *room))
{
    size_t bands = (size_t) call->n * (size_t) direct->bands;
    int threads = omp_get_max_threads();
    if (threads > direct->threads)
        threads = direct->threads;
    float *room = call->scratch;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int t = 0; t < threads; t++)
        part(direct, call, bands * (size_t) t / (size_t) threads,
             bands * ((size_t) t + 1) / (size_t) threads,
             room + (size_t) t * thread_floats(direct));
    return threads;
}

static hpct_status forward(hpct_op *op, const hpct_op_call *call)
{
    share((const direct_op *) op, call, forward_bands);
    return HPCT_OK;
}

static hpct_status backward(hpct_op *op, const hpct_op_call *call)
{
    const direct_op *direct = (const direct_op *) op;
    int threads = share(direct, call, backward_bands);
    float *sums = call->scratch;
    for (int t = 1; t < threads; t++)
        hpct_cpu_loops_best()->add(sums_floats(direct), sums + (size_t) t * thread_floats(direct),
                                   sums);
    size_t kernel = op->param_floats[HPCT_OP_KERNEL];
    memcpy(call->grad[HPCT_OP_KERNEL], sums, kernel * sizeof *sums);
    if (!op->spec.no_bias)
        memcpy(call->grad[HPCT_OP_BIAS], sums + kernel,
               op->param_floats[HPCT_OP_BIAS] * sizeof *sums);
    return HPCT_OK;
}

/* One band for each row with cells to compute. */
static bool make_segments(direct_op *direct)
{
    const hpct_graph_window *w = &direct->op.spec.window;
    int first = w->first_cell, end = first + w->cells;
    direct->segments = calloc((size_t) w->out_h, sizeof *direct->segments);
    direct->bands = 0;
    for (int cell = first; direct->segments != NULL && cell < end;) {
        segment *s = &direct->segments[direct->bands++];
        int row = cell / w->out_w, column = cell % w->out_w, left = w->out_w - column;
        s->direct = direct->direct;
        s->direct.out_w = left < end - cell ? left : end - cell;
        s->src = (size_t) row * s->direct.row_step + (size_t) column * s->direct.cell_step;
        s->dst = (size_t) (cell - first) * (size_t) w->out_c;
        cell += s->direct.out_w;
    }
    return direct->segments != NULL;
}

static void destroy(hpct_op *op)
{
    free(((direct_op *) op)->segments);
    free(((direct_op *) op)->zeros);
    free(op);
}

/* Cells beyond the last whole window are not computed. */
static void add_pool(direct_op *direct)
{
    hpct_op *op = &direct->op;
    const hpct_graph_window *w = op->build.pool;
    size_t out = (size_t) w->in_c, width = (size_t) w->out_w, cells = width * (size_t) w->out_h;
    bool blocks = op->spec.dst_blocks;
    direct->pool = (hpct_cpu_direct_pool){
        .out_w = w->out_w,
        .out = w->in_c,
        .high = w->kernel_h,
        .wide = w->kernel_w,
        .cell_step = blocks ? HPCT_CPU_LANES : out,
        .block_step = blocks ? cells * HPCT_CPU_LANES : HPCT_CPU_LANES,
        .relu = op->spec.relu,
    };
    direct->direct.out_w = w->out_w * w->kernel_w;
    direct->direct.relu = false;
    direct->bands = w->out_h;
    direct->band_rows = w->kernel_h;
    direct->dst_step = width * (blocks ? HPCT_CPU_LANES : out);
    for (int i = 0; i < op->build.num_batch_sizes; i++) {
        size_t bytes = (size_t) op->build.batch_sizes[i] * cells * out;
        op->workspace_bytes = bytes > op->workspace_bytes ? bytes : op->workspace_bytes;
    }
}

hpct_status hpct_cpu_make_direct(hpct_op **out, const hpct_op_spec *spec,
                                 const hpct_op_build *build)
{
    static const hpct_op_class class = {
        .forward = forward, .backward = backward, .destroy = destroy};
    const hpct_graph_window *w = &spec->window;
    HPCT_TRY(hpct_op_new(out, sizeof(direct_op), &class, spec, build));
    hpct_op *op = *out;
    direct_op *direct = (direct_op *) op;
    if (spec->no_bias)
        direct->zeros = calloc((size_t) w->out_c, sizeof *direct->zeros);
    if (spec->no_bias && direct->zeros == NULL)
        return hpct_fail_memory((size_t) w->out_c * sizeof *direct->zeros);
    int taps = 0;
    for (int u = 0; u < w->kernel_h; u++)
        for (int v = 0; v < w->kernel_w * w->in_c; v++)
            direct->offsets[taps++] = u * w->in_w * w->in_c + v;
    direct->direct = (hpct_cpu_direct){
        .out_w = w->out_w,
        .out = w->out_c,
        .taps = taps,
        .offsets = direct->offsets,
        .row_step = (size_t) w->stride_h * (size_t) w->in_w * (size_t) w->in_c,
        .cell_step = (size_t) w->stride_w * (size_t) w->in_c,
        .src_floats = (size_t) w->in_h * (size_t) w->in_w * (size_t) w->in_c,
        .relu = spec->relu,
    };
    direct->bands = w->out_h;
    direct->band_rows = 1;
    direct->dst_step = (size_t) w->out_w * (size_t) w->out_c;
    if (build->pool != NULL)
        add_pool(direct);
    if (w->cells > 0 && !make_segments(direct))
        return hpct_fail_memory((size_t) w->out_h * sizeof *direct->segments);
    op->omits_grads = false;
    op->backward_reads_src = true;
    op->backward_reads_dst = spec->relu && build->pool == NULL;
    op->backward_keeps_diff_dst = true;
    direct->threads =
        omp_get_num_procs() > omp_get_max_threads() ? omp_get_num_procs() : omp_get_max_threads();
    op->scratch_bytes = (size_t) direct->threads * thread_floats(direct) * sizeof(float);
    return HPCT_OK;
}
