/* The table of operations with own kernels, and what operations share. */
#include "nn/backend/cuda/ops.h"

#include "base/status.h"
#include "nn/backend/cuda/buffers.h"

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

/* ---- operations with own kernels ---- */

typedef struct own_op {
    hpct_cuda_pass *forward, *backward; /* backward NULL: no gradient is ever wanted */
    hpct_cuda_prepare *prepare;         /* or NULL */
} own_op;

#define OWN(name)                                                                                  \
    {                                                                                              \
        hpct_cuda_##name##_forward, hpct_cuda_##name##_backward, NULL                              \
    }
#define PREPARED(name)                                                                             \
    {                                                                                              \
        hpct_cuda_##name##_forward, hpct_cuda_##name##_backward, hpct_cuda_##name##_prepare        \
    }
#define ELEMENT(kind, ...) [HPCT_OP_##kind] = OWN(element)

static const own_op own[HPCT_OP_KINDS] = {
    [HPCT_OP_MAX_POOL2D] = PREPARED(max_pool),
    [HPCT_OP_AVERAGE_POOL2D] = OWN(average_pool),
    [HPCT_OP_SOFTMAX] = OWN(softmax),
    [HPCT_OP_ADD] = PREPARED(add),
    [HPCT_OP_CONCATENATE] = OWN(concatenate),
    [HPCT_OP_PRELU] = OWN(prelu),
    [HPCT_OP_MULTIPLY] = OWN(multiply),
    [HPCT_OP_NORMALIZATION] = OWN(normalization),
    [HPCT_OP_BATCH_NORM] = PREPARED(batch_norm),
    [HPCT_OP_PAD2D] = OWN(pad),
    [HPCT_OP_DROPOUT] = OWN(dropout),
    [HPCT_OP_RESCALING] = OWN(rescaling),
    [HPCT_OP_RESIZING] = OWN(crop),
    [HPCT_OP_RANDOM_CROP] = OWN(crop),
    [HPCT_OP_RANDOM_FLIP] = {.forward = hpct_cuda_vary_forward},
    [HPCT_OP_RANDOM_AFFINE] = {.forward = hpct_cuda_vary_forward},
    [HPCT_OP_RANDOM_TONE] = {.forward = hpct_cuda_vary_forward},
    [HPCT_OP_GROUP_NORM] = PREPARED(group_norm),
    [HPCT_OP_PERMUTE] = OWN(permute),
    [HPCT_OP_GAUSSIAN_NOISE] = OWN(noise),
    HPCT_GRAPH_ELEMENT_ROWS(ELEMENT),
};

static hpct_status forward(hpct_op *op, const hpct_op_call *call)
{
    return own[op->spec.kind].forward(op, call);
}

static hpct_status backward(hpct_op *op, const hpct_op_call *call)
{
    bool one = hpct_op_num_inputs(&op->spec) == 1 && op->num_params == 0;
    return one && call->diff_src[0] == NULL ? HPCT_OK : own[op->spec.kind].backward(op, call);
}

static hpct_status import_param(hpct_op *op, int which, const float *keras, float *arena)
{
    return hpct_cuda_from_host(arena, keras, op->param_floats[which] * sizeof *arena);
}

static hpct_status export_param(hpct_op *op, int which, const float *arena, float *keras)
{
    return hpct_cuda_to_host(keras, arena, op->param_floats[which] * sizeof *keras);
}

hpct_status hpct_cuda_make_own(hpct_op **out, const hpct_op_spec *spec, const hpct_op_build *build)
{
    static const hpct_op_class class = {.forward = forward,
                                        .backward = backward,
                                        .import_param = import_param,
                                        .export_param = export_param,
                                        .destroy = hpct_op_free};
    const own_op *o = &own[spec->kind];
    if (o->forward == NULL) /* nn/backend/host_fallback.c is the fallback */
        return hpct_fail(HPCT_ERR_CONFIG, "a GPU does not have the operation %s: take --device cpu",
                         hpct_op_kind_name(spec->kind));
    HPCT_TRY(hpct_op_new(out, sizeof **out, &class, spec, build));
    (*out)->adds_diff_src = true;
    if (o->prepare != NULL)
        o->prepare(*out);
    return HPCT_OK;
}

/* ---- copies of parameters ---- */

void hpct_cuda_lay_copies(hpct_op *op, bool bias)
{
    size_t each = hpct_backend_precision_bytes(op->build.values);
    for (int i = HPCT_OP_KERNEL; i <= HPCT_OP_BIAS; i++) {
        op->param_copied[i] = i == HPCT_OP_KERNEL || bias;
        op->copy_offset[i] = op->copies_bytes;
        if (op->param_copied[i])
            op->copies_bytes += hpct_cuda_align_up(op->param_floats[i] * each);
    }
}

void hpct_cuda_drop_copies(hpct_op *op)
{
    op->copies_bytes = 0;
    op->param_copied[HPCT_OP_KERNEL] = op->param_copied[HPCT_OP_BIAS] = false;
}
