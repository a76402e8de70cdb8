/* Dense by three matrix products. The kernel is stored transposed, [out][in], so that neither
 * gradient needs to transpose a large matrix. Forward is oneDNN's matmul, which divides the result
 * among the threads; if there are too many threads for that, dnnl_sgemm, which divides the inputs:
 * it computes the transposed result, which is small to transpose back. */
#include "nn/backend/cpu/cpu.h"

#include "base/fnv.h"
#include "base/status.h"
#include "nn/backend/cpu/loops.h"
#include "nn/backend/cpu/scratch.h"
#include "nn/backend/cpu/shim.h"

#include <omp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS ((size_t) 512) /* per block: 256 KiB for a kernel of 128 rows */

#define TILE_ROWS ((size_t) 32) /* of the result: matmul's minimum per thread */
#define TILE_COLUMNS ((size_t) 64)

typedef struct dense_op {
    hpct_op op;
    hpct_cpu_prim **forward; /* by batch size; NULL entries: dnnl_sgemm */
    size_t result_bytes;     /* first part of scratch: transposed result; then scratchpads */
} dense_op;

static size_t rows_of(const hpct_op *op, int n)
{
    return (size_t) n * (size_t) op->spec.dense.rows;
}

static hpct_status forward_transposed(hpct_op *op, const hpct_op_call *call)
{
    size_t rows = rows_of(op, call->n), in = (size_t) op->spec.dense.in,
           out = (size_t) op->spec.dense.out;
    float *transposed = call->scratch; /* [out][rows] */
    hpct_cpu_gemm product = {
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
    hpct_status status = hpct_cpu_shim_gemm(&product);
    const float *bias = call->param[HPCT_OP_BIAS];
    if (op->spec.no_bias)
        bias = memset(transposed + rows * out, 0, out * sizeof *bias);
    if (status == HPCT_OK)
        hpct_cpu_loops_best()->bias_transposed(rows, out, transposed, bias, op->spec.relu,
                                               call->dst);
    return status;
}

static hpct_status forward(hpct_op *op, const hpct_op_call *call)
{
    const dense_op *dense = (const dense_op *) op;
    hpct_cpu_prim *prim = dense->forward[call->batch];
    void *args[] = {(void *) (uintptr_t) call->src[0], call->param[HPCT_OP_KERNEL], call->dst,
                    op->spec.no_bias ? NULL : call->param[HPCT_OP_BIAS]};
    return prim == NULL
               ? forward_transposed(op, call)
               : hpct_cpu_prim_execute(prim, hpct_cpu_scratch(call, dense->result_bytes), args);
}

/* Gradients of source and kernel for the inputs [first, first + count), columns of both. */
static hpct_status backward_columns(const hpct_op *op, const hpct_op_call *call, size_t first,
                                    size_t count)
{
    size_t rows = rows_of(op, call->n), in = (size_t) op->spec.dense.in,
           out = (size_t) op->spec.dense.out;
    float *kernel = call->param[HPCT_OP_KERNEL] + first;
    bool fused = op->kernel_fused, wanted = !op->build.frozen;
    hpct_cpu_gemm diff_src = {
        .trans_a = 'N',
        .trans_b = 'N',
        .m = rows,
        .n = count,
        .k = out,
        .alpha = 1,
        .a = call->diff_dst,
        .lda = out,
        .b = kernel,
        .ldb = in,
        .c = call->diff_src[0] + first,
        .ldc = in,
    };
    hpct_cpu_gemm diff_kernel = {
        .trans_a = 'T',
        .trans_b = 'N',
        .m = out,
        .n = count,
        .k = rows,
        .alpha = fused ? -call->learning_rate : 1,
        .beta = fused ? 1 : 0,
        .a = call->diff_dst,
        .lda = out,
        .b = call->src[0] + first,
        .ldb = in,
        .c = fused || !wanted ? kernel : call->grad[HPCT_OP_KERNEL] + first,
        .ldc = in,
    };
    /* before a fused update changes the kernel */
    if (call->diff_src[0] != NULL)
        HPCT_TRY(hpct_cpu_shim_gemm(&diff_src));
    if (wanted)
        HPCT_TRY(hpct_cpu_shim_gemm(&diff_kernel));
    if (!fused || !call->shows_gradients)
        return HPCT_OK;
    diff_kernel.alpha = 1;
    diff_kernel.beta = 0;
    diff_kernel.c = call->grad[HPCT_OP_KERNEL] + first;
    return hpct_cpu_shim_gemm(&diff_kernel);
}

typedef struct column_job {
    const hpct_op *op;
    const hpct_op_call *call;
    atomic_int status; /* of the last failed block */
} column_job;

static void backward_block(size_t block, void *arg)
{
    column_job *job = arg;
    size_t in = (size_t) job->op->spec.dense.in, first = block * COLUMNS;
    hpct_status status =
        backward_columns(job->op, job->call, first, in - first < COLUMNS ? in - first : COLUMNS);
    if (status != HPCT_OK)
        atomic_store(&job->status, (int) status);
}

/* A wide kernel is processed in blocks, one thread each, dynamically scheduled: the second product
 * reuses what the first has loaded to the cache. */
static hpct_status backward(hpct_op *op, const hpct_op_call *call)
{
    size_t in = (size_t) op->spec.dense.in;
    bool sums = !op->spec.no_bias && !op->build.frozen;
    if (op->spec.relu || sums)
        hpct_cpu_loops_best()->mask_and_sum(rows_of(op, call->n), (size_t) op->spec.dense.out,
                                            op->spec.relu ? call->dst : NULL, call->diff_dst,
                                            sums ? call->grad[HPCT_OP_BIAS] : call->scratch);
    if (in < 4 * COLUMNS * (size_t) omp_get_max_threads())
        return backward_columns(op, call, 0, in);
    column_job job = {.op = op, .call = call, .status = HPCT_OK};
    hpct_cpu_loops_each((in + COLUMNS - 1) / COLUMNS, backward_block, &job);
    hpct_status status = (hpct_status) atomic_load(&job.status);
    return status == HPCT_OK ? HPCT_OK /* error messages are per thread */
                             : hpct_fail(status, "a matrix product failed");
}

/* to[columns][rows] = from[rows][columns], in tiles that fit the cache. */
static void transpose(size_t rows, size_t columns, const float *from, float *to)
{
    enum { SIDE = 32 };
    for (size_t r = 0; r < rows; r += SIDE)
        for (size_t c = 0; c < columns; c += SIDE)
            for (size_t i = c; i < c + SIDE && i < columns; i++)
                for (size_t k = r; k < r + SIDE && k < rows; k++)
                    to[i * rows + k] = from[k * columns + i];
}

/* Transposes the kernel, [in][out] to [out][in]; copies the bias. */
static hpct_status import_param(hpct_op *op, int which, const float *keras, float *arena)
{
    size_t in = which == HPCT_OP_KERNEL ? (size_t) op->spec.dense.in : 1;
    transpose(in, (size_t) op->spec.dense.out, keras, arena);
    return HPCT_OK;
}

static hpct_status export_param(hpct_op *op, int which, const float *arena, float *keras)
{
    size_t in = which == HPCT_OP_KERNEL ? (size_t) op->spec.dense.in : 1;
    transpose((size_t) op->spec.dense.out, in, arena, keras);
    return HPCT_OK;
}

static void destroy(hpct_op *op)
{
    dense_op *dense = (dense_op *) op;
    for (int i = 0; dense->forward != NULL && i < op->build.num_batch_sizes; i++)
        hpct_cpu_prim_free(dense->forward[i]);
    free(dense->forward);
    free(dense);
}

/* Creates the forward products of all batch sizes, and computes the scratch of either way. */
static hpct_status make_forward(dense_op *dense)
{
    const hpct_op_build *build = &dense->op.build;
    const hpct_op_spec *spec = &dense->op.spec;
    size_t out = (size_t) spec->dense.out, prims = 0;
    hpct_status status = HPCT_OK;
    for (int i = 0; i < build->num_batch_sizes && status == HPCT_OK; i++) {
        size_t rows = rows_of(&dense->op, build->batch_sizes[i]),
               tiles =
                   ((rows + TILE_ROWS - 1) / TILE_ROWS) * ((out + TILE_COLUMNS - 1) / TILE_COLUMNS),
               bytes = hpct_cpu_padded((rows + 1) * out * sizeof(float));
        if (tiles < (size_t) omp_get_max_threads()) { /* + 1: zeros for a bias */
            dense->result_bytes = bytes > dense->result_bytes ? bytes : dense->result_bytes;
            continue;
        }
        hpct_cpu_product product = {.type = HPCT_FP32,
                                    .m = rows,
                                    .n = out,
                                    .k = (size_t) spec->dense.in,
                                    .trans_b = true,
                                    .bias = !spec->no_bias,
                                    .relu = spec->relu};
        status = hpct_cpu_shim_product(&dense->forward[i], &product);
        if (status == HPCT_OK && hpct_cpu_prim_scratch_bytes(dense->forward[i]) > prims)
            prims = hpct_cpu_prim_scratch_bytes(dense->forward[i]);
    }
    dense->op.scratch_bytes = dense->result_bytes + prims;
    if ((spec->no_bias || build->frozen) &&
        dense->op.scratch_bytes < (size_t) spec->dense.out * sizeof(float))
        dense->op.scratch_bytes = (size_t) spec->dense.out * sizeof(float); /* column sums */
    return status;
}

hpct_status hpct_cpu_make_dense(hpct_op **out, const hpct_op_spec *spec, const hpct_op_build *build)
{
    static const hpct_op_class class = {.forward = forward,
                                        .backward = backward,
                                        .import_param = import_param,
                                        .export_param = export_param,
                                        .destroy = destroy};
    static const char layout[] = "dense [out][in]";
    HPCT_TRY(hpct_op_new(out, sizeof(dense_op), &class, spec, build));
    hpct_op *op = *out;
    dense_op *dense = (dense_op *) op;
    op->param_rows[HPCT_OP_KERNEL] = (size_t) spec->dense.out;
    op->param_layout[HPCT_OP_KERNEL] = hpct_fnv(HPCT_FNV_START, layout, sizeof layout);
    op->kernel_fused = build->fuse_update && build->training;
    dense->forward = calloc((size_t) build->num_batch_sizes, sizeof(hpct_cpu_prim *));
    if (dense->forward == NULL)
        return hpct_fail_memory((size_t) build->num_batch_sizes * sizeof(hpct_cpu_prim *));
    return make_forward(dense);
}
