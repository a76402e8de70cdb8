/* Conv2D in bf16 by oneDNN. The arena has the kernel in Keras' layout; the primitives read copies
 * of it, in bf16 and in the layout they chose, remade after each update. Results and gradients are
 * fp32. */
#include "nn/backend/cpu/cpu.h"

#include "base/status.h"
#include "nn/backend/cpu/bf16.h"
#include "nn/backend/cpu/scratch.h"
#include "nn/backend/cpu/shim.h"

#include <stdlib.h>

/* A primitive, and the offset of its kernel among the copies. */
typedef struct reader {
    hpct_cpu_prim *prim;
    size_t offset;
} reader;

/* A primitive that computes the kernel gradient, and the reorder to the arena (NULL: writes
 * there). */
typedef struct writer {
    hpct_cpu_prim *prim, *reorder;
} writer;

typedef struct copy {
    hpct_cpu_kernel_layout *layout;
    hpct_cpu_prim *reorder; /* from the arena */
    size_t offset;
} copy;

typedef struct conv_op {
    hpct_op op;
    hpct_cpu_kernel_layout *arena;
    reader *forward, *data; /* by batch size */
    writer *weights;        /* by batch size */
    copy *copies;           /* one per layout that readers chose */
    int num_copies;
    size_t kernel, prims; /* offsets in the scratch: kernel gradient in another layout; scratchpad.
                             The result's gradient is at 0 */
} conv_op;

static conv_op *conv_of(hpct_op *op)
{
    return (conv_op *) op;
}

static hpct_status refresh(hpct_op *op, const hpct_op_call *call)
{
    const conv_op *conv = conv_of(op);
    for (int i = 0; i < conv->num_copies; i++) {
        void *args[] = {call->param[HPCT_OP_KERNEL],
                        (char *) call->copies + conv->copies[i].offset};
        HPCT_TRY(hpct_cpu_prim_execute(conv->copies[i].reorder, hpct_cpu_scratch(call, conv->prims),
                                       args));
    }
    return HPCT_OK;
}

static hpct_status forward(hpct_op *op, const hpct_op_call *call)
{
    const conv_op *conv = conv_of(op);
    const reader *r = &conv->forward[call->batch];
    void *args[] = {call->workspace, (char *) call->copies + r->offset, call->dst,
                    op->spec.no_bias ? NULL : call->param[HPCT_OP_BIAS]};
    hpct_cpu_to_bf16((size_t) call->n * hpct_op_src_floats(&op->spec, 0), call->src[0],
                     call->workspace);
    return hpct_cpu_prim_execute(r->prim, hpct_cpu_scratch(call, conv->prims), args);
}

static hpct_status backward_weights(const conv_op *conv, const hpct_op_call *call)
{
    const writer *w = &conv->weights[call->batch];
    float *grad = call->grad[HPCT_OP_KERNEL];
    void *kernel = w->reorder == NULL ? (void *) grad : hpct_cpu_scratch(call, conv->kernel);
    void *args[] = {call->workspace, call->scratch, kernel,
                    conv->op.spec.no_bias ? NULL : call->grad[HPCT_OP_BIAS]};
    HPCT_TRY(hpct_cpu_prim_execute(w->prim, hpct_cpu_scratch(call, conv->prims), args));
    if (w->reorder == NULL)
        return HPCT_OK;
    void *back[] = {kernel, grad};
    return hpct_cpu_prim_execute(w->reorder, hpct_cpu_scratch(call, conv->prims), back);
}

static hpct_status backward(hpct_op *op, const hpct_op_call *call)
{
    const conv_op *conv = conv_of(op);
    const hpct_graph_window *w = &op->spec.window;
    const reader *r = &conv->data[call->batch];
    hpct_cpu_low_diff diff = {.rows = (size_t) call->n * (size_t) w->out_h * (size_t) w->out_w,
                              .out = (size_t) w->out_c,
                              .dst = op->spec.relu ? call->dst : NULL,
                              .diff = call->diff_dst,
                              .factor = 1,
                              .low = call->scratch};
    hpct_cpu_diff_to_bf16(&diff);
    void *args[] = {diff.low, (char *) call->copies + r->offset, call->diff_src[0]};
    if (call->diff_src[0] != NULL)
        HPCT_TRY(hpct_cpu_prim_execute(r->prim, hpct_cpu_scratch(call, conv->prims), args));
    return op->build.frozen ? HPCT_OK : backward_weights(conv, call);
}

static void destroy(hpct_op *op)
{
    conv_op *conv = conv_of(op);
    for (int i = 0; i < op->build.num_batch_sizes; i++) {
        if (conv->forward != NULL)
            hpct_cpu_prim_free(conv->forward[i].prim);
        if (conv->data != NULL)
            hpct_cpu_prim_free(conv->data[i].prim);
        if (conv->weights != NULL) {
            hpct_cpu_prim_free(conv->weights[i].prim);
            hpct_cpu_prim_free(conv->weights[i].reorder);
        }
    }
    for (int i = 0; i < conv->num_copies; i++) {
        hpct_cpu_kernel_layout_free(conv->copies[i].layout);
        hpct_cpu_prim_free(conv->copies[i].reorder);
    }
    hpct_cpu_kernel_layout_free(conv->arena);
    free(conv->forward);
    free(conv->data);
    free(conv->weights);
    free(conv->copies);
    free(conv);
}

