/* Normalization and PReLU: numbers per channel or per element of a sample. */
#include "nn/backend/cpu/cpu.h"

#include "base/status.h"
#include "nn/backend/cpu/loops.h"
#include "nn/backend/line.h"

#include <stdlib.h>

#define LEAST 16384 /* floats per thread, at least */

/* Elements in rows of `period`, each with the numbers of its column. */
typedef struct job {
    size_t period, rows;
    const float *line; /* mean[period], scale[period], offset[period]; or alpha[period] */
    const float *src, *diff;
    float *out;
} job;

static size_t least_rows(const job *j)
{
    return LEAST / j->period + 1;
}

static void normalize(size_t first, size_t rows, void *arg)
{
    const job *j = arg;
    size_t period = j->period;
    const float *mean = j->line, *scale = mean + period, *offset = scale + period;
    for (size_t r = first; r < first + rows; r++) {
        for (size_t c = 0; c < period; c++)
            j->out[r * period + c] = (j->src[r * period + c] - mean[c]) * scale[c] + offset[c];
    }
}

static void normalize_back(size_t first, size_t rows, void *arg)
{
    const job *j = arg;
    size_t period = j->period;
    for (size_t r = first; r < first + rows; r++) {
        for (size_t c = 0; c < period; c++)
            j->out[r * period + c] = j->diff[r * period + c] * j->line[period + c];
    }
}

static hpct_status normalization_forward(hpct_op *op, const hpct_op_call *call)
{
    hpct_backend_line_fill(&op->spec, call->param, call->scratch);
    job j = {.period = (size_t) op->spec.line.channels,
             .rows = (size_t) call->n * (size_t) op->spec.line.rows,
             .line = call->scratch,
             .src = call->src[0],
             .out = call->dst};
    hpct_cpu_loops_split(j.rows, least_rows(&j), normalize, &j);
    return HPCT_OK;
}

static hpct_status normalization_backward(hpct_op *op, const hpct_op_call *call)
{
    if (call->diff_src[0] == NULL)
        return HPCT_OK;
    hpct_backend_line_fill(&op->spec, call->param, call->scratch);
    job j = {.period = (size_t) op->spec.line.channels,
             .rows = (size_t) call->n * (size_t) op->spec.line.rows,
             .line = call->scratch,
             .diff = call->diff_dst,
             .out = call->diff_src[0]};
    hpct_cpu_loops_split(j.rows, least_rows(&j), normalize_back, &j);
    return HPCT_OK;
}

/* ---- PReLU ---- */

static void slope(size_t first, size_t rows, void *arg)
{
    const job *j = arg;
    for (size_t r = first; r < first + rows; r++) {
        for (size_t c = 0; c < j->period; c++) {
            float x = j->src[r * j->period + c];
            j->out[r * j->period + c] = x > 0 ? x : j->line[c] * x;
        }
    }
}

static void slope_back(size_t first, size_t rows, void *arg)
{
    const job *j = arg;
    for (size_t r = first; r < first + rows; r++) {
        for (size_t c = 0; c < j->period; c++) {
            float g = j->diff[r * j->period + c];
            j->out[r * j->period + c] = j->src[r * j->period + c] > 0 ? g : j->line[c] * g;
        }
    }
}

/* Gradients of alpha of some columns. */
static void alpha_back(size_t first, size_t count, void *arg)
{
    const job *j = arg;
    for (size_t c = first; c < first + count; c++) {
        double sum = 0;
        for (size_t i = c; i < j->rows * j->period; i += j->period)
            sum += j->src[i] > 0 ? 0 : (double) j->src[i] * (double) j->diff[i];
        j->out[c] = (float) sum;
    }
}

static job slopes(const hpct_op *op, const hpct_op_call *call)
{
    size_t period = op->param_floats[0];
    return (job){.period = period,
                 .rows = (size_t) call->n * hpct_op_dst_floats(&op->spec) / period,
                 .line = call->param[0],
                 .src = call->src[0],
                 .diff = call->diff_dst};
}

static hpct_status prelu_forward(hpct_op *op, const hpct_op_call *call)
{
    job j = slopes(op, call);
    j.out = call->dst;
    hpct_cpu_loops_split(j.rows, least_rows(&j), slope, &j);
    return HPCT_OK;
}

static hpct_status prelu_backward(hpct_op *op, const hpct_op_call *call)
{
    job j = slopes(op, call);
    j.out = call->grad[0];
    hpct_cpu_loops_split(j.period, LEAST / (j.rows + 1) + 1, alpha_back, &j);
    j.out = call->diff_src[0];
    if (j.out != NULL)
        hpct_cpu_loops_split(j.rows, least_rows(&j), slope_back, &j);
    return HPCT_OK;
}

hpct_status hpct_cpu_make_line(hpct_op **out, const hpct_op_spec *spec, const hpct_op_build *build)
{
    static const hpct_op_class normalization = {.forward = normalization_forward,
                                                .backward = normalization_backward,
                                                .destroy = hpct_op_free};
    static const hpct_op_class prelu = {
        .forward = prelu_forward, .backward = prelu_backward, .destroy = hpct_op_free};
    bool slopes = spec->kind == HPCT_OP_PRELU;
    HPCT_TRY(hpct_op_new(out, sizeof **out, slopes ? &prelu : &normalization, spec, build));
    if (!slopes)
        (*out)->scratch_bytes = 3 * (size_t) spec->line.channels * sizeof(float);
    return HPCT_OK;
}
