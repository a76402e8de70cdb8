/* Runs one BatchNormalization per group of samples. */
#include "nn/backend/backend.h"

#include "base/status.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MAX_STATES 2 /* moving mean and variance */

typedef struct grouped_norm {
    hpct_op op;
    hpct_op *inner;
    const hpct_backend *backend;
    int first_state, num_trained;
    size_t channels;
} grouped_norm;

static size_t aligned(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static const grouped_norm *grouped_of(const hpct_op *op)
{
    return (const grouped_norm *) op;
}

/* Call of the inner operation for one group. */
typedef struct group_call {
    hpct_op_call call;
    const float *src[1];
    float *diff_src[1];
    float *param[HPCT_OP_MAX_PARAMS], *grad[HPCT_OP_MAX_PARAMS];
} group_call;

/* Advances by `count` values of activation type. */
static float *moved(const grouped_norm *g, const float *from, size_t count)
{
    size_t bytes = count * hpct_backend_precision_bytes(g->op.build.values);
    return from != NULL ? (float *) (void *) ((char *) (uintptr_t) from + bytes) : NULL;
}

static void enter(const grouped_norm *g, const hpct_op_call *call, int group, group_call *own)
{
    int groups = g->op.spec.norm.groups;
    size_t before = (size_t) hpct_graph_samples_first(call->n, group, groups) *
                    hpct_op_src_floats(&g->op.spec, 0);
    own->call = *call;
    own->call.n = hpct_graph_samples_count(call->n, group, groups);
    own->src[0] = moved(g, call->src[0], before);
    own->call.src = own->src;
    own->call.dst = moved(g, call->dst, before);
    own->call.diff_dst = moved(g, call->diff_dst, before);
    if (call->diff_src != NULL) {
        own->diff_src[0] = moved(g, call->diff_src[0], before);
        own->call.diff_src = own->diff_src;
    }
    own->call.workspace =
        (char *) call->workspace + (size_t) group * aligned(g->inner->workspace_bytes);
    memcpy(own->param, call->param, (size_t) g->op.num_params * sizeof *own->param);
    own->call.param = own->param;
    own->call.replicas = NULL;
}

/* In scratch, after the inner operation's: [which][channels]. */
static float *room(const grouped_norm *g, const hpct_op_call *call, int which)
{
    return (float *) (void *) ((char *) call->scratch + aligned(g->inner->scratch_bytes)) +
           (size_t) which * g->channels;
}

/* ---- per-channel vectors in the backend's memory ---- */

static hpct_status zero(const grouped_norm *g, float *to)
{
    return hpct_backend_memory_zero(g->backend, to, g->channels * sizeof *to);
}

static hpct_status copy(const grouped_norm *g, const float *from, float *to)
{
    return g->backend->accumulate(g->channels, from, to, true);
}

static hpct_status add(const grouped_norm *g, const float *from, float *to)
{
    return g->backend->accumulate(g->channels, from, to, false);
}

/* ---- the operation ---- */

/* Each group updates a copy of the moving statistics from before the call; the results are
 * added. */
static hpct_status forward_group(const grouped_norm *g, const hpct_op_call *call, int group)
{
    group_call own;
    enter(g, call, group, &own);
    for (int k = 0; k < MAX_STATES; k++) {
        own.param[g->first_state + k] = room(g, call, 2 * MAX_STATES + k);
        HPCT_TRY(copy(g, room(g, call, k), own.param[g->first_state + k]));
    }
    if (own.call.n > 0)
        HPCT_TRY(g->inner->class->forward(g->inner, &own.call));
    for (int k = 0; k < MAX_STATES; k++)
        HPCT_TRY(add(g, own.param[g->first_state + k], room(g, call, MAX_STATES + k)));
    return HPCT_OK;
}

static hpct_status forward(hpct_op *op, const hpct_op_call *call)
{
    const grouped_norm *g = grouped_of(op);
    int groups = op->spec.norm.groups;
    if (!call->training)
        return g->inner->class->forward(g->inner, call);
    for (int k = 0; k < MAX_STATES; k++) {
        HPCT_TRY(copy(g, call->param[g->first_state + k], room(g, call, k)));
        HPCT_TRY(zero(g, room(g, call, MAX_STATES + k)));
    }
    for (int group = 0; group < groups; group++)
        HPCT_TRY(forward_group(g, call, group));
    for (int k = 0; k < MAX_STATES; k++) {
        float *state = call->param[g->first_state + k];
        HPCT_TRY(copy(g, room(g, call, MAX_STATES + k), state));
        HPCT_TRY(g->backend->scale(g->channels, 1.0f / (float) groups, state));
    }
    return HPCT_OK;
}

static hpct_status backward_group(const grouped_norm *g, const hpct_op_call *call, int group)
{
    group_call own;
    enter(g, call, group, &own);
    if (own.call.n == 0)
        return HPCT_OK;
    for (int k = 0; k < g->op.num_params; k++)
        own.grad[k] = k < g->num_trained ? room(g, call, k) : NULL;
    own.call.grad = own.grad;
    HPCT_TRY(g->inner->class->backward(g->inner, &own.call));
    for (int k = 0; k < g->num_trained; k++)
        HPCT_TRY(add(g, own.grad[k], call->grad[k]));
    return HPCT_OK;
}

static hpct_status backward(hpct_op *op, const hpct_op_call *call)
{
    const grouped_norm *g = grouped_of(op);
    for (int k = 0; k < g->num_trained; k++)
        HPCT_TRY(zero(g, call->grad[k]));
    for (int group = 0; group < op->spec.norm.groups; group++)
        HPCT_TRY(backward_group(g, call, group));
    return HPCT_OK;
}

static void destroy(hpct_op *op)
{
    hpct_op *inner = grouped_of(op)->inner;
    inner->class->destroy(inner);
    free(op);
}

hpct_status hpct_backend_make_grouped_norm(hpct_op **out, const hpct_backend *backend,
                                           const hpct_op_spec *spec, const hpct_op_build *build)
{
    static const hpct_op_class class = {
        .forward = forward, .backward = backward, .destroy = destroy};
    grouped_norm *g = calloc(1, sizeof *g);
    if (g == NULL)
        return hpct_fail_memory(sizeof *g);
    hpct_op_build plain = *build;
    plain.fuse_update = false;
    hpct_status status = backend->make_op(&g->inner, spec, &plain);
    if (status != HPCT_OK) {
        free(g);
        return status;
    }
    g->op = *g->inner;
    g->op.class = &class;
    g->op.layout_of = g->inner;
    g->backend = backend;
    g->first_state = hpct_op_norm_param(spec, HPCT_GRAPH_NORM_MEAN);
    g->num_trained = g->first_state;
    g->channels = (size_t) spec->norm.channels;
    g->op.workspace_bytes = (size_t) spec->norm.groups * aligned(g->inner->workspace_bytes);
    g->op.scratch_bytes =
        aligned(g->inner->scratch_bytes) + (size_t) 3 * MAX_STATES * g->channels * sizeof(float);
    *out = &g->op;
    return HPCT_OK;
}
