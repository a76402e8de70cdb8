/* Dense and 1x1 convolutions in bf16, as three matrix products. Source, kernel and the result's
 * gradient are converted to bf16 once each; results and gradients are fp32. Keras' layout.
 *
 * Where oneDNN is known to compute a product's inner size wrongly (known_bad.h), that side is made
 * longer by zeros: rows behind the matrices, which are there in any case, and a wide copy of those
 * whose columns are concerned. All matrices stay dense: with other strides oneDNN 3.7 to 3.7.2 is
 * wrong on AMX. */
#include "nn/backend/cpu/cpu.h"

#include "base/status.h"
#include "nn/backend/cpu/bf16.h"
#include "nn/backend/cpu/scratch.h"
#include "nn/backend/cpu/shim.h"
#include "nn/backend/without.h"

#include <stdlib.h>
#include <string.h>

typedef struct product_op {
    hpct_op op;
    size_t rows, in, out;                       /* rows: per sample */
    size_t in_depth, out_depth;                 /* `in` and `out` as inner sizes: depth_of */
    hpct_cpu_prim **forward, **data, **weights; /* by batch size */
    size_t wide_kernel;                         /* offset in copies; the kernel is at 0 */
    size_t scaled, sums, wide, prims; /* offsets in scratch; the result's gradient is at 0 */
} product_op;

static product_op *product_of(hpct_op *op)
{
    return (product_op *) op;
}

static size_t depth_of(size_t k)
{
    const hpct_cpu_onednn library = hpct_cpu_shim_library(),
                          worst = {.version = 30700, .amx = true};
    return hpct_cpu_product_depth(
        hpct_backend_without(HPCT_BACKEND_WITHOUT_UNPADDED) ? &worst : &library, k);
}

/* Zeros behind a matrix, so that its rows can be an inner size. */
static void add_rows(size_t rows, size_t columns, hpct_backend_bf16 *matrix)
{
    memset(matrix + rows * columns, 0, (depth_of(rows) - rows) * columns * sizeof *matrix);
}

/* The matrix, or a copy of it at `wide` whose columns can be an inner size. */
static hpct_backend_bf16 *widened(size_t rows, size_t columns, size_t depth,
                                  hpct_backend_bf16 *matrix, void *wide)
{
    if (depth == columns)
        return matrix;
    hpct_cpu_widen_bf16(rows, columns, depth, matrix, wide);
    return wide;
}

static hpct_backend_bf16 *wide_kernel(const product_op *p, const hpct_op_call *call)
{
    return (hpct_backend_bf16 *) (void *) ((char *) call->copies + p->wide_kernel);
}

static hpct_status refresh(hpct_op *op, const hpct_op_call *call)
{
    const product_op *p = product_of(op);
    hpct_cpu_to_bf16(p->in * p->out, call->param[HPCT_OP_KERNEL], call->copies);
    add_rows(p->in, p->out, call->copies);
    widened(p->in, p->out, p->out_depth, call->copies, wide_kernel(p, call));
    return HPCT_OK;
}

static hpct_status forward(hpct_op *op, const hpct_op_call *call)
{
    const product_op *p = product_of(op);
    size_t rows = (size_t) call->n * p->rows;
    hpct_cpu_to_bf16(rows * p->in, call->src[0], call->workspace);
    add_rows(rows, p->in, call->workspace);
    void *src = widened(rows, p->in, p->in_depth, call->workspace, hpct_cpu_scratch(call, p->wide));
    void *args[] = {src, call->copies, call->dst,
                    op->spec.no_bias ? NULL : call->param[HPCT_OP_BIAS]};
    return hpct_cpu_prim_execute(p->forward[call->batch], hpct_cpu_scratch(call, p->prims), args);
}

static void convert_diff(const hpct_cpu_low_diff *diff)
{
    hpct_cpu_diff_to_bf16(diff);
    add_rows(diff->rows, diff->out, diff->low);
}

/* By the product that adds to its result. */
static hpct_status store_gradient(const product_op *p, const hpct_op_call *call,
                                  const hpct_cpu_low_diff *diff)
{
    float *gradient = call->grad[HPCT_OP_KERNEL];
    void *args[] = {call->workspace, diff->low, gradient};
    memset(gradient, 0, p->in * p->out * sizeof *gradient);
    return hpct_cpu_prim_execute(p->weights[call->batch], hpct_cpu_scratch(call, p->prims), args);
}

