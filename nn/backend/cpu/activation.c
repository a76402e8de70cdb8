/* ReLU as a separate operation. */
#include "nn/backend/cpu/cpu.h"

#include "base/status.h"
#include "nn/backend/cpu/loops.h"

#include <stdlib.h>

typedef struct span {
    const float *a, *b;
    float *out;
} span;

static size_t count_of(const hpct_op *op, int n)
{
    return (size_t) n * (size_t) op->spec.dense.rows * (size_t) op->spec.dense.out;
}

static void forward_part(size_t first, size_t count, void *arg)
{
    const span *s = arg;
    hpct_loops_best()->relu_forward(count, s->a + first, s->out + first);
}

static void backward_part(size_t first, size_t count, void *arg)
{
    const span *s = arg;
    hpct_loops_best()->relu_backward(count, s->a + first, s->b + first, s->out + first);
}

static hpct_status forward(hpct_op *op, const hpct_op_call *call)
{
    span s = {.a = call->src[0], .out = call->dst};
    hpct_loops_split(count_of(op, call->n), 16384, forward_part, &s);
    return HPCT_OK;
}

static hpct_status backward(hpct_op *op, const hpct_op_call *call)
{
    if (call->diff_src[0] == NULL)
        return HPCT_OK;
    span s = {.a = call->dst, .b = call->diff_dst, .out = call->diff_src[0]};
    hpct_loops_split(count_of(op, call->n), 16384, backward_part, &s);
    return HPCT_OK;
}

static void destroy(hpct_op *op)
{
    free(op);
}

hpct_status hpct_cpu_make_relu(hpct_op **out, const hpct_op_spec *spec, const hpct_op_build *build)
{
    static const hpct_op_class class = {
        .forward = forward, .backward = backward, .destroy = destroy};
    hpct_op *op = calloc(1, sizeof *op);
    if (op == NULL)
        return hpct_fail_memory(sizeof *op);
    op->class = &class;
    op->spec = *spec;
    op->build = *build;
    op->backward_reads_dst = true;
    op->backward_keeps_diff_dst = true;
    *out = op;
    return HPCT_OK;
}
