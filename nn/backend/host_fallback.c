/* Host fallback: copies inputs to the host, runs the operation there, copies outputs back. */
#include "nn/backend/backend.h"

#include "base/status.h"
#include "nn/backend/collective.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct host_fallback {
    hpct_op op;
    hpct_op *inner; /* on the host */
    const hpct_backend *backend;
    /* Of the largest batch, in fp32, in pinned memory. */
    float *src, *dst, *diff_src, *diff_dst;
    float *param[HPCT_OP_MAX_PARAMS], *grad[HPCT_OP_MAX_PARAMS];
    void *scratch;
    char slow[128]; /* op.slow */
} host_fallback;

/* Floats of the source in a batch of n. */
static size_t src_count(const hpct_op_spec *spec, int n)
{
    const hpct_graph_channel_split *split = &spec->parts.split;
    int samples = n;
    if (spec->kind == HPCT_OP_GATHER_SAMPLES)
        samples = hpct_graph_samples_count(n, split->part, split->parts);
    return (size_t) samples * hpct_op_src_floats(spec, 0);
}

static size_t dst_count(const hpct_op_spec *spec, int n)
{
    return (size_t) n * hpct_op_dst_floats(spec);
}

/* ---- transfers of activations and their gradients ---- */

static hpct_status fetch(const host_fallback *h, const hpct_op_call *call, float *host,
                         const float *from, size_t count)
{
    const hpct_backend_device *device = h->backend->device;
    if (h->op.build.values != HPCT_FP32) {
        HPCT_TRY(device->from_values(h->op.build.values, count, from, call->scratch));
        from = call->scratch;
    }
    return device->to_host(host, from, count * sizeof *host);
}

static hpct_status send(const host_fallback *h, const hpct_op_call *call, float *to,
                        const float *host, size_t count)
{
    const hpct_backend_device *device = h->backend->device;
    if (h->op.build.values == HPCT_FP32)
        return device->from_host(to, host, count * sizeof *host);
    HPCT_TRY(device->from_host(call->scratch, host, count * sizeof *host));
    return device->to_values(h->op.build.values, count, call->scratch, to);
}

/* ---- the operation ---- */

/* The inner operation's call, before inputs are copied. */
static hpct_op_call on_host(const host_fallback *h, const hpct_op_call *call)
{
    hpct_op_call own = *call;
    own.dst = h->dst;
    own.diff_dst = h->diff_dst;
    own.param = (float *const *) h->param;
    own.grad = (float *const *) h->grad;
    own.scratch = h->scratch;
    return own;
}

static hpct_status forward(hpct_op *op, const hpct_op_call *call)
{
    const host_fallback *h = (const host_fallback *) op;
    hpct_op_call own = on_host(h, call);
    own.src = (const float *const[]){h->src};
    HPCT_TRY(fetch(h, call, h->src, call->src[0], src_count(&op->spec, call->n)));
    for (int k = 0; k < op->num_params; k++)
        HPCT_TRY(h->backend->device->to_host(h->param[k], call->param[k],
                                             op->param_floats[k] * sizeof(float)));
    HPCT_TRY(h->inner->class->forward(h->inner, &own));
    return send(h, call, call->dst, h->dst, dst_count(&op->spec, call->n));
}

static hpct_status backward(hpct_op *op, const hpct_op_call *call)
{
    const host_fallback *h = (const host_fallback *) op;
    hpct_op_call own = on_host(h, call);
    size_t src = src_count(&op->spec, call->n), dst = dst_count(&op->spec, call->n);
    float *to = call->diff_src[0];
    own.src = (const float *const[]){h->src};
    own.diff_src = (float *const[]){to != NULL ? h->diff_src : NULL};
    HPCT_TRY(fetch(h, call, h->diff_dst, call->diff_dst, dst));
    if (op->backward_reads_dst)
        HPCT_TRY(fetch(h, call, h->dst, call->dst, dst));
    if (to != NULL && call->add != NULL && call->add[0])
        HPCT_TRY(fetch(h, call, h->diff_src, to, src));
    HPCT_TRY(h->inner->class->backward(h->inner, &own));
    if (to != NULL)
        HPCT_TRY(send(h, call, to, h->diff_src, src));
    for (int k = 0; k < op->num_params && !op->build.frozen; k++)
        HPCT_TRY(h->backend->device->from_host(call->grad[k], h->grad[k],
                                               op->param_floats[k] * sizeof(float)));
    return HPCT_OK;
}

