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

const hpct_op_class hpct_cpu_rescaling = {
    .forward = forward, .backward = backward, .destroy = hpct_op_free};
