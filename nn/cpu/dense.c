/* Dense by three matrix products. The kernel is kept transposed, [out][in], which leaves the
 * source's gradient and the kernel's gradient without any transposition of a large matrix; forward
 * computes the transposed result, whose transposition back is small. */
#include "nn/cpu/cpu.h"

#include "base/status.h"
#include "nn/cpu/loops.h"
#include "nn/cpu/shim.h"

#include <omp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS ((size_t) 512) /* of a block: with 128 rows of a kernel 256 KiB */

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

/* Both gradients of the inputs [first, first + count), which are columns of kernel and source. */
static hpct_status backward_columns(const hpct_op *op, const hpct_op_call *call, size_t first,
                                    size_t count)
{
    size_t rows = rows_of(op, call->n), in = (size_t) op->spec.dense.in,
           out = (size_t) op->spec.dense.out;
    float *kernel = call->param[HPCT_OP_KERNEL] + first;
    bool fused = op->param_fused[HPCT_OP_KERNEL];
    hpct_gemm diff_src = {
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
    hpct_gemm diff_kernel = {
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
        .c = fused ? kernel : call->grad[HPCT_OP_KERNEL] + first,
        .ldc = in,
    };
    hpct_status status = HPCT_OK;
    if (call->diff_src[0] != NULL) /* before a fused update changes the kernel */
        status = hpct_shim_gemm(&diff_src);
    return status == HPCT_OK ? hpct_shim_gemm(&diff_kernel) : status;
}

typedef struct column_job {
    const hpct_op *op;
    const hpct_op_call *call;
    atomic_int status; /* of the last block that failed */
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

/* A wide kernel goes block by block, one thread at each: what one product has brought into the
 * cache the other uses again, and a thread that is held up leaves its blocks to the others. */
static hpct_status backward(hpct_op *op, const hpct_op_call *call)
{
    size_t in = (size_t) op->spec.dense.in;
    hpct_loops_best()->mask_and_sum(rows_of(op, call->n), (size_t) op->spec.dense.out,
                                    op->spec.relu ? call->dst : NULL, call->diff_dst,
                                    op->spec.no_bias ? call->scratch : call->grad[HPCT_OP_BIAS]);
    if (in < 4 * COLUMNS * (size_t) omp_get_max_threads())
        return backward_columns(op, call, 0, in);
    column_job job = {.op = op, .call = call, .status = HPCT_OK};
    hpct_loops_each((in + COLUMNS - 1) / COLUMNS, backward_block, &job);
    hpct_status status = (hpct_status) atomic_load(&job.status);
    return status == HPCT_OK ? HPCT_OK /* messages stay with the thread that has them */
                             : hpct_fail(status, "a matrix product failed");
}

/* to[columns][rows] = from[rows][columns], in squares that the cache holds. */
static void transpose(size_t rows, size_t columns, const float *from, float *to)
{
    enum { SIDE = 32 };
    for (size_t r = 0; r < rows; r += SIDE)
        for (size_t c = 0; c < columns; c += SIDE)
            for (size_t i = c; i < c + SIDE && i < columns; i++)
                for (size_t k = r; k < r + SIDE && k < rows; k++)
                    to[i * rows + k] = from[k * columns + i];
}

/* Between [in][out] and [out][in]; the bias is as it is. */
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
    op->param_rows[HPCT_OP_KERNEL] = (size_t) spec->dense.out;
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
