/* ZeroPadding2D where nothing behind it takes the frame over: copies, sample by sample. */
#include "nn/cpu/cpu.h"

#include "base/status.h"
#include "nn/cpu/loops.h"
#include "nn/ref/kernels.h"

#include <stdlib.h>

typedef struct job {
    const hpct_op *op;
    const hpct_op_call *call;
} job;

static void forward_samples(size_t first, size_t count, void *arg)
{
    const job *j = arg;
    const hpct_op_spec *spec = &j->op->spec;
    hpct_ref_pad2d_forward(&spec->window, (int) count,
                           j->call->src[0] + first * hpct_op_src_floats(spec, 0),
                           j->call->dst + first * hpct_op_dst_floats(spec));
}

static void backward_samples(size_t first, size_t count, void *arg)
{
    const job *j = arg;
    const hpct_op_spec *spec = &j->op->spec;
    hpct_ref_pad2d_backward(&spec->window, (int) count,
                            j->call->diff_dst + first * hpct_op_dst_floats(spec), j->call->add[0],
                            j->call->diff_src[0] + first * hpct_op_src_floats(spec, 0));
}

static hpct_status forward(hpct_op *op, const hpct_op_call *call)
{
    job j = {op, call};
    hpct_loops_split((size_t) call->n, 1, forward_samples, &j);
    return HPCT_OK;
}

static hpct_status backward(hpct_op *op, const hpct_op_call *call)
{
    job j = {op, call};
    if (call->diff_src[0] != NULL)
        hpct_loops_split((size_t) call->n, 1, backward_samples, &j);
    return HPCT_OK;
}

static void destroy(hpct_op *op)
{
    free(op);
}

hpct_status hpct_cpu_make_pad2d(hpct_op **out, const hpct_op_spec *spec, const hpct_op_build *build)
{
    static const hpct_op_class class = {
        .forward = forward, .backward = backward, .destroy = destroy};
    hpct_op *op = calloc(1, sizeof *op);
    if (op == NULL)
        return hpct_fail_memory(sizeof *op);
    op->class = &class;
    op->spec = *spec;
    op->build = *build;
    op->backward_keeps_diff_dst = true;
    op->adds_diff_src = true;
    *out = op;
    return HPCT_OK;
}
