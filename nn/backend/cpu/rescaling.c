/* Rescaling. */
#include "nn/backend/cpu/cpu.h"

#include "base/status.h"
#include "nn/backend/cpu/loops.h"

#include <stdlib.h>

typedef struct span {
    float scale, offset;
    const float *src;
    float *dst;
} span;

static void part(size_t first, size_t count, void *arg)
{
    const span *s = arg;
    hpct_cpu_loops_best()->rescaling(count, s->scale, s->offset, s->src + first, s->dst + first);
}

static hpct_status forward(hpct_op *op, const hpct_op_call *call)
{
    span s = {op->spec.scale, op->spec.offset, call->src[0], call->dst};
    hpct_cpu_loops_split((size_t) call->n * hpct_op_dst_floats(&op->spec), 16384, part, &s);
    return HPCT_OK;
}

static hpct_status backward(hpct_op *op, const hpct_op_call *call)
{
    span s = {op->spec.scale, 0, call->diff_dst, call->diff_src[0]};
    if (s.dst != NULL)
        hpct_cpu_loops_split((size_t) call->n * hpct_op_dst_floats(&op->spec), 16384, part, &s);
    return HPCT_OK;
}

hpct_status hpct_cpu_make_rescaling(hpct_op **out, const hpct_op_spec *spec,
                                    const hpct_op_build *build)
{
    static const hpct_op_class class = {
        .forward = forward, .backward = backward, .destroy = hpct_op_free};
    return hpct_op_new(out, sizeof **out, &class, spec, build);
}