/* Computes the kernel gradient, or with a fused update adds -rate times that to the kernel. */
static hpct_status backward_weights(const product_op *p, const hpct_op_call *call,
                                    hpct_cpu_low_diff *diff)
{
    bool fused = p->op.kernel_fused;
    if (fused && call->shows_gradients)
        HPCT_TRY(store_gradient(p, call, diff));
    if (fused) {
        diff->factor = -call->learning_rate;
        diff->low = hpct_cpu_scratch(call, p->scaled);
        diff->sums = NULL;
        convert_diff(diff);
    }
    void *args[] = {call->workspace, diff->low, (fused ? call->param : call->grad)[HPCT_OP_KERNEL]};
    return hpct_cpu_prim_execute(p->weights[call->batch], hpct_cpu_scratch(call, p->prims), args);
}

static hpct_status backward_data(const product_op *p, const hpct_op_call *call,
                                 const hpct_cpu_low_diff *diff)
{
    void *low =
             widened(diff->rows, p->out, p->out_depth, diff->low, hpct_cpu_scratch(call, p->wide)),
         *args[] = {low, wide_kernel(p, call), call->diff_src[0]};
    return hpct_cpu_prim_execute(p->data[call->batch], hpct_cpu_scratch(call, p->prims), args);
}

static hpct_status backward(hpct_op *op, const hpct_op_call *call)
{
    const product_op *p = product_of(op);
    bool sums = !op->spec.no_bias && !op->build.frozen;
    hpct_cpu_low_diff diff = {.rows = (size_t) call->n * p->rows,
                              .out = p->out,
                              .dst = op->spec.relu ? call->dst : NULL,
                              .diff = call->diff_dst,
                              .factor = 1,
                              .low = call->scratch,
                              .sums = sums ? hpct_cpu_scratch(call, p->sums) : NULL};
    convert_diff(&diff);
    if (sums)
        memcpy(call->grad[HPCT_OP_BIAS], diff.sums, p->out * sizeof *diff.sums);
    if (call->diff_src[0] != NULL)
        HPCT_TRY(backward_data(p, call, &diff));
    return op->build.frozen ? HPCT_OK : backward_weights(p, call, &diff);
}

static void free_prims(hpct_cpu_prim **prims, int count)
{
    for (int i = 0; prims != NULL && i < count; i++)
        hpct_cpu_prim_free(prims[i]);
    free(prims);
}

static void destroy(hpct_op *op)
{
    product_op *p = product_of(op);
    free_prims(p->forward, op->build.num_batch_sizes);
    free_prims(p->data, op->build.num_batch_sizes);
    free_prims(p->weights, op->build.num_batch_sizes);
    free(p);
}

static hpct_status make_prim(hpct_cpu_prim **out, const hpct_cpu_product *product, size_t *scratch)
{
    hpct_status status = hpct_cpu_shim_product(out, product);
    if (status == HPCT_OK && hpct_cpu_prim_scratch_bytes(*out) > *scratch)
        *scratch = hpct_cpu_prim_scratch_bytes(*out);
    return status;
}

static hpct_status make_batch(product_op *p, int i, size_t *scratch)
{
    const hpct_op_build *build = &p->op.build;
    const hpct_op_spec *spec = &p->op.spec;
    size_t rows = (size_t) build->batch_sizes[i] * p->rows;
    hpct_cpu_product forward = {.type = HPCT_BF16,
                                .m = rows,
                                .n = p->out,
                                .k = p->in_depth,
                                .bias = !spec->no_bias,
                                .relu = spec->relu},
                     data = {.type = HPCT_BF16,
                             .m = rows,
                             .n = p->in,
                             .k = p->out_depth,
                             .trans_b = true},
                     weights = {.type = HPCT_BF16,
                                .m = p->in,
                                .n = p->out,
                                .k = depth_of(rows),
                                .trans_a = true,
                                .add = p->op.kernel_fused};
    HPCT_TRY(make_prim(&p->forward[i], &forward, scratch));
    if (build->needs_diff_src)
        HPCT_TRY(make_prim(&p->data[i], &data, scratch));
    if (build->training && !build->frozen)
        HPCT_TRY(make_prim(&p->weights[i], &weights, scratch));
    return HPCT_OK;
}

