/* ReLU with settings, LeakyReLU and hard sigmoid. */
#include "nn/backend/cpu/cpu.h"

#include "base/status.h"
#include "nn/backend/cpu/loops.h"

#include <stdlib.h>

#define LEAST 16384 /* floats per thread, at least */

typedef struct span {
    const hpct_op_spec *spec;
    const float *a, *b;
    float *out;
} span;

static size_t count_of(const hpct_op *op, int n)
{
    return (size_t) n * hpct_op_dst_floats(&op->spec);
}

static void leaky_part(size_t first, size_t count, void *arg)
{
    const span *s = arg;
    hpct_loops_best()->leaky_forward(count, s->spec, s->a + first, s->out + first);
}

static void leaky_back(size_t first, size_t count, void *arg)
{
    const span *s = arg;
    hpct_loops_best()->leaky_backward(count, s->spec, s->a + first, s->b + first, s->out + first);
}

static void sigmoid_part(size_t first, size_t count, void *arg)
{
    const span *s = arg;
    hpct_loops_best()->hard_sigmoid_forward(count, s->a + first, s->out + first);
}

static void sigmoid_back(size_t first, size_t count, void *arg)
{
    const span *s = arg;
    hpct_loops_best()->hard_sigmoid_backward(count, s->a + first, s->b + first, s->out + first);
}

static bool is_leaky(const hpct_op *op)
{
    return op->spec.kind == HPCT_OP_LEAKY_RELU;
}

static hpct_status forward(hpct_op *op, const hpct_op_call *call)
{
    span s = {.spec = &op->spec, .a = call->src[0], .out = call->dst};
    hpct_loops_split(count_of(op, call->n), LEAST, is_leaky(op) ? leaky_part : sigmoid_part, &s);
    return HPCT_OK;
}

static hpct_status backward(hpct_op *op, const hpct_op_call *call)
{
    if (call->diff_src[0] == NULL)
        return HPCT_OK;
    span s = {.spec = &op->spec,
              .a = op->backward_reads_src ? call->src[0] : call->dst,
              .b = call->diff_dst,
              .out = call->diff_src[0]};
    hpct_loops_split(count_of(op, call->n), LEAST, is_leaky(op) ? leaky_back : sigmoid_back, &s);
    return HPCT_OK;
}

static void destroy(hpct_op *op)
{
    free(op);
}

hpct_status hpct_cpu_make_piecewise(hpct_op **out, const hpct_op_spec *spec,
                                    const hpct_op_build *build)
{
    static const hpct_op_class class = {
        .forward = forward, .backward = backward, .destroy = destroy};
    hpct_op *op = calloc(1, sizeof *op);
    if (op == NULL)
        return hpct_fail_memory(sizeof *op);
    op->class = &class;
    op->spec = *spec;
    op->build = *build;
    op->backward_reads_src = hpct_op_gradient_from_src(spec->kind);
    op->backward_reads_dst = !op->backward_reads_src;
    op->backward_keeps_diff_dst = true;
    *out = op;
    return HPCT_OK;
}
