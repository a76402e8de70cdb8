/* Conv2D by oneDNN. The arena has the kernel in the layout that the forward primitive of the
 * largest batch chose; other primitives get a reorder if they chose another. */
#include "nn/backend/cpu/cpu.h"

#include "base/status.h"
#include "nn/backend/cpu/loops.h"
#include "nn/backend/cpu/scratch.h"
#include "nn/backend/cpu/shim.h"

#include <stdlib.h>
#include <string.h>

/* A primitive, and the reorder between the arena's kernel and its own (NULL: same layout). */
typedef struct stage {
    hpct_cpu_prim *prim;
    hpct_cpu_prim *reorder;
} stage;

typedef struct conv_op {
    hpct_op op;
    hpct_cpu_kernel_layout *plain, *arena;
    stage *forward, *data, *weights; /* by batch size */
    size_t reordered_bytes;          /* first part of the scratch: a kernel in another layout */
} conv_op;

typedef struct mask_job {
    const float *dst;
    float *diff;
} mask_job;

static conv_op *conv_of(hpct_op *op)
{
    return (conv_op *) op;
}

static void *prim_scratch(const conv_op *conv, const hpct_op_call *call)
{
    return (char *) call->scratch + conv->reordered_bytes;
}

/* The kernel in the layout of `s`. */
static hpct_status kernel_for(conv_op *conv, const stage *s, const hpct_op_call *call,
                              void **kernel)
{
    *kernel = call->param[HPCT_OP_KERNEL];
    if (s->reorder == NULL)
        return HPCT_OK;
    void *args[] = {*kernel, call->scratch};
    *kernel = call->scratch;
    return hpct_cpu_prim_execute(s->reorder, prim_scratch(conv, call), args);
}

static hpct_status forward(hpct_op *op, const hpct_op_call *call)
{
    conv_op *conv = conv_of(op);
    const stage *s = &conv->forward[call->batch];
    void *kernel;
    HPCT_TRY(kernel_for(conv, s, call, &kernel));
    void *args[] = {(void *) (uintptr_t) call->src[0], kernel, call->dst,
                    op->spec.no_bias ? NULL : call->param[HPCT_OP_BIAS]};
    return hpct_cpu_prim_execute(s->prim, prim_scratch(conv, call), args);
}

static void mask_part(size_t first, size_t count, void *arg)
{
    const mask_job *job = arg;
    hpct_cpu_loops_best()->relu_backward(count, job->dst + first, job->diff + first,
                                         job->diff + first);
}

static hpct_status backward_data(conv_op *conv, const hpct_op_call *call)
{
    const stage *s = &conv->data[call->batch];
    void *kernel;
    HPCT_TRY(kernel_for(conv, s, call, &kernel));
    void *args[] = {call->diff_dst, kernel, call->diff_src[0]};
    return hpct_cpu_prim_execute(s->prim, prim_scratch(conv, call), args);
}

static hpct_status backward(hpct_op *op, const hpct_op_call *call)
{
    conv_op *conv = conv_of(op);
    const hpct_graph_window *w = &op->spec.window;
    if (op->spec.relu) {
        mask_job job = {.dst = call->dst, .diff = call->diff_dst};
        size_t cells = (size_t) call->n * (size_t) w->out_h * (size_t) w->out_w;
        hpct_cpu_loops_split(cells * (size_t) w->out_c, 16384, mask_part, &job);
    }
    if (call->diff_src[0] != NULL)
        HPCT_TRY(backward_data(conv, call));
    if (op->build.frozen || call->grad[HPCT_OP_KERNEL] == NULL) /* nn/backend/transposed.h */
        return HPCT_OK;
    const stage *s = &conv->weights[call->batch];
    void *kernel = s->reorder == NULL ? (void *) call->grad[HPCT_OP_KERNEL] : call->scratch;
    void *args[] = {(void *) (uintptr_t) call->src[0], call->diff_dst, kernel,
                    op->spec.no_bias ? NULL : call->grad[HPCT_OP_BIAS]};
    HPCT_TRY(hpct_cpu_prim_execute(s->prim, prim_scratch(conv, call), args));
    if (s->reorder == NULL)
        return HPCT_OK;
    void *back[] = {kernel, call->grad[HPCT_OP_KERNEL]};
    return hpct_cpu_prim_execute(s->reorder, prim_scratch(conv, call), back);
}

/* A reorder used once, outside of a step. */
static hpct_status reorder_once(const hpct_cpu_kernel_layout *from, const void *src,
                                const hpct_cpu_kernel_layout *to, void *dst)
{
    hpct_cpu_prim *prim = NULL;
    HPCT_TRY(hpct_cpu_shim_reorder(&prim, from, to));
    size_t bytes = hpct_cpu_padded(hpct_cpu_prim_scratch_bytes(prim));
    void *scratch = bytes > 0 ? aligned_alloc(64, bytes) : NULL;
    void *args[] = {(void *) (uintptr_t) src, dst};
    hpct_status status = bytes > 0 && scratch == NULL ? hpct_fail_memory(bytes)
                                                      : hpct_cpu_prim_execute(prim, scratch, args);
    free(scratch);
    hpct_cpu_prim_free(prim);
    return status;
}

static hpct_status import_param(hpct_op *op, int which, const float *keras, float *arena)
{
    conv_op *conv = conv_of(op);
    if (which == HPCT_OP_KERNEL)
        return reorder_once(conv->plain, keras, conv->arena, arena);
    memcpy(arena, keras, op->param_floats[which] * sizeof *keras);
    return HPCT_OK;
}

