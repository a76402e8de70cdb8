/* MaxPooling2D: one pass each way. Forward saves the index of each maximum for backward. */
#include "nn/backend/cpu/cpu.h"

#include "base/status.h"
#include "nn/backend/cpu/loops.h"

#include <stdlib.h>
#include <string.h>

/* Units divided among threads: samples or, with channel blocks on a side, blocks of samples. */
typedef struct job {
    const hpct_op *op;
    const hpct_op_call *call;
    hpct_graph_window window; /* of one unit */
    size_t count, per_sample;
    size_t src_step, dst_step; /* floats between cells */
} job;

static job job_of(const hpct_op *op, const hpct_op_call *call)
{
    job j = {.op = op, .call = call, .window = op->spec.window, .count = (size_t) call->n};
    hpct_graph_window *w = &j.window;
    size_t channels = (size_t) w->in_c;
    j.per_sample = 1;
    j.src_step = j.dst_step = channels;
    if (op->spec.src_blocks || op->spec.dst_blocks) {
        j.per_sample = channels / HPCT_GRAPH_CHANNEL_BLOCK;
        j.count *= j.per_sample;
        w->in_c = w->out_c = HPCT_GRAPH_CHANNEL_BLOCK;
        j.src_step = op->spec.src_blocks ? HPCT_GRAPH_CHANNEL_BLOCK : channels;
        j.dst_step = op->spec.dst_blocks ? HPCT_GRAPH_CHANNEL_BLOCK : channels;
    }
    return j;
}

/* Offset of the i-th unit, in images of `cells` cells. */
static size_t begin_of(const job *j, size_t i, bool blocks, size_t cells)
{
    size_t channels = j->per_sample * (size_t) j->window.in_c;
    size_t block = i % j->per_sample * (size_t) j->window.in_c;
    return i / j->per_sample * cells * channels + block * (blocks ? cells : 1);
}

static size_t src_begin(const job *j, size_t i)
{
    size_t cells = (size_t) j->window.in_h * (size_t) j->window.in_w;
    return begin_of(j, i, j->op->spec.src_blocks, cells);
}

static size_t dst_cells(const job *j)
{
    return (size_t) j->window.out_h * (size_t) j->window.out_w;
}

static size_t dst_begin(const job *j, size_t i)
{
    return begin_of(j, i, j->op->spec.dst_blocks, dst_cells(j));
}

/* Saved indices are always by unit. */
static int32_t *notes_of(const job *j, size_t i)
{
    return (int32_t *) j->call->workspace + i * dst_cells(j) * (size_t) j->window.in_c;
}

static void forward_part(size_t first, size_t count, void *arg)
{
    const job *j = arg;
    for (size_t i = first; i < first + count; i++)
        hpct_cpu_loops_best()->max_pool(&j->window, j->call->src[0] + src_begin(j, i), j->src_step,
                                        j->call->dst + dst_begin(j, i), j->dst_step,
                                        notes_of(j, i));
}

static void clear(const job *j, float *diff_src)
{
    size_t cells = (size_t) j->window.in_h * (size_t) j->window.in_w;
    size_t bytes = (size_t) j->window.in_c * sizeof *diff_src;
    if (j->src_step == (size_t) j->window.in_c)
        memset(diff_src, 0, cells * bytes);
    for (size_t cell = 0; cell < cells && j->src_step != (size_t) j->window.in_c; cell++)
        memset(diff_src + cell * j->src_step, 0, bytes);
}

static void backward_part(size_t first, size_t count, void *arg)
{
    const job *j = arg;
    for (size_t i = first; i < first + count; i++) {
        float *diff_src = j->call->diff_src[0] + src_begin(j, i);
        if (!j->call->add[0])
            clear(j, diff_src);
        hpct_cpu_loops_best()->max_pool_backward(&j->window, notes_of(j, i),
                                                 j->call->diff_dst + dst_begin(j, i), j->dst_step,
                                                 diff_src, j->src_step);
    }
}

static hpct_status forward(hpct_op *op, const hpct_op_call *call)
{
    job j = job_of(op, call);
    hpct_cpu_loops_split(j.count, 1, forward_part, &j);
    return HPCT_OK;
}

static hpct_status backward(hpct_op *op, const hpct_op_call *call)
{
    job j = job_of(op, call);
    if (call->diff_src[0] != NULL)
        hpct_cpu_loops_split(j.count, 1, backward_part, &j);
    return HPCT_OK;
}

hpct_status hpct_cpu_make_max_pool2d(hpct_op **out, const hpct_op_spec *spec,
                                     const hpct_op_build *build)
{
    static const hpct_op_class class = {
        .forward = forward, .backward = backward, .destroy = hpct_op_free};
    HPCT_TRY(hpct_op_new(out, sizeof **out, &class, spec, build));
    (*out)->adds_diff_src = true;
    (*out)->workspace_bytes =
        (size_t) hpct_op_largest_batch(build) * hpct_op_dst_floats(spec) * sizeof(int32_t);
    return HPCT_OK;
}
