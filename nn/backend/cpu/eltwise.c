/* Activations of single elements by oneDNN, over the whole batch as one row. */
#include "nn/backend/cpu/cpu.h"

#include "base/status.h"
#include "nn/backend/cpu/shim.h"

#include <stdlib.h>

typedef struct eltwise_op {
    hpct_op op;
    hpct_cpu_prim **forward, **backward; /* by batch size */
} eltwise_op;

static eltwise_op *eltwise_of(hpct_op *op)
{
    return (eltwise_op *) op;
}

static hpct_status forward(hpct_op *op, const hpct_op_call *call)
{
    void *args[] = {(void *) (uintptr_t) call->src[0], call->dst};
    return hpct_cpu_prim_execute(eltwise_of(op)->forward[call->batch], call->scratch, args);
}

static hpct_status backward(hpct_op *op, const hpct_op_call *call)
{
    if (call->diff_src[0] == NULL)
        return HPCT_OK;
    const float *data = op->backward_reads_src ? call->src[0] : call->dst;
    void *args[] = {call->diff_dst, (void *) (uintptr_t) data, call->diff_src[0]};
    return hpct_cpu_prim_execute(eltwise_of(op)->backward[call->batch], call->scratch, args);
}

static void destroy(hpct_op *op)
{
    eltwise_op *eltwise = eltwise_of(op);
    for (int i = 0; i < op->build.num_batch_sizes; i++) {
        if (eltwise->forward != NULL)
            hpct_cpu_prim_free(eltwise->forward[i]);
        if (eltwise->backward != NULL)
            hpct_cpu_prim_free(eltwise->backward[i]);
    }
    free(eltwise->forward);
    free(eltwise->backward);
    free(eltwise);
}

static void at_least(size_t *bytes, size_t needed)
{
    if (*bytes < needed)
        *bytes = needed;
}

hpct_status hpct_cpu_make_eltwise(hpct_op **out, const hpct_op_spec *spec,
                                  const hpct_op_build *build)
{
    static const hpct_op_class class = {
        .forward = forward, .backward = backward, .destroy = destroy};
    size_t num = (size_t) build->num_batch_sizes;
    HPCT_TRY(hpct_op_new(out, sizeof(eltwise_op), &class, spec, build));
    hpct_op *op = *out;
    eltwise_op *eltwise = eltwise_of(op);
    eltwise->forward = calloc(num, sizeof *eltwise->forward);
    eltwise->backward = calloc(num, sizeof *eltwise->backward);
    if (eltwise->forward == NULL || eltwise->backward == NULL)
        return hpct_fail_memory(2 * num * sizeof *eltwise->forward);
    hpct_status status = HPCT_OK;
    for (size_t i = 0; i < num && status == HPCT_OK; i++) {
        size_t count =
            (size_t) build->batch_sizes[i] * (size_t) spec->dense.rows * (size_t) spec->dense.out;
        status = hpct_cpu_shim_eltwise_forward(&eltwise->forward[i], spec, count, build->training);
        if (status == HPCT_OK && build->training)
            status = hpct_cpu_shim_eltwise_backward(&eltwise->backward[i], spec, count,
                                                    eltwise->forward[i]);
        if (status != HPCT_OK)
            break;
        at_least(&op->scratch_bytes, hpct_cpu_prim_scratch_bytes(eltwise->forward[i]));
        if (build->training)
            at_least(&op->scratch_bytes, hpct_cpu_prim_scratch_bytes(eltwise->backward[i]));
    }
    return status;
}
