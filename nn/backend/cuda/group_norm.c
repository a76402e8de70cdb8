/* LayerNormalization and GroupNormalization. */
#include "nn/backend/cuda/ops.h"

#include "base/status.h"

static float *param_of(const hpct_op *op, float *const *params, hpct_graph_norm_param which)
{
    int index = hpct_op_norm_param(&op->spec, which);
    return index < 0 ? NULL : params[index];
}

static hpct_cuda_group_norm norm_of(const hpct_op *op, const hpct_op_call *call)
{
    return (hpct_cuda_group_norm){
        .queue = hpct_cuda_current_queue(),
        .type = hpct_cuda_number_of(op),
        .rows = (size_t) call->n * (size_t) op->spec.group.rows,
        .cells = op->spec.group.cells,
        .channels = op->spec.group.channels,
        .groups = op->spec.group.groups,
        .epsilon = op->spec.group.epsilon,
        .gamma = param_of(op, call->param, HPCT_GRAPH_NORM_GAMMA),
        .beta = param_of(op, call->param, HPCT_GRAPH_NORM_BETA),
        .notes = call->workspace,
    };
}

static hpct_status forward(hpct_op *op, const hpct_op_call *call)
{
    hpct_cuda_group_norm norm = norm_of(op, call);
    return hpct_cuda_launched(hpct_cuda_launch_group_norm(&norm, call->src[0], call->dst), op,
                              "forward");
}

static hpct_status backward(hpct_op *op, const hpct_op_call *call)
{
    hpct_cuda_group_norm norm = norm_of(op, call);
    cudaError_t error = cudaSuccess;
    if (op->num_params > 0)
        error =
            hpct_cuda_launch_group_norm_params(&norm, call->src[0], call->diff_dst, call->scratch,
                                               param_of(op, call->grad, HPCT_GRAPH_NORM_GAMMA),
                                               param_of(op, call->grad, HPCT_GRAPH_NORM_BETA));
    if (error == cudaSuccess && call->diff_src[0] != NULL)
        error = hpct_cuda_launch_group_norm_backward(&norm, call->src[0], call->diff_dst,
                                                     hpct_cuda_adds(call, 0), call->diff_src[0]);
    return hpct_cuda_launched(error, op, "backward");
}

hpct_status hpct_cuda_make_group_norm(hpct_op **out, const hpct_op_spec *spec,
                                      const hpct_op_build *build)
{
    static const hpct_op_class class = {.forward = forward,
                                        .backward = backward,
                                        .import_param = hpct_cuda_import,
                                        .export_param = hpct_cuda_export,
                                        .destroy = hpct_op_free};
    HPCT_TRY(hpct_cuda_new_op(out, &class, spec, build));
    hpct_op *op = *out;
    size_t rows = (size_t) hpct_op_largest_batch(build) * (size_t) spec->group.rows;
    op->workspace_bytes = 2 * rows * (size_t) spec->group.groups * sizeof(float);
    op->scratch_bytes = (size_t) hpct_cuda_group_norm_parts(rows, spec->group.cells) * 2 *
                        (size_t) spec->group.channels * sizeof(float);
    return HPCT_OK;
}