static hpct_status export_param(hpct_op *op, int which, const float *arena, float *keras)
{
    conv_op *conv = conv_of(op);
    if (which == HPCT_OP_KERNEL)
        return reorder_once(conv->arena, arena, conv->plain, keras);
    memcpy(keras, arena, op->param_floats[which] * sizeof *keras);
    return HPCT_OK;
}

static void free_stages(stage *stages, int count)
{
    for (int i = 0; stages != NULL && i < count; i++) {
        hpct_cpu_prim_free(stages[i].prim);
        hpct_cpu_prim_free(stages[i].reorder);
    }
    free(stages);
}

static void destroy(hpct_op *op)
{
    conv_op *conv = conv_of(op);
    free_stages(conv->forward, op->build.num_batch_sizes);
    free_stages(conv->data, op->build.num_batch_sizes);
    free_stages(conv->weights, op->build.num_batch_sizes);
    hpct_cpu_kernel_layout_free(conv->plain);
    hpct_cpu_kernel_layout_free(conv->arena);
    free(conv);
}

/* Adds the reorder that a stage needs, and enlarges the scratch. */
static hpct_status connect(conv_op *conv, stage *s, bool from_arena, size_t *scratch)
{
    hpct_cpu_kernel_layout *wanted = NULL;
    hpct_status status = hpct_cpu_prim_kernel_layout(s->prim, &wanted);
    if (status == HPCT_OK && !hpct_cpu_kernel_layout_equal(wanted, conv->arena)) {
        status = from_arena ? hpct_cpu_shim_reorder(&s->reorder, conv->arena, wanted)
                            : hpct_cpu_shim_reorder(&s->reorder, wanted, conv->arena);
        hpct_cpu_at_least(&conv->reordered_bytes,
                          hpct_cpu_padded(hpct_cpu_kernel_layout_bytes(wanted)));
    }
    hpct_cpu_at_least(scratch, hpct_cpu_prim_scratch_bytes(s->prim));
    if (s->reorder != NULL)
        hpct_cpu_at_least(scratch, hpct_cpu_prim_scratch_bytes(s->reorder));
    hpct_cpu_kernel_layout_free(wanted);
    return status;
}

/* Creates primitives for the i-th batch size, and sets the arena's layout if this is the first. */
static hpct_status make_batch(conv_op *conv, int i, size_t *scratch)
{
    const hpct_op_build *build = &conv->op.build;
    const hpct_op_spec *spec = &conv->op.spec;
    int n = build->batch_sizes[i];
    stage *fwd = &conv->forward[i], *data = &conv->data[i], *weights = &conv->weights[i];
    HPCT_TRY(hpct_cpu_shim_conv_forward(&fwd->prim, spec, HPCT_FP32, n, build->training));
    if (conv->arena == NULL)
        HPCT_TRY(build->plain_layout ? hpct_cpu_kernel_layout_plain(&conv->arena, &spec->window)
                                     : hpct_cpu_prim_kernel_layout(fwd->prim, &conv->arena));
    HPCT_TRY(connect(conv, fwd, true, scratch));
    if (build->needs_diff_src) {
        HPCT_TRY(hpct_cpu_shim_conv_backward_data(&data->prim, spec, HPCT_FP32, n, fwd->prim));
        HPCT_TRY(connect(conv, data, true, scratch));
    }
    if (build->training && !build->frozen) {
        HPCT_TRY(
            hpct_cpu_shim_conv_backward_weights(&weights->prim, spec, HPCT_FP32, n, fwd->prim));
        HPCT_TRY(connect(conv, weights, false, scratch));
    }
    return HPCT_OK;
}

hpct_status hpct_cpu_make_conv2d(hpct_op **out, const hpct_op_spec *spec,
                                 const hpct_op_build *build)
{
    static const hpct_op_class class = {.forward = forward,
                                        .backward = backward,
                                        .import_param = import_param,
                                        .export_param = export_param,
                                        .destroy = destroy};
    size_t num = (size_t) build->num_batch_sizes, scratch = 0;
    HPCT_TRY(hpct_op_new(out, sizeof(conv_op), &class, spec, build));
    hpct_op *op = *out;
    conv_op *conv = (conv_op *) op;
    conv->forward = calloc(num, sizeof *conv->forward);
    conv->data = calloc(num, sizeof *conv->data);
    conv->weights = calloc(num, sizeof *conv->weights);
    if (conv->forward == NULL || conv->data == NULL || conv->weights == NULL)
        return hpct_fail_memory(3 * num * sizeof *conv->forward);
    int largest = 0;
    for (int i = 1; i < build->num_batch_sizes; i++)
        largest = build->batch_sizes[i] > build->batch_sizes[largest] ? i : largest;
    HPCT_TRY(hpct_cpu_kernel_layout_plain(&conv->plain, &spec->window));
    HPCT_TRY(make_batch(conv, largest, &scratch));
    for (int i = 0; i < build->num_batch_sizes; i++) {
        if (i != largest)
            HPCT_TRY(make_batch(conv, i, &scratch));
    }
    op->param_floats[HPCT_OP_KERNEL] = hpct_cpu_kernel_layout_bytes(conv->arena) / sizeof(float);
    if (!hpct_cpu_kernel_layout_equal(conv->arena, conv->plain))
        op->param_layout[HPCT_OP_KERNEL] = hpct_cpu_kernel_layout_fingerprint(conv->arena);
    op->scratch_bytes = conv->reordered_bytes + scratch;
    return HPCT_OK;
}
