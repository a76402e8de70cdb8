/* AveragePooling2D by oneDNN. */
#include "nn/backend/cpu/cpu.h"

#include "base/status.h"
#include "nn/backend/cpu/shim.h"

#include <stdlib.h>

typedef struct pool_op {
    hpct_op op;
    hpct_cpu_prim **forward, **backward; /* by batch size */
} pool_op;

static pool_op *pool_of(hpct_op *op)
{
    return (pool_op *) op;
}

static hpct_status forward(hpct_op *op, const hpct_op_call *call)
{
    void *args[] = {(void *) (uintptr_t) call->src[0], call->dst};
    return hpct_cpu_prim_execute(pool_of(op)->forward[call->batch], call->scratch, args);
}

static hpct_status backward(hpct_op *op, const hpct_op_call *call)
{
    if (call->diff_src[0] == NULL)
        return HPCT_OK;
    void *args[] = {call->diff_dst, call->diff_src[0]};
    return hpct_cpu_prim_execute(pool_of(op)->backward[call->batch], call->scratch, args);
}

static void destroy(hpct_op *op)
{
    pool_op *pool = pool_of(op);
    for (int i = 0; i < op->build.num_batch_sizes; i++) {
        if (pool->forward != NULL)
            hpct_cpu_prim_free(pool->forward[i]);
        if (pool->backward != NULL)
            hpct_cpu_prim_free(pool->backward[i]);
    }
    free(pool->forward);
    free(pool->backward);
    free(pool);
}

static void at_least(size_t *bytes, size_t needed)
{
    if (*bytes < needed)
        *bytes = needed;
}

hpct_status hpct_cpu_make_average_pool2d(hpct_op **out, const hpct_op_spec *spec,
                                         const hpct_op_build *build)
{
    static const hpct_op_class class = {
        .forward = forward, .backward = backward, .destroy = destroy};
    size_t num = (size_t) build->num_batch_sizes;
    HPCT_TRY(hpct_op_new(out, sizeof(pool_op), &class, spec, build));
    hpct_op *op = *out;
    pool_op *pool = pool_of(op);
    pool->forward = calloc(num, sizeof *pool->forward);
    pool->backward = calloc(num, sizeof *pool->backward);
    if (pool->forward == NULL || pool->backward == NULL)
        return hpct_fail_memory(2 * num * sizeof *pool->forward);
    for (size_t i = 0; i < num; i++) {
        int n = build->batch_sizes[i];
        HPCT_TRY(hpct_cpu_shim_pool_forward(&pool->forward[i], spec, n, build->training));
        if (build->training)
            HPCT_TRY(hpct_cpu_shim_pool_backward(&pool->backward[i], spec, n, pool->forward[i]));
        at_least(&op->scratch_bytes, hpct_cpu_prim_scratch_bytes(pool->forward[i]));
        if (build->training)
            at_least(&op->scratch_bytes, hpct_cpu_prim_scratch_bytes(pool->backward[i]));
    }
    return HPCT_OK;
}
