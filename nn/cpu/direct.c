/* Conv2D with few input channels by own loops: oneDNN's kernels block input channels, of which a
 * first layer has one or three. The output channels fill the vectors; forward and backward read and
 * write the large picture once, with ReLU and the bias gradient on the way. Keras' kernel layout.
 */
#include "nn/cpu/cpu.h"

#include "base/status.h"
#include "nn/cpu/loops.h"
#include "nn/ref/ref.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

/* Cells of one output row: all of them, or those that the operation has. */
typedef struct segment {
    size_t src, dst; /* floats, within a sample */
    hpct_direct direct;
} segment;

typedef struct direct_op {
    hpct_op op;
    hpct_direct direct;
    segment *segments; /* [num_segments] of one sample */
    int num_segments;
    int threads;  /* most that backward has room for */
    float *zeros; /* [out], in place of a bias */
    int offsets[HPCT_SMALL_WINDOW];
} direct_op;

typedef struct job {
    const direct_op *op;
    const hpct_op_call *call;
} job;

bool hpct_cpu_direct_fits(const hpct_op_spec *spec, const hpct_op_build *build)
{
    _Static_assert(HPCT_LANES == HPCT_CHANNEL_BLOCK, "output channels fill vectors");
    return hpct_window_is_small(&spec->window) && !build->needs_diff_src;
}

/* Of a row. */
static size_t dst_floats(const direct_op *direct)
{
    return (size_t) direct->direct.out_w * (size_t) direct->direct.out;
}

/* Rows are counted over the whole batch. */
static const hpct_direct *find_row(const direct_op *direct, size_t row, size_t *src, size_t *dst)
{
    size_t rows = (size_t) direct->num_segments, sample = row / rows;
    const segment *s = &direct->segments[row % rows];
    *src = sample * direct->direct.src_floats + s->src;
    *dst = sample * hpct_op_dst_floats(&direct->op.spec) + s->dst;
    return &s->direct;
}

static void forward_rows(size_t first, size_t count, void *arg)
{
    const job *j = arg;
    const hpct_loops *loops = hpct_loops_best();
    const float *bias = j->op->zeros != NULL ? j->op->zeros : j->call->param[HPCT_OP_BIAS];
    for (size_t row = first; row < first + count; row++) {
        size_t src, dst;
        const hpct_direct *d = find_row(j->op, row, &src, &dst);
        loops->direct_forward(d, j->call->src[0] + src, j->call->param[HPCT_OP_KERNEL], bias,
                              j->call->dst + dst);
    }
}

static hpct_status forward(hpct_op *op, const hpct_op_call *call)
{
    job j = {.op = (const direct_op *) op, .call = call};
    hpct_loops_split((size_t) call->n * (size_t) j.op->num_segments, 16, forward_rows, &j);
    return HPCT_OK;
}

/* Floats of one thread's sums and of its masked row. */
static size_t sums_floats(const direct_op *direct)
{
    return ((size_t) direct->direct.taps + 1) * (size_t) direct->direct.out;
}

static size_t thread_floats(const direct_op *direct)
{
    return sums_floats(direct) + dst_floats(direct);
}

static void backward_rows(const direct_op *direct, const hpct_op_call *call, size_t first,
                          size_t end, float *sums)
{
    const hpct_loops *loops = hpct_loops_best();
    memset(sums, 0, sums_floats(direct) * sizeof *sums);
    for (size_t row = first; row < end; row++) {
        size_t src, dst;
        const hpct_direct *d = find_row(direct, row, &src, &dst);
        loops->direct_backward(d, call->src[0] + src, call->dst + dst, call->diff_dst + dst,
                               sums + sums_floats(direct), sums);
    }
}

static hpct_status backward(hpct_op *op, const hpct_op_call *call)
{
    const direct_op *direct = (const direct_op *) op;
    size_t rows = (size_t) call->n * (size_t) direct->num_segments;
    int threads = omp_get_max_threads();
    if (threads > direct->threads)
        threads = direct->threads;
    float *sums = call->scratch;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int t = 0; t < threads; t++)
        backward_rows(direct, call, rows * (size_t) t / (size_t) threads,
                      rows * ((size_t) t + 1) / (size_t) threads,
                      sums + (size_t) t * thread_floats(direct));
    for (int t = 1; t < threads; t++)
        hpct_loops_best()->add(sums_floats(direct), sums + (size_t) t * thread_floats(direct),
                               sums);
    size_t kernel = op->param_floats[HPCT_OP_KERNEL];
    memcpy(call->grad[HPCT_OP_KERNEL], sums, kernel * sizeof *sums);
    if (!op->spec.no_bias)
        memcpy(call->grad[HPCT_OP_BIAS], sums + kernel,
               op->param_floats[HPCT_OP_BIAS] * sizeof *sums);
    return HPCT_OK;
}

static bool make_segments(direct_op *direct, const hpct_window *w)
{
    int first = w->first_cell, end = first + hpct_window_cells(w);
    direct->segments = calloc((size_t) w->out_h, sizeof *direct->segments);
    for (int cell = first; direct->segments != NULL && cell < end;) {
        segment *s = &direct->segments[direct->num_segments++];
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

hpct_status hpct_cpu_make_direct(hpct_op **out, const hpct_op_spec *spec,
                                 const hpct_op_build *build)
{
    static const hpct_op_class class = {.forward = forward,
                                        .backward = backward,
                                        .import_param = hpct_ref_import,
                                        .export_param = hpct_ref_export,
                                        .destroy = destroy};
    const hpct_window *w = &spec->window;
    direct_op *direct = calloc(1, sizeof *direct);
    if (direct == NULL)
        return hpct_fail_memory(sizeof *direct);
    hpct_op *op = *out = &direct->op;
    op->class = &class;
    op->spec = *spec;
    op->build = *build;
    if (spec->no_bias)
        direct->zeros = calloc((size_t) w->out_c, sizeof *direct->zeros);
    if (spec->no_bias && direct->zeros == NULL)
        return hpct_fail_memory((size_t) w->out_c * sizeof *direct->zeros);
    int taps = 0;
    for (int u = 0; u < w->kernel_h; u++)
        for (int v = 0; v < w->kernel_w * w->in_c; v++)
            direct->offsets[taps++] = u * w->in_w * w->in_c + v;
    direct->direct = (hpct_direct){
        .out_h = w->out_h,
        .out_w = w->out_w,
        .out = w->out_c,
        .taps = taps,
        .offsets = direct->offsets,
        .row_step = (size_t) w->stride_h * (size_t) w->in_w * (size_t) w->in_c,
        .cell_step = (size_t) w->stride_w * (size_t) w->in_c,
        .src_floats = (size_t) w->in_h * (size_t) w->in_w * (size_t) w->in_c,
        .relu = spec->relu,
    };
    if (!make_segments(direct, w))
        return hpct_fail_memory((size_t) w->out_h * sizeof *direct->segments);
    op->num_params = spec->no_bias ? 1 : 2;
    op->param_floats[HPCT_OP_KERNEL] = (size_t) taps * (size_t) w->out_c;
    op->param_floats[HPCT_OP_BIAS] = (size_t) w->out_c;
    op->backward_reads_src = true;
    op->backward_reads_dst = spec->relu;
    op->backward_keeps_diff_dst = true;
    direct->threads =
        omp_get_num_procs() > omp_get_max_threads() ? omp_get_num_procs() : omp_get_max_threads();
    if (build->training)
        op->scratch_bytes = (size_t) direct->threads * thread_floats(direct) * sizeof(float);
    return HPCT_OK;
}