/* Finds the copy in the layout that a reader chose, or adds it. */
static hpct_status connect(conv_op *conv, reader *r, size_t *scratch)
{
    hpct_cpu_kernel_layout *wanted = NULL;
    hpct_status status = hpct_cpu_prim_kernel_layout(r->prim, &wanted);
    hpct_cpu_at_least(scratch, hpct_cpu_prim_scratch_bytes(r->prim));
    for (int i = 0; i < conv->num_copies && status == HPCT_OK; i++) {
        if (hpct_cpu_kernel_layout_equal(conv->copies[i].layout, wanted)) {
            r->offset = conv->copies[i].offset;
            hpct_cpu_kernel_layout_free(wanted);
            return HPCT_OK;
        }
    }
    if (status != HPCT_OK)
        return status;
    copy *added = &conv->copies[conv->num_copies++];
    added->layout = wanted;
    added->offset = r->offset = conv->op.copies_bytes;
    conv->op.copies_bytes += hpct_cpu_padded(hpct_cpu_kernel_layout_bytes(wanted));
    status = hpct_cpu_shim_reorder(&added->reorder, conv->arena, wanted);
    if (status == HPCT_OK)
        hpct_cpu_at_least(scratch, hpct_cpu_prim_scratch_bytes(added->reorder));
    return status;
}

/* Adds a reorder of the kernel gradient, if needed. */
static hpct_status connect_gradient(const conv_op *conv, writer *w, size_t *kernel, size_t *scratch)
{
    hpct_cpu_kernel_layout *made = NULL;
    hpct_status status = hpct_cpu_prim_kernel_layout(w->prim, &made);
    if (status == HPCT_OK && !hpct_cpu_kernel_layout_equal(made, conv->arena)) {
        status = hpct_cpu_shim_reorder(&w->reorder, made, conv->arena);
        hpct_cpu_at_least(kernel, hpct_cpu_padded(hpct_cpu_kernel_layout_bytes(made)));
    }
    hpct_cpu_at_least(scratch, hpct_cpu_prim_scratch_bytes(w->prim));
    if (w->reorder != NULL)
        hpct_cpu_at_least(scratch, hpct_cpu_prim_scratch_bytes(w->reorder));
    hpct_cpu_kernel_layout_free(made);
    return status;
}

static hpct_status make_batch(conv_op *conv, int i, size_t *kernel, size_t *scratch)
{
    const hpct_op_build *build = &conv->op.build;
    const hpct_op_spec *spec = &conv->op.spec;
    int n = build->batch_sizes[i];
    reader *fwd = &conv->forward[i], *data = &conv->data[i];
    writer *weights = &conv->weights[i];
    HPCT_TRY(hpct_cpu_shim_conv_forward(&fwd->prim, spec, HPCT_BF16, n, build->training));
    HPCT_TRY(connect(conv, fwd, scratch));
    if (build->needs_diff_src) {
        HPCT_TRY(hpct_cpu_shim_conv_backward_data(&data->prim, spec, HPCT_BF16, n, fwd->prim));
        HPCT_TRY(connect(conv, data, scratch));
    }
    if (build->training && !build->frozen) {
        HPCT_TRY(
            hpct_cpu_shim_conv_backward_weights(&weights->prim, spec, HPCT_BF16, n, fwd->prim));
        HPCT_TRY(connect_gradient(conv, weights, kernel, scratch));
    }
    return HPCT_OK;
}

bool hpct_cpu_conv2d_bf16_fits(const hpct_op_spec *spec)
{
    return spec->window.groups == 1 && spec->window.in_c > 4;
}

hpct_status hpct_cpu_make_conv2d_bf16(hpct_op **out, const hpct_op_spec *spec,
                                      const hpct_op_build *build)
{
    static const hpct_op_class class = {
        .forward = forward, .backward = backward, .refresh = refresh, .destroy = destroy};
    size_t num = (size_t) build->num_batch_sizes, largest = 0, kernel = 0, scratch = 0;
    HPCT_TRY(hpct_op_new(out, sizeof(conv_op), &class, spec, build));
    hpct_op *op = *out;
    conv_op *conv = (conv_op *) op;
    op->precision = HPCT_BF16;
    conv->forward = calloc(num, sizeof *conv->forward);
    conv->data = calloc(num, sizeof *conv->data);
    conv->weights = calloc(num, sizeof *conv->weights);
    conv->copies = calloc(2 * num, sizeof *conv->copies);
    if (conv->forward == NULL || conv->data == NULL || conv->weights == NULL ||
        conv->copies == NULL)
        return hpct_fail_memory(3 * num * sizeof *conv->copies);
    HPCT_TRY(hpct_cpu_kernel_layout_plain(&conv->arena, &spec->window));
    for (int i = 0; i < build->num_batch_sizes; i++) {
        hpct_cpu_at_least(&largest, (size_t) build->batch_sizes[i]);
        HPCT_TRY(make_batch(conv, i, &kernel, &scratch));
    }
    op->backward_reads_src = false; /* the workspace has it in bf16 */
    op->backward_keeps_diff_dst = true;
    op->workspace_bytes = largest * hpct_op_src_floats(spec, 0) * sizeof(hpct_backend_bf16);
    if (build->training)
        conv->kernel =
            hpct_cpu_padded(largest * hpct_op_dst_floats(spec) * sizeof(hpct_backend_bf16));
    conv->prims = conv->kernel + kernel;
    op->scratch_bytes = conv->prims + scratch;
    return HPCT_OK;
}
