/* Average pooling, and activations of single elements over the whole batch as one row: a primitive
 * of oneDNN each way. */
#include "nn/backend/cpu/cpu.h"

#include "base/status.h"
#include "nn/backend/cpu/scratch.h"
#include "nn/backend/cpu/shim.h"

#include <stdlib.h>

/* Of a batch size. */
typedef struct pair {
    hpct_cpu_prim *forward, *backward;
} pair;

typedef struct prims_op {
    hpct_op op;
    pair *pairs; /* [build.num_batch_sizes] */
} prims_op;

static const pair *pair_of(hpct_op *op, const hpct_op_call *call)
{
    return &((prims_op *) op)->pairs[call->batch];
}

static hpct_status forward(hpct_op *op, const hpct_op_call *call)
{
    void *args[] = {(void *) (uintptr_t) call->src[0], call->dst};
    return hpct_cpu_prim_execute(pair_of(op, call)->forward, call->scratch, args);
}

static hpct_status pool_backward(hpct_op *op, const hpct_op_call *call)
{
    if (call->diff_src[0] == NULL)
        return HPCT_OK;
    void *args[] = {call->diff_dst, call->diff_src[0]};
    return hpct_cpu_prim_execute(pair_of(op, call)->backward, call->scratch, args);
}

static hpct_status eltwise_backward(hpct_op *op, const hpct_op_call *call)
{
    if (call->diff_src[0] == NULL)
        return HPCT_OK;
    const float *data = op->backward_reads_src ? call->src[0] : call->dst;
    void *args[] = {call->diff_dst, (void *) (uintptr_t) data, call->diff_src[0]};
    return hpct_cpu_prim_execute(pair_of(op, call)->backward, call->scratch, args);
}

static void destroy(hpct_op *op)
{
    pair *pairs = ((prims_op *) op)->pairs;
    for (int i = 0; pairs != NULL && i < op->build.num_batch_sizes; i++) {
        hpct_cpu_prim_free(pairs[i].forward);
        hpct_cpu_prim_free(pairs[i].backward);
    }
    free(pairs);
    free(op);
}

static hpct_status make_pool(pair *p, const hpct_op_spec *spec, int n, bool training)
{
    HPCT_TRY(hpct_cpu_shim_pool_forward(&p->forward, spec, n, training));
    return training ? hpct_cpu_shim_pool_backward(&p->backward, spec, n, p->forward) : HPCT_OK;
}

static hpct_status make_eltwise(pair *p, const hpct_op_spec *spec, int n, bool training)
{
    size_t count = (size_t) n * hpct_op_dst_floats(spec);
    HPCT_TRY(hpct_cpu_shim_eltwise_forward(&p->forward, spec, count, training));
    return training ? hpct_cpu_shim_eltwise_backward(&p->backward, spec, count, p->forward)
                    : HPCT_OK;
}

hpct_status hpct_cpu_make_prims(hpct_op **out, const hpct_op_spec *spec, const hpct_op_build *build)
{
    static const hpct_op_class pool = {
        .forward = forward, .backward = pool_backward, .destroy = destroy};
    static const hpct_op_class eltwise = {
        .forward = forward, .backward = eltwise_backward, .destroy = destroy};
    bool pools = spec->kind == HPCT_OP_AVERAGE_POOL2D;
    size_t num = (size_t) build->num_batch_sizes;
    HPCT_TRY(hpct_op_new(out, sizeof(prims_op), pools ? &pool : &eltwise, spec, build));
    pair *pairs = ((prims_op *) *out)->pairs = calloc(num, sizeof *pairs);
    if (pairs == NULL)
        return hpct_fail_memory(num * sizeof *pairs);
    for (size_t i = 0; i < num; i++) {
        HPCT_TRY((pools ? make_pool : make_eltwise)(&pairs[i], spec, build->batch_sizes[i],
                                                    build->training));
        hpct_cpu_at_least(&(*out)->scratch_bytes, hpct_cpu_prim_scratch_bytes(pairs[i].forward));
        if (build->training)
            hpct_cpu_at_least(&(*out)->scratch_bytes,
                              hpct_cpu_prim_scratch_bytes(pairs[i].backward));
    }
    return HPCT_OK;
}
