/* Activations of single elements: vector loops for those that are cheaper than oneDNN's call. */
#include "nn/backend/cpu/cpu.h"

#include "base/status.h"
#include "nn/backend/cpu/loops.h"
#include "nn/backend/cpu/shim.h"
#include "nn/backend/ref/ref.h"

#define LEAST 16384 /* floats per thread, at least */

typedef struct span {
    const hpct_op_spec *spec;
    const float *a, *b;
    float *out;
} span;

static void relu(size_t first, size_t count, void *arg)
{
    const span *s = arg;
    hpct_cpu_loops_best()->relu_forward(count, s->a + first, s->out + first);
}

static void relu_back(size_t first, size_t count, void *arg)
{
    const span *s = arg;
    hpct_cpu_loops_best()->relu_backward(count, s->a + first, s->b + first, s->out + first);
}

static void leaky(size_t first, size_t count, void *arg)
{
    const span *s = arg;
    hpct_cpu_loops_best()->leaky_forward(count, s->spec, s->a + first, s->out + first);
}

static void leaky_back(size_t first, size_t count, void *arg)
{
    const span *s = arg;
    hpct_cpu_loops_best()->leaky_backward(count, s->spec, s->a + first, s->b + first,
                                          s->out + first);
}

static void hard_sigmoid(size_t first, size_t count, void *arg)
{
    const span *s = arg;
    hpct_cpu_loops_best()->hard_sigmoid_forward(count, s->a + first, s->out + first);
}

static void hard_sigmoid_back(size_t first, size_t count, void *arg)
{
    const span *s = arg;
    hpct_cpu_loops_best()->hard_sigmoid_backward(count, s->a + first, s->b + first, s->out + first);
}

static const struct {
    void (*forward)(size_t first, size_t count, void *span);
    void (*backward)(size_t first, size_t count, void *span);
} loops[HPCT_OP_KINDS] = {
    [HPCT_OP_RELU] = {relu, relu_back},
    [HPCT_OP_LEAKY_RELU] = {leaky, leaky_back},
    [HPCT_OP_HARD_SIGMOID] = {hard_sigmoid, hard_sigmoid_back},
};

static size_t count_of(const hpct_op *op, int n)
{
    return (size_t) n * hpct_op_dst_floats(&op->spec);
}

static hpct_status forward(hpct_op *op, const hpct_op_call *call)
{
    span s = {.spec = &op->spec, .a = call->src[0], .out = call->dst};
    hpct_cpu_loops_split(count_of(op, call->n), LEAST, loops[op->spec.kind].forward, &s);
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
    hpct_cpu_loops_split(count_of(op, call->n), LEAST, loops[op->spec.kind].backward, &s);
    return HPCT_OK;
}

hpct_status hpct_cpu_make_activation(hpct_op **out, const hpct_op_spec *spec,
                                     const hpct_op_build *build)
{
    static const hpct_op_class class = {
        .forward = forward, .backward = backward, .destroy = hpct_op_free};
    if (loops[spec->kind].forward != NULL)
        return hpct_op_new(out, sizeof **out, &class, spec, build);
    if (hpct_cpu_shim_has_eltwise(spec))
        return hpct_cpu_make_prims(out, spec, build);
    return hpct_ref_make_op(out, spec, build);
}
