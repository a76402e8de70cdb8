/* Dense by three matrix products of cuBLASLt. The kernel lies transposed, [out][in], as the cpu
 * backend's does in fp32: forward then reads both factors along the sums, which the TF32 units of
 * newer GPUs want. With activations in a shorter type there are copies of kernel and bias in it.
 * Where the library has no algorithm with bias and ReLU an own kernel adds them. */
#include "nn/cuda/cuda.h"

#include "base/status.h"
#include "nn/cuda/aside.h"
#include "nn/cuda/bias.h"
#include "nn/cuda/import.h"
#include "nn/cuda/ops.h"
#include "nn/cuda/product.h"

#include <stdio.h>
#include <stdlib.h>

#define APART ((size_t) 256) /* bytes, of buffers in scratch */

typedef struct stage {
    hpct_lt_product *forward, *data, *weights;
    bool fused; /* bias and ReLU are in `forward` */
} stage;

typedef struct dense_op {
    hpct_op op;
    cudaDataType_t type; /* of the activations */
    stage *stages;       /* by batch size */
    size_t workspace;    /* where it lies in the scratch, behind the sums of the bias' gradient */
} dense_op;

static size_t rows_of(const hpct_op *op, int n)
{
    return (size_t) n * (size_t) op->spec.dense.rows;
}

