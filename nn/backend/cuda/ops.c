/* Common parts of operations with own kernels. */
#include "nn/backend/cuda/ops.h"

#include "base/status.h"

#include <stdlib.h>

hpct_status hpct_cuda_launched(cudaError_t error, const hpct_op *op, const char *what)
{
    if (error == cudaSuccess)
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_INTERNAL, "%s %s: %s", hpct_op_kind_name(op->spec.kind), what,
                     hpct_cuda_error(error));
}

hpct_cuda_drawing hpct_cuda_drawing_of(const hpct_op *op, const hpct_op_call *call)
{
    hpct_graph_draw draw = hpct_op_draw(op, call);
    uint32_t tag = hpct_graph_draw_tag(&draw);
    hpct_cuda_gpu.draws = true;
    return hpct_cuda_gpu.recording
               ? (hpct_cuda_drawing){.tag = tag, .now = hpct_cuda_gpu.now}
               : (hpct_cuda_drawing){.seed = draw.seed,
                                     .tag = tag,
                                     .step = draw.step,
                                     .first_sample = (uint32_t) call->first_sample};
}

hpct_status hpct_cuda_new_op(hpct_op **out, const hpct_op_class *class, const hpct_op_spec *spec,
                             const hpct_op_build *build)
{
    HPCT_TRY(hpct_op_new(out, sizeof **out, class, spec, build));
    (*out)->adds_diff_src = true;
    return HPCT_OK;
}

hpct_status hpct_cuda_import(hpct_op *op, int which, const float *keras, float *arena)
{
    return hpct_cuda_from_host(arena, keras, op->param_floats[which] * sizeof *arena);
}

hpct_status hpct_cuda_export(hpct_op *op, int which, const float *arena, float *keras)
{
    return hpct_cuda_to_host(keras, arena, op->param_floats[which] * sizeof *keras);
}

#define COPY_APART ((size_t) 256) /* bytes, alignment */

void hpct_cuda_lay_copies(hpct_op *op, bool bias)
{
    size_t each = hpct_cuda_value_bytes(op->build.values);
    for (int i = HPCT_OP_KERNEL; i <= HPCT_OP_BIAS; i++) {
        op->param_copied[i] = i == HPCT_OP_KERNEL || bias;
        op->copy_offset[i] = op->copies_bytes;
        if (op->param_copied[i])
            op->copies_bytes +=
                (op->param_floats[i] * each + COPY_APART - 1) / COPY_APART * COPY_APART;
    }
}

void hpct_cuda_drop_copies(hpct_op *op)
{
    op->copies_bytes = 0;
    op->param_copied[HPCT_OP_KERNEL] = op->param_copied[HPCT_OP_BIAS] = false;
}
