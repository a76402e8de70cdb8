/* Dense by three matrix products. The kernel is kept transposed, [out][in], which leaves the
 * source's gradient and the kernel's gradient without any transposition of a large matrix; forward
 * computes the transposed result, whose transposition back is small. */
#include "nn/cpu/cpu.h"

#include "base/status.h"
#include "nn/cpu/loops.h"
#include "nn/cpu/shim.h"

#include <stdlib.h>
#include <string.h>

static size_t rows_of(const hpct_op *op, int n)
{
    return (size_t) n * (size_t) op->spec.dense.rows;
}

static hpct_status forward(hpct_op *op, const hpct_op_call *call)
{
    size_t rows = rows_of(op, call->n), in = (size_t) op->spec.dense.in,
           out = (size_t) op->spec.dense.out;
    float *transposed = call->scratch; /* [out][rows] */
    hpct_gemm product = {
        .trans_a = 'N',
        .trans_b = 'T',
        .m = out,
        .n = rows,
        .k = in,
        .alpha = 1,
        .a = call->param[HPCT_OP_KERNEL],
        .lda = in,
        .b = call->src[0],
        .ldb = in,
        .c = transposed,
        .ldc = rows,
    };
    hpct_status status = hpct_shim_gemm(&product);
    const float *bias = call->param[HPCT_OP_BIAS];
    if (op->spec.no_bias)
        bias = memset(transposed + rows * out, 0, out * sizeof *bias);
    if (status == HPCT_OK)
        hpct_loops_best()->bias_transposed(rows, out, transposed, bias, op->spec.relu, call->dst);
    return status;
}

static hpct_status backward(hpct_op *op, const hpct_op_call *call)
{
    size_t rows = rows_of(op, call->n), in = (size_t) op->spec.dense.in,
           out = (size_t) op->spec.dense.out;
    float *kernel = call->param[HPCT_OP_KERNEL];
    hpct_loops_best()->mask_and_sum(rows, out, op->spec.relu ? call->dst : NULL, call->diff_dst,
                                    op->spec.no_bias ? call->scratch : call->grad[HPCT_OP_BIAS]);
    hpct_status status = HPCT_OK;
    if (call->diff_src[0] != NULL) { /* before a fused update changes the kernel */
        hpct_gemm product = {
            .trans_a = 'N',
            .trans_b = 'N',
            .m = rows,
            .n = in,
            .k = out,
            .alpha = 1,
            .a = call->diff_dst,
            .lda = out,
            .b = kernel,
            .ldb = in,
            .c = call->diff_src[0],
            .ldc = in,
        };
        status = hpct_shim_gemm(&product);
    }
    bool fused = op->param_fused[HPCT_OP_KERNEL];
    hpct_gemm product = {
        .trans_a = 'T',
        .trans_b = 'N',
        .m = out,
        .n = in,
        .k = rows,
        .alpha = fused ? -call->learning_rate : 1,
        .beta = fused ? 1 : 0,
        .a = call->diff_dst,
        .lda = out,
        .b = call->src[0],
        .ldb = in,
        .c = fused ? kernel : call->grad[HPCT_OP_KERNEL],
        .ldc = in,
    };
    return status == HPCT_OK ? hpct_shim_gemm(&product) : status;
}

/* Between [in][out] and [out][in]; the bias is as it is. */
static hpct_status import_param(hpct_op *op, int which, const float *keras, float *arena)
{
    size_t in = which == HPCT_OP_KERNEL ? (size_t) op->spec.dense.in : 1;
    size_t out = (size_t) op->spec.dense.out;
    for (size_t o = 0; o < out; o++)
        for (size_t i = 0; i < in; i++)
            arena[o * in + i] = keras[i * out + o];
    return HPCT_OK;
}

static hpct_status export_param(hpct_op *op, int which, const float *arena, float *keras)
{
    size_t in = which == HPCT_OP_KERNEL ? (size_t) op->spec.dense.in : 1;
    size_t out = (size_t) op->spec.dense.out;
    for (size_t i = 0; i < in; i++)
        for (size_t o = 0; o < out; o++)
            keras[i * out + o] = arena[o * in + i];
    return HPCT_OK;
}

static void destroy(hpct_op *op)
{
    free(op);
}

hpct_status hpct_cpu_make_dense(hpct_op **out, const hpct_op_spec *spec, const hpct_op_build *build)
{
    static const hpct_op_class class = {.forward = forward,
                                        .backward = backward,
                                        .import_param = import_param,
                                        .export_param = export_param,
                                        .destroy = destroy};
    static const char layout[] = "dense [out][in]";
    hpct_op *op = calloc(1, sizeof *op);
    if (op == NULL)
        return hpct_fail_memory(sizeof *op);
    op->class = &class;
    op->spec = *spec;
    op->build = *build;
    op->num_params = spec->no_bias ? 1 : 2;
    op->param_floats[HPCT_OP_KERNEL] = (size_t) spec->dense.in * (size_t) spec->dense.out;
    op->param_floats[HPCT_OP_BIAS] = (size_t) spec->dense.out;
    op->param_layout[HPCT_OP_KERNEL] = hpct_hash(HPCT_HASH_START, layout, sizeof layout);
    op->param_fused[HPCT_OP_KERNEL] = build->fuse_update && build->training;
    op->backward_reads_src = true;
    op->backward_reads_dst = spec->relu;
    op->backward_keeps_diff_dst = !spec->relu;
    int largest = 0;
    for (int i = 0; i < build->num_batch_sizes; i++)
        largest = build->batch_sizes[i] > largest ? build->batch_sizes[i] : largest;
    /* The transposed result; behind it zeros for a bias. */
    op->scratch_bytes = (rows_of(op, largest) + 1) * (size_t) spec->dense.out * sizeof(float);
    *out = op;
    return HPCT_OK;
}