static size_t apart(size_t bytes)
{
    return (bytes + APART - 1) / APART * APART;
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

/* ---- the step ---- */

static bool is_low(const dense_op *dense)
{
    return dense->type != CUDA_R_32F;
}

static const void *kernel_of(const dense_op *dense, const hpct_op_call *call)
{
    return is_low(dense) ? call->copies : call->param[HPCT_OP_KERNEL];
}

static void *low_bias(const dense_op *dense, const hpct_op_call *call)
{
    return (char *) call->copies + dense->op.copy_offset[HPCT_OP_BIAS];
}

static hpct_status forward(hpct_op *op, const hpct_op_call *call)
{
    const dense_op *dense = (const dense_op *) op;
    const stage *s = &dense->stages[call->batch];
    const float *bias = op->spec.no_bias ? NULL : call->param[HPCT_OP_BIAS];
    const void *fused = bias != NULL && is_low(dense) ? low_bias(dense, call) : bias;
    hpct_status status = hpct_lt_run(s->forward, call->src[0], kernel_of(dense, call), fused,
                                     call->dst, workspace_of(dense, call));
    if (status == HPCT_OK && !s->fused)
        status =
            HPCT_CUDA(hpct_bias_add(hpct_gpu.stream, dense->type, rows_of(op, call->n),
                                    (size_t) op->spec.dense.out, bias, op->spec.relu, call->dst));
    return named(op, status);
}

/* The kernel's gradient, or -rate times that onto the kernel itself. */
static hpct_status backward_kernel(const hpct_op *op, const hpct_op_call *call, void *workspace)
{
    const dense_op *dense = (const dense_op *) op;
    bool fused = op->param_fused[HPCT_OP_KERNEL];
    return hpct_lt_run(dense->stages[call->batch].weights, call->diff_dst, call->src[0], NULL,
                       (fused ? call->param : call->grad)[HPCT_OP_KERNEL], workspace);
}

static hpct_status backward_data(const hpct_op *op, const hpct_op_call *call)
{
    const dense_op *dense = (const dense_op *) op;
    return call->diff_src[0] == NULL ? HPCT_OK
                                     : hpct_lt_run(dense->stages[call->batch].data, call->diff_dst,
                                                   kernel_of(dense, call), NULL, call->diff_src[0],
                                                   workspace_of(dense, call));
}

static hpct_status backward_kernel_aside(const hpct_op *op, const hpct_op_call *call)
{
    hpct_status status = hpct_cuda_aside();
    if (status == HPCT_OK)
        status = backward_kernel(op, call, call->scratch_aside);
    return hpct_cuda_back(status);
}

static hpct_gradient bias_gradient(const hpct_op *op, const hpct_op_call *call)
{
    return op->spec.no_bias ? (hpct_gradient){0} : hpct_cuda_gradient(op, call, HPCT_OP_BIAS);
}

static hpct_status backward(hpct_op *op, const hpct_op_call *call)
{
    const dense_op *dense = (const dense_op *) op;
    hpct_status status = hpct_cuda_tell_rate(op, call);
    if (status == HPCT_OK && !call->begun)
        status = HPCT_CUDA(hpct_bias_mask_and_sum(hpct_gpu.stream, dense->type,
                                                  rows_of(op, call->n), (size_t) op->spec.dense.out,
                                                  op->spec.relu ? call->dst : NULL, call->diff_dst,
                                                  bias_gradient(op, call), call->scratch));
    if (status == HPCT_OK && op->lingers)
        status = backward_kernel_aside(op, call);
    if (status == HPCT_OK)
        status = backward_data(op, call);
    if (status == HPCT_OK && !op->lingers) /* the kernel is not read any more */
        status = backward_kernel(op, call, workspace_of(dense, call));
    return named(op, status);
}

/* ---- with the loss ---- */

/* The parameters themselves are read, not their copies. */
hpct_status hpct_cuda_head(const hpct_head_call *c)
{
    const hpct_op *op = c->op;
    const hpct_op_call *call = c->call;
    hpct_head head = {.loss = hpct_cuda_loss_args(c->loss),
                      .in = op->spec.dense.in,
                      .kernel = call->param[HPCT_OP_KERNEL],
                      .bias = op->spec.no_bias ? NULL : call->param[HPCT_OP_BIAS],
                      .diff_kernel = hpct_cuda_gradient(op, call, HPCT_OP_KERNEL),
                      .diff_bias = bias_gradient(op, call),
                      .scratch = call->scratch};
    if (c->before != NULL) {
        head.mask = c->before->spec.relu;
        head.before_bias = bias_gradient(c->before, c->call_before);
    }
    hpct_status status = hpct_cuda_tell_rate(op, call);
    if (status == HPCT_OK)
        status = HPCT_CUDA(hpct_launch_head(hpct_cuda_queue(), hpct_cuda_number_of(op), &head,
                                            call->src[0], call->dst, call->diff_src[0]));
    return named(op, status);
}

/* ---- building ---- */

static void destroy(hpct_op *op)
{
    dense_op *dense = (dense_op *) op;
    for (int i = 0; dense->stages != NULL && i < op->build.num_batch_sizes; i++) {
        hpct_lt_free(dense->stages[i].forward);
        hpct_lt_free(dense->stages[i].data);
        hpct_lt_free(dense->stages[i].weights);
    }
    free(dense->stages);
    free(dense);
}

static hpct_status make_product(hpct_lt_product **out, const hpct_lt_spec *spec, size_t *workspace)
{
    hpct_status status = hpct_lt_make(out, spec);
    if (status == HPCT_OK && *out != NULL && hpct_lt_workspace_bytes(*out) > *workspace)
        *workspace = hpct_lt_workspace_bytes(*out);
    return status;
}

static hpct_status make_forward(dense_op *dense, stage *s, size_t rows, size_t *workspace)
{
    const hpct_op_spec *spec = &dense->op.spec;
    hpct_lt_spec product = {.rows = rows,
                            .columns = (size_t) spec->dense.out,
                            .depth = (size_t) spec->dense.in,
                            .b_transposed = true,
                            .in = dense->type,
                            .out = dense->type,
                            .bias = !spec->no_bias,
                            .relu = spec->relu};
    s->fused = true;
    hpct_status status = make_product(&s->forward, &product, workspace);
    if (status != HPCT_OK || s->forward != NULL)
        return status;
    s->fused = product.bias = product.relu = false;
    return make_product(&s->forward, &product, workspace);
}

static hpct_status make_batch(dense_op *dense, int i, size_t *sums, size_t *workspace)
{
    const hpct_op_build *build = &dense->op.build;
    const hpct_op_spec *spec = &dense->op.spec;
    stage *s = &dense->stages[i];
    size_t rows = rows_of(&dense->op, build->batch_sizes[i]), in = (size_t) spec->dense.in,
           out = (size_t) spec->dense.out;
    hpct_lt_spec data = {
        .rows = rows, .columns = in, .depth = out, .in = dense->type, .out = dense->type};
    hpct_status status = make_forward(dense, s, rows, workspace);
    if (status == HPCT_OK && build->training && build->needs_diff_src)
        status = make_product(&s->data, &data, workspace);
    size_t bytes = build->training && !spec->no_bias
                       ? apart(hpct_bias_scratch_bytes(dense->type, rows, out))
                       : 0;
    *sums = bytes > *sums ? bytes : *sums;
    return status;
}

/* Gradients of the kernel; where that is asked for, and all batch sizes can, as an update of it. */
static hpct_status make_weights(dense_op *dense, size_t *workspace)
{
    const hpct_op_build *build = &dense->op.build;
    bool *fused = &dense->op.param_fused[HPCT_OP_KERNEL];
    hpct_status status = HPCT_OK;
    *fused = build->fuse_update && build->values != HPCT_FP16;
    dense->op.param_fused[HPCT_OP_BIAS] = *fused && !dense->op.spec.no_bias;
    for (int i = 0; i < build->num_batch_sizes && status == HPCT_OK; i++) {
        hpct_lt_spec weights = {.rows = (size_t) dense->op.spec.dense.out,
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
        for (; i > 0; i--) {
            hpct_lt_free(dense->stages[i - 1].weights);
            dense->stages[i - 1].weights = NULL;
        }
        i--; /* from the first one again */
    }
    return status;
}

/* Not where one product would update the kernel that the other one reads. */
static hpct_status choose_way(dense_op *dense)
{
    const hpct_op *op = &dense->op;
    bool fused = op->param_fused[HPCT_OP_KERNEL];
    char what[160];
    if (!op->build.training || !op->build.needs_diff_src || (fused && !is_low(dense)))
        return HPCT_OK;
    snprintf(what, sizeof what, "dense %zu rows of %d to %d type %d%s%s%s",
             rows_of(op, op->build.batch_sizes[0]), op->spec.dense.in, op->spec.dense.out,
             (int) dense->type, op->spec.no_bias ? "" : " bias", op->spec.relu ? " relu" : "",
             fused ? " update" : "");
    return hpct_cuda_may_linger(&dense->op, what);
}

/* A small one at the end may be made with the loss. */
static void take_loss(dense_op *dense)
{
    hpct_op *op = &dense->op;
    const hpct_op_build *build = &op->build;
    op->takes_loss = build->training && op->spec.dense.rows == 1 && !op->spec.relu;
    for (int i = 0; i < build->num_batch_sizes && op->takes_loss; i++) {
        int n = build->batch_sizes[i];
        size_t scratch = hpct_head_scratch_bytes(n, op->spec.dense.in, op->spec.dense.out);
        op->takes_loss = hpct_head_fits(n, op->spec.dense.in, op->spec.dense.out);
        if (op->takes_loss && op->scratch_bytes < scratch)
            op->scratch_bytes = scratch;
    }
}

hpct_status hpct_cuda_make_dense(hpct_op **out, const hpct_op_spec *spec,
                                 const hpct_op_build *build)
{
    static const hpct_op_class class = {.forward = forward,
                                        .backward = backward,
                                        .import_param = hpct_import_param,
                                        .export_param = hpct_export_param,
                                        .destroy = destroy};
    static const char layout[] = "dense [out][in]"; /* as nn/cpu/dense.c */
    size_t num = (size_t) build->num_batch_sizes, workspace = 0;
    dense_op *dense = calloc(1, sizeof *dense);
    if (dense == NULL)
        return hpct_fail_memory(sizeof *dense);
    hpct_op *op = *out = &dense->op;
    dense->type = hpct_cuda_data_type(build->values);
    op->class = &class;
    op->spec = *spec;
    op->build = *build;
    op->precision = build->values;
    op->num_params = spec->no_bias ? 1 : 2;
    op->param_floats[HPCT_OP_KERNEL] = (size_t) spec->dense.in * (size_t) spec->dense.out;
    op->param_floats[HPCT_OP_BIAS] = (size_t) spec->dense.out;
    op->param_rows[HPCT_OP_KERNEL] = (size_t) spec->dense.out;
    op->param_layout[HPCT_OP_KERNEL] = hpct_hash(HPCT_HASH_START, layout, sizeof layout);
    op->backward_reads_src = true;
    op->backward_reads_dst = spec->relu;
    op->backward_keeps_diff_dst = !spec->relu;
    if (is_low(dense))
        hpct_cuda_lay_copies(op, !spec->no_bias);
    dense->stages = calloc(num, sizeof *dense->stages);
    if (dense->stages == NULL)
        return hpct_fail_memory(num * sizeof *dense->stages);
    hpct_status status = HPCT_OK;
    for (int i = 0; i < build->num_batch_sizes && status == HPCT_OK; i++)
        status = make_batch(dense, i, &dense->workspace, &workspace);
    if (status == HPCT_OK && build->training)
        status = make_weights(dense, &workspace);
    op->scratch_bytes = dense->workspace + workspace;
    take_loss(dense);
    if (status == HPCT_OK)
        status = choose_way(dense);
    return named(op, status);
}
