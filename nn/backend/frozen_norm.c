/* BatchNormalization of a frozen layer, of operations that every backend has. Forward is that of
 * inference. dst = (src - mean) scale + shift, so that backward is the same without mean and shift:
 * inference with zeros for these, of the gradient after the ReLU's mask. */
#include "nn/backend/backend.h"

#include "base/status.h"

#include <stdlib.h>
#include <string.h>

typedef struct frozen_norm {
    hpct_op op;
    hpct_op *forward;
    hpct_op *mask, *scale; /* of backward; mask: NULL without ReLU */
    const hpct_backend *backend;
    float *zeros; /* [channels] */
    /* Lists of the calls of backward: a recording may read them later. */
    const float *src[1];
    float *diff_src[1], *param[HPCT_OP_MAX_PARAMS];
} frozen_norm;

static frozen_norm *frozen_of(hpct_op *op)
{
    return (frozen_norm *) op;
}

static size_t aligned(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static hpct_status forward(hpct_op *op, const hpct_op_call *call)
{
    hpct_op *inner = frozen_of(op)->forward;
    hpct_op_call own = *call;
    own.training = false;
    own.replicas = NULL;
    return call->n > 0 ? inner->class->forward(inner, &own) : HPCT_OK;
}

/* In place: backward may overwrite diff_dst. */
static hpct_status mask(frozen_norm *f, const hpct_op_call *call)
{
    static const bool no = false;
    hpct_op_call own = *call;
    f->diff_src[0] = call->diff_dst;
    own.diff_src = f->diff_src;
    own.add = &no;
    return f->mask->class->backward(f->mask, &own);
}

static void set_zeros(frozen_norm *f, const hpct_op_call *call)
{
    int mean = hpct_op_norm_param(&f->op.spec, HPCT_GRAPH_NORM_MEAN),
        beta = hpct_op_norm_param(&f->op.spec, HPCT_GRAPH_NORM_BETA);
    memcpy(f->param, call->param, (size_t) f->op.num_params * sizeof *f->param);
    f->param[mean] = f->zeros;
    if (beta >= 0)
        f->param[beta] = f->zeros;
}

static hpct_status backward(hpct_op *op, const hpct_op_call *call)
{
    frozen_norm *f = frozen_of(op);
    if (call->diff_src[0] == NULL || call->n == 0)
        return HPCT_OK;
    if (f->mask != NULL)
        HPCT_TRY(mask(f, call));
    hpct_op_call own = *call;
    set_zeros(f, call);
    f->src[0] = call->diff_dst;
    own.src = f->src;
    own.dst = call->diff_src[0];
    own.diff_dst = NULL;
    own.diff_src = NULL;
    own.param = f->param;
    own.workspace = call->scratch;
    own.scratch = (char *) call->scratch + aligned(f->scale->workspace_bytes);
    own.training = false;
    own.replicas = NULL;
    return f->scale->class->forward(f->scale, &own);
}

static void destroy(hpct_op *op)
{
    const frozen_norm *f = frozen_of(op);
    hpct_op *const all[] = {f->forward, f->mask, f->scale};
    for (int i = 0; i < 3; i++) {
        if (all[i] != NULL)
            all[i]->class->destroy(all[i]);
    }
    f->backend->release(f->zeros);
    free(op);
}

/* The ReLU's mask on the gradient, and the normalization of that, from the result's layout to the
 * source's. */
static hpct_status make_backward(frozen_norm *f, const hpct_op_spec *inference,
                                 const hpct_op_build *build)
{
    int channels = inference->norm.channels;
    hpct_op_spec relu = {.kind = HPCT_OP_RELU,
                         .src_blocks = inference->dst_blocks,
                         .dst_blocks = inference->dst_blocks,
                         .dense = {inference->norm.rows, channels, channels}};
    hpct_op_spec scale = *inference;
    hpct_op_build plain = *build, masking = *build;
    scale.relu = false;
    scale.src_blocks = inference->dst_blocks;
    scale.dst_blocks = inference->src_blocks;
    masking.training = masking.needs_diff_src = true;
    if (inference->relu)
        HPCT_TRY(f->backend->make_op(&f->mask, &relu, &masking));
    HPCT_TRY(f->backend->make_op(&f->scale, &scale, &plain));
    size_t bytes = aligned((size_t) channels * sizeof *f->zeros);
    f->zeros = f->backend->allocate(bytes);
    return f->zeros != NULL ? HPCT_OK
                            : hpct_backend_memory_fail(f->backend, bytes, "a frozen layer");
}

static size_t scratch_of(const frozen_norm *f)
{
    size_t most = f->forward->scratch_bytes,
           scale =
               f->scale != NULL ? aligned(f->scale->workspace_bytes) + f->scale->scratch_bytes : 0;
    if (f->mask != NULL && f->mask->scratch_bytes > most)
        most = f->mask->scratch_bytes;
    return scale > most ? scale : most;
}

static void describe(frozen_norm *f, const hpct_op_spec *spec, const hpct_op_build *build)
{
    hpct_op *op = &f->op;
    bool relu = op->spec.relu;
    *op = *f->forward;
    op->layout_of = f->forward;
    op->spec = *spec;
    op->build = *build;
    op->scratch_bytes = scratch_of(f);
    op->omits_grads = true;
    op->adds_diff_src = op->passes_diff_dst = false;
    op->backward_reads_src = false;
    op->backward_reads_dst = relu;
    op->backward_keeps_diff_dst = !relu;
}

hpct_status hpct_backend_make_frozen_norm(hpct_op **out, const hpct_backend *backend,
                                          const hpct_op_spec *spec, const hpct_op_build *build)
{
    static const hpct_op_class class = {
        .forward = forward, .backward = backward, .destroy = destroy};
    hpct_op_spec inference = *spec;
    hpct_op_build plain = *build;
    frozen_norm *f = calloc(1, sizeof *f);
    if (f == NULL)
        return hpct_fail_memory(sizeof *f);
    f->backend = backend;
    f->op.spec = *spec;
    inference.norm.synchronized = false;
    inference.norm.groups = 0;
    plain.training = plain.needs_diff_src = plain.frozen = false;
    hpct_status status = backend->make_op(&f->forward, &inference, &plain);
    if (status == HPCT_OK && build->needs_diff_src)
        status = make_backward(f, &inference, &plain);
    if (status != HPCT_OK) {
        destroy(&f->op);
        return status;
    }
    describe(f, spec, build);
    f->op.class = &class;
    *out = &f->op;
    return HPCT_OK;
}
