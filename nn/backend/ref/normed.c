/* A convolution with a BATCH_NORM fused downstream: computes the normalization to scratch, and
 * calls another reference operation on it. */
#include "nn/backend/norm_line.h"
#include "nn/backend/ref/ref.h"

#include "base/status.h"

#include <stdlib.h>

typedef struct normed_op {
    hpct_op op; /* copy of inner's, with differences */
    hpct_op *inner;
} normed_op;

static size_t aligned(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static float normal(const hpct_norm_line *line, size_t c, float x)
{
    return (x - line->mean[c]) * line->scale[c] + line->shift[c];
}

/* The inner operation's call, with its source computed. */
static hpct_op_call inside(const hpct_op *op, const hpct_op_call *call, const float **src)
{
    const hpct_op_spec *norm = op->build.norm;
    size_t channels = (size_t) norm->norm.channels,
           count = (size_t) call->n * hpct_op_src_floats(&op->spec, 0);
    hpct_norm_line line = hpct_norm_line_in(call->norms[0], channels);
    hpct_op_call inner = *call;
    float *made = call->scratch;
    for (size_t i = 0; i < count; i++) {
        float y = normal(&line, i % channels, call->src[0][i]);
        made[i] = norm->relu && !(y > 0) ? 0 : y;
    }
    *src = made;
    inner.src = src;
    inner.scratch = (char *) call->scratch + aligned(count * sizeof *made);
    return inner;
}

static hpct_status forward(hpct_op *op, const hpct_op_call *call)
{
    hpct_op *inner = ((normed_op *) op)->inner;
    const float *src;
    hpct_op_call own = inside(op, call, &src);
    return inner->class->forward(inner, &own);
}

static void mask_and_sum(const hpct_op *op, const hpct_op_call *call)
{
    size_t channels = (size_t) op->build.norm->norm.channels, step = hpct_norm_line_step(channels),
           count = (size_t) call->n * hpct_op_src_floats(&op->spec, 0);
    hpct_norm_line line = hpct_norm_line_in(call->norms[0], channels);
    float *sums = (float *) (void *) ((char *) call->workspace + op->norm_sums[0]);
    for (size_t c = 0; c < channels; c++) {
        double sum = 0, sum_hat = 0;
        for (size_t i = c; i < count; i += channels) {
            float x = call->src[0][i], *g = &call->diff_src[0][i];
            *g = op->build.norm->relu && !(normal(&line, c, x) > 0) ? 0 : *g;
            sum += (double) *g;
            sum_hat += (double) *g * (double) ((x - line.mean[c]) * line.inverse[c]);
        }
        sums[c] = (float) sum;
        sums[step + c] = (float) sum_hat;
    }
}

static hpct_status backward(hpct_op *op, const hpct_op_call *call)
{
    hpct_op *inner = ((normed_op *) op)->inner;
    const float *src;
    hpct_op_call own = inside(op, call, &src);
    hpct_status status = inner->class->backward(inner, &own);
    if (status == HPCT_OK)
        mask_and_sum(op, call);
    return status;
}

static hpct_status import_param(hpct_op *op, int which, const float *keras, float *arena)
{
    hpct_op *inner = ((normed_op *) op)->inner;
    return inner->class->import_param(inner, which, keras, arena);
}

static hpct_status export_param(hpct_op *op, int which, const float *arena, float *keras)
{
    hpct_op *inner = ((normed_op *) op)->inner;
    return inner->class->export_param(inner, which, arena, keras);
}

static void destroy(hpct_op *op)
{
    hpct_op *inner = ((normed_op *) op)->inner;
    inner->class->destroy(inner);
    free(op);
}

hpct_status hpct_ref_make_normed(hpct_op **out, const hpct_op_spec *spec,
                                 const hpct_op_build *build)
{
    static const hpct_op_class class = {.forward = forward,
                                        .backward = backward,
                                        .import_param = import_param,
                                        .export_param = export_param,
                                        .destroy = destroy};
    size_t step = hpct_norm_line_step((size_t) build->norm->norm.channels), most = 0;
    hpct_op_build inner = *build;
    normed_op *made = calloc(1, sizeof *made);
    if (made == NULL)
        return hpct_fail_memory(sizeof *made);
    inner.norm = NULL;
    hpct_status status = hpct_ref_make_op(&made->inner, spec, &inner);
    if (status != HPCT_OK) {
        if (made->inner != NULL)
            made->inner->class->destroy(made->inner);
        free(made);
        return status;
    }
    for (int i = 0; i < build->num_batch_sizes; i++) {
        size_t count = (size_t) build->batch_sizes[i] * hpct_op_src_floats(spec, 0);
        most = count > most ? count : most;
    }
    hpct_op *op = *out = &made->op;
    *op = *made->inner;
    op->class = &class;
    op->build = *build;
    op->norm_sums[0] = aligned(op->workspace_bytes);
    op->leaves_norm_sums = true;
    op->workspace_bytes = op->norm_sums[0] + 2 * step * sizeof(float);
    op->scratch_bytes += aligned(most * sizeof(float));
    return HPCT_OK;
}
