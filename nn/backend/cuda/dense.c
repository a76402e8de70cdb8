/* Dense by three cuBLASLt products. The kernel is stored transposed, [out][in], as in the cpu
 * backend's fp32: both operands of forward are then contiguous along the summed axis, as newer
 * GPUs' TF32 tensor cores require. With 16-bit activations there is a copy of the kernel in that
 * type. An own kernel adds bias and ReLU. */
#include "nn/backend/cuda/cuda.h"

#include "base/fnv.h"
#include "base/status.h"
#include "nn/backend/cuda/buffers.h"
#include "nn/backend/cuda/import.h"
#include "nn/backend/cuda/ops.h"
#include "nn/backend/cuda/product.h"
#include "nn/backend/without.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct stage {
    hpct_cuda_lt_product *forward, *data, *weights;
} stage;

typedef struct dense_op {
    hpct_op op;
    cudaDataType_t type; /* of activations */
    stage *stages;       /* by batch size */
    size_t workspace;    /* its offset in scratch, after partial sums of the bias gradient */
    char slow[160];      /* op.slow */
} dense_op;

static size_t rows_of(const hpct_op *op, int n)
{
    return (size_t) n * (size_t) op->spec.dense.rows;
}

static hpct_status named(const hpct_op *op, hpct_status status)
{
    char what[64];
    if (status == HPCT_OK)
        return status;
    snprintf(what, sizeof what, "dense %d to %d", op->spec.dense.in, op->spec.dense.out);
    return hpct_fail_within(status, what);
}

static void *workspace_of(const dense_op *dense, const hpct_op_call *call)
{
    return (char *) call->scratch + dense->workspace;
}

/* ---- execution ---- */

static bool is_low(const dense_op *dense)
{
    return dense->type != CUDA_R_32F;
}

static const void *kernel_of(const dense_op *dense, const hpct_op_call *call)
{
    return is_low(dense) ? call->copies : call->param[HPCT_OP_KERNEL];
}

static hpct_status forward(hpct_op *op, const hpct_op_call *call)
{
    const dense_op *dense = (const dense_op *) op;
    const stage *s = &dense->stages[call->batch];
    const float *bias = op->spec.no_bias ? NULL : call->param[HPCT_OP_BIAS];
    hpct_status status = hpct_cuda_lt_run(s->forward, call->src[0], kernel_of(dense, call),
                                          call->dst, workspace_of(dense, call));
    if (status == HPCT_OK && (bias != NULL || op->spec.relu))
        status = HPCT_CUDA(hpct_cuda_bias_add(op->build.values, rows_of(op, call->n),
                                              (size_t) op->spec.dense.out, bias, op->spec.relu,
                                              call->dst));
    return named(op, status);
}

/* Computes the kernel gradient, or adds -rate times that to the kernel. */
static hpct_status backward_kernel(const hpct_op *op, const hpct_op_call *call, void *workspace)
{
    const dense_op *dense = (const dense_op *) op;
    bool fused = op->kernel_fused;
    return hpct_cuda_lt_run(dense->stages[call->batch].weights, call->diff_dst, call->src[0],
                            (fused ? call->param : call->grad)[HPCT_OP_KERNEL], workspace);
}

static hpct_status backward_data(const hpct_op *op, const hpct_op_call *call)
{
    const dense_op *dense = (const dense_op *) op;
    return call->diff_src[0] == NULL
               ? HPCT_OK
               : hpct_cuda_lt_run(dense->stages[call->batch].data, call->diff_dst,
                                  kernel_of(dense, call), call->diff_src[0],
                                  workspace_of(dense, call));
}

static hpct_status backward(hpct_op *op, const hpct_op_call *call)
{
    const dense_op *dense = (const dense_op *) op;
    float *bias = op->spec.no_bias || op->build.frozen ? NULL : call->grad[HPCT_OP_BIAS];
    bool tells = op->kernel_fused && !hpct_cuda_gpu.recording;
    hpct_status status = tells ? hpct_cuda_set_rate(call->learning_rate) : HPCT_OK;
    if (status == HPCT_OK)
        status = HPCT_CUDA(hpct_cuda_bias_mask_and_sum(
            op->build.values, rows_of(op, call->n), (size_t) op->spec.dense.out,
            op->spec.relu ? call->dst : NULL, call->diff_dst, bias, call->scratch));
    if (status == HPCT_OK)
        status = backward_data(op, call);
    if (status == HPCT_OK && !op->build.frozen) /* after the last read of the kernel */
        status = backward_kernel(op, call, workspace_of(dense, call));
    return named(op, status);
}

/* ---- creation ---- */

static void destroy(hpct_op *op)
{
    dense_op *dense = (dense_op *) op;
    for (int i = 0; dense->stages != NULL && i < op->build.num_batch_sizes; i++) {
        hpct_cuda_lt_free(dense->stages[i].forward);
        hpct_cuda_lt_free(dense->stages[i].data);
        hpct_cuda_lt_free(dense->stages[i].weights);
    }
    free(dense->stages);
    free(dense);
}