static hpct_status import_param(hpct_op *op, int which, const float *keras, float *arena)
{
    const host_fallback *h = (const host_fallback *) op;
    return h->backend->device->from_host(arena, keras, op->param_floats[which] * sizeof *keras);
}

static hpct_status export_param(hpct_op *op, int which, const float *arena, float *keras)
{
    const host_fallback *h = (const host_fallback *) op;
    return h->backend->device->to_host(keras, arena, op->param_floats[which] * sizeof *keras);
}

/* ---- creation ---- */

static void destroy(hpct_op *op)
{
    host_fallback *h = (host_fallback *) op;
    float *const all[] = {h->src, h->dst, h->diff_src, h->diff_dst};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        h->backend->device->release_host(all[i]);
    for (int k = 0; k < op->num_params; k++) {
        h->backend->device->release_host(h->param[k]);
        h->backend->device->release_host(h->grad[k]);
    }
    hpct_backend_host_release(h->scratch);
    h->inner->class->destroy(h->inner);
    free(h);
}

static float *allocate_floats(const host_fallback *h, size_t floats, hpct_status *status)
{
    size_t bytes = (floats + 1) * sizeof(float);
    float *memory = *status == HPCT_OK ? h->backend->device->allocate_host(bytes) : NULL;
    if (memory == NULL && *status == HPCT_OK)
        *status = hpct_fail_memory(bytes);
    return memory;
}

static hpct_status furnish(host_fallback *h, int largest)
{
    hpct_op *op = &h->op;
    size_t src = src_count(&op->spec, largest), dst = dst_count(&op->spec, largest);
    hpct_status status = HPCT_OK;
    h->src = allocate_floats(h, src, &status);
    h->dst = allocate_floats(h, dst, &status);
    if (op->build.training) {
        h->diff_src = allocate_floats(h, src, &status);
        h->diff_dst = allocate_floats(h, dst, &status);
    }
    for (int k = 0; k < op->num_params; k++) {
        h->param[k] = allocate_floats(h, op->param_floats[k], &status);
        h->grad[k] = allocate_floats(h, op->param_floats[k], &status);
    }
    h->scratch = hpct_backend_host_allocate(h->inner->scratch_bytes);
    op->scratch_bytes = op->build.values != HPCT_FP32 ? (src > dst ? src : dst) * sizeof(float) : 0;
    return status == HPCT_OK && h->scratch == NULL ? hpct_fail_memory(h->inner->scratch_bytes)
                                                   : status;
}

hpct_status hpct_backend_make_host_fallback(hpct_op **out, const hpct_backend *backend,
                                            const hpct_op_spec *spec, const hpct_op_build *build)
{
    static const hpct_op_class class = {.forward = forward,
                                        .backward = backward,
                                        .import_param = import_param,
                                        .export_param = export_param,
                                        .destroy = destroy};
    hpct_op_build on_host = *build;
    on_host.precision = on_host.values = HPCT_FP32;
    host_fallback *h = calloc(1, sizeof *h);
    if (h == NULL)
        return hpct_fail_memory(sizeof *h);
    hpct_status status = hpct_backend_make_collective(&h->inner, spec, &on_host);
    if (status != HPCT_OK) {
        free(h);
        return status;
    }
    h->op = *h->inner;
    h->op.class = &class;
    h->op.build = *build;
    h->backend = backend;
    int largest = hpct_op_largest_batch(build);
    status = furnish(h, largest);
    snprintf(h->slow, sizeof h->slow,
             "%s through the host's memory (%.3g MB there and %.3g MB back in each pass)",
             hpct_op_kind_name(spec->kind), 4e-6 * (double) src_count(spec, largest),
             4e-6 * (double) dst_count(spec, largest));
    h->op.slow = h->slow;
    if (status == HPCT_OK)
        *out = &h->op;
    else
        destroy(&h->op);
    return status;
}