bool hpct_cpu_product_fits(const hpct_op_spec *spec)
{
    const hpct_graph_window *w = &spec->window;
    if (spec->kind == HPCT_OP_DENSE)
        return true;
    return spec->kind == HPCT_OP_CONV2D && w->kernel_h == 1 && w->kernel_w == 1 &&
           w->out_h == w->in_h && w->out_w == w->in_w && w->groups == 1;
}

/* Sets rows, in and out for both kinds. */
static void take_sizes(product_op *p, const hpct_op_spec *spec)
{
    const hpct_graph_window *w = &spec->window;
    bool dense = spec->kind == HPCT_OP_DENSE;
    p->rows = dense ? (size_t) spec->dense.rows : (size_t) w->out_h * (size_t) w->out_w;
    p->in = (size_t) (dense ? spec->dense.in : w->in_c);
    p->out = (size_t) (dense ? spec->dense.out : w->out_c);
    p->in_depth = depth_of(p->in);
    p->out_depth = depth_of(p->out);
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Sets the sizes of all memory. `rows`: of the largest batch, with zeros behind; `scratch`: of the
 * primitives. */
static void lay_out(product_op *p, size_t rows, size_t scratch)
{
    hpct_op *op = &p->op;
    bool training = op->build.training;
    size_t kernel = p->in_depth * p->out * sizeof(hpct_backend_bf16),
           diff = hpct_cpu_padded(rows * p->out * sizeof(hpct_backend_bf16)),
           sums = hpct_cpu_padded(HPCT_CPU_LOW_DIFF_PARTS * p->out * sizeof(float)),
           widest = larger(p->in_depth > p->in ? p->in_depth : 0,
                           training && p->out_depth > p->out ? p->out_depth : 0);
    op->param_floats[HPCT_OP_KERNEL] = p->in * p->out;
    op->param_floats[HPCT_OP_BIAS] = p->out;
    op->workspace_bytes = rows * p->in * sizeof(hpct_backend_bf16);
    op->copies_bytes = kernel;
    if (p->out_depth > p->out) {
        p->wide_kernel = hpct_cpu_padded(kernel);
        op->copies_bytes = p->wide_kernel + p->in * p->out_depth * sizeof(hpct_backend_bf16);
    }
    p->scaled = training ? diff : 0;
    p->sums = p->scaled + (op->kernel_fused ? diff : 0);
    p->wide = p->sums + (training ? sums : 0);
    p->prims = p->wide + hpct_cpu_padded(rows * widest * sizeof(hpct_backend_bf16));
    op->scratch_bytes = p->prims + scratch;
}

hpct_status hpct_cpu_make_product(hpct_op **out, const hpct_op_spec *spec,
                                  const hpct_op_build *build)
{
    static const hpct_op_class class = {
        .forward = forward, .backward = backward, .refresh = refresh, .destroy = destroy};
    size_t num = (size_t) build->num_batch_sizes, rows = 0, scratch = 0;
    HPCT_TRY(hpct_op_new(out, sizeof(product_op), &class, spec, build));
    hpct_op *op = *out;
    product_op *p = (product_op *) op;
    op->precision = HPCT_BF16;
    /* few rows, as in a Dense: memory traffic of the kernel dominates */
    op->kernel_fused = build->fuse_update && build->training && spec->kind == HPCT_OP_DENSE;
    take_sizes(p, spec);
    p->forward = calloc(num, sizeof(hpct_cpu_prim *));
    p->data = calloc(num, sizeof(hpct_cpu_prim *));
    p->weights = calloc(num, sizeof(hpct_cpu_prim *));
    if (p->forward == NULL || p->data == NULL || p->weights == NULL)
        return hpct_fail_memory(3 * num * sizeof(hpct_cpu_prim *));
    hpct_status status = HPCT_OK;
    for (int i = 0; i < build->num_batch_sizes && status == HPCT_OK; i++) {
        size_t these = (size_t) build->batch_sizes[i] * p->rows;
        rows = larger(rows, depth_of(these));
        status = make_batch(p, i, &scratch);
    }
    op->backward_reads_src = false; /* the workspace has it in bf16 */
    op->backward_keeps_diff_dst = true;
    lay_out(p, rows, scratch);
    return status;
}