static hpct_status make_product(hpct_cuda_lt_product **out, const hpct_cuda_lt_spec *spec,
                                size_t *workspace)
{
    hpct_status status = hpct_cuda_lt_make(out, spec);
    if (status == HPCT_OK && *out != NULL && hpct_cuda_lt_workspace_bytes(*out) > *workspace)
        *workspace = hpct_cuda_lt_workspace_bytes(*out);
    return status;
}

static hpct_status make_batch(dense_op *dense, int i, size_t *sums, size_t *workspace)
{
    const hpct_op_build *build = &dense->op.build;
    const hpct_op_spec *spec = &dense->op.spec;
    stage *s = &dense->stages[i];
    size_t rows = rows_of(&dense->op, build->batch_sizes[i]), in = (size_t) spec->dense.in,
           out = (size_t) spec->dense.out;
    hpct_cuda_lt_spec forward = {.rows = rows,
                                 .columns = out,
                                 .depth = in,
                                 .b_transposed = true,
                                 .in = dense->type,
                                 .out = dense->type},
                      data = {.rows = rows,
                              .columns = in,
                              .depth = out,
                              .in = dense->type,
                              .out = dense->type};
    HPCT_TRY(make_product(&s->forward, &forward, workspace));
    if (build->training && build->needs_diff_src)
        HPCT_TRY(make_product(&s->data, &data, workspace));
    size_t bytes = build->training && !spec->no_bias
                       ? hpct_cuda_align_up(hpct_cuda_bias_scratch_bytes(build->values, rows, out))
                       : 0;
    *sums = bytes > *sums ? bytes : *sums;
    return HPCT_OK;
}

/* The gradient is written, and read again by the update. */
static void tell_slow(dense_op *dense)
{
    double bytes = 2.0 * sizeof(float) * (double) dense->op.param_floats[HPCT_OP_KERNEL];
    snprintf(dense->slow, sizeof dense->slow,
             "update in a pass of its own (%.3g ms): cuBLASLt has no algorithm that adds to the "
             "kernel",
             1e3 * bytes / hpct_cuda_gpu.bytes_per_second);
    dense->op.slow = dense->slow;
}

/* Products for the kernel gradient; as fused updates if requested and available for all batch
 * sizes. */
static hpct_status make_weights(dense_op *dense, size_t *workspace)
{
    const hpct_op_build *build = &dense->op.build;
    bool *fused = &dense->op.kernel_fused;
    hpct_status status = HPCT_OK;
    *fused = build->fuse_update && build->values != HPCT_FP16 &&
             !hpct_backend_without(HPCT_BACKEND_WITHOUT_FUSED_UPDATE);
    for (int i = 0; i < build->num_batch_sizes && status == HPCT_OK; i++) {
        hpct_cuda_lt_spec weights = {.rows = (size_t) dense->op.spec.dense.out,
                                     .columns = (size_t) dense->op.spec.dense.in,
                                     .depth = rows_of(&dense->op, build->batch_sizes[i]),
                                     .a_transposed = true,
                                     .in = dense->type,
                                     .out = CUDA_R_32F,
                                     .update = *fused};
        status = make_product(&dense->stages[i].weights, &weights, workspace);
        if (status != HPCT_OK || dense->stages[i].weights != NULL)
            continue;
        *fused = false;
        tell_slow(dense);
        for (; i > 0; i--) {
            hpct_cuda_lt_free(dense->stages[i - 1].weights);
            dense->stages[i - 1].weights = NULL;
        }
        i--; /* restart with the first batch size */
    }
    return status;
}

hpct_status hpct_cuda_make_dense(hpct_op **out, const hpct_op_spec *spec,
                                 const hpct_op_build *build)
{
    static const hpct_op_class class = {.forward = forward,
                                        .backward = backward,
                                        .import_param = hpct_cuda_import_param,
                                        .export_param = hpct_cuda_export_param,
                                        .destroy = destroy};
    static const char layout[] = "dense [out][in]"; /* same name as in nn/backend/cpu/dense.c */
    size_t num = (size_t) build->num_batch_sizes, workspace = 0;
    HPCT_TRY(hpct_op_new(out, sizeof(dense_op), &class, spec, build));
    hpct_op *op = *out;
    dense_op *dense = (dense_op *) op;
    dense->type = hpct_cuda_data_type(build->values);
    op->precision = build->values;
    op->param_rows[HPCT_OP_KERNEL] = (size_t) spec->dense.out;
    op->param_layout[HPCT_OP_KERNEL] = hpct_fnv(HPCT_FNV_START, layout, sizeof layout);
    if (is_low(dense))
        hpct_cuda_lay_copies(op, false);
    dense->stages = calloc(num, sizeof *dense->stages);
    if (dense->stages == NULL)
        return hpct_fail_memory(num * sizeof *dense->stages);
    hpct_status status = HPCT_OK;
    for (int i = 0; i < build->num_batch_sizes && status == HPCT_OK; i++)
        status = make_batch(dense, i, &dense->workspace, &workspace);
    if (status == HPCT_OK && build->training && !build->frozen)
        status = make_weights(dense, &workspace);
    op->scratch_bytes = dense->workspace + workspace;
    return named(op, status);
}
