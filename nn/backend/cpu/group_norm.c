/* LayerNormalization and GroupNormalization. A thread has whole rows, and its own sums of the
 * gradients of gamma and beta, which are added in the threads' order. */
#include "nn/backend/cpu/cpu.h"

#include "base/status.h"
#include "nn/backend/cpu/loops.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#define LEAST 16384 /* floats per thread, at least */

typedef struct group_op {
    hpct_op op;
    int threads;         /* maximum that the scratch has room for */
    float *ones, *zeros; /* [channels]: an absent gamma or beta; one allocation */
} group_op;

typedef struct job {
    const group_op *norm;
    const hpct_op_call *call;
    size_t row; /* floats of one */
} job;

static size_t channels_of(const hpct_op *op)
{
    return (size_t) op->spec.group.channels;
}

static size_t rows_of(const job *j)
{
    return (size_t) j->call->n * (size_t) j->norm->op.spec.group.rows;
}

static const float *param_or(const hpct_op *op, float *const *params, hpct_graph_norm_param which,
                             const float *absent)
{
    int index = hpct_op_norm_param(&op->spec, which);
    return index < 0 ? absent : params[index];
}

/* Mean and inverse of a group, which forward saves. */
static float *notes_of(const job *j, size_t row, size_t group)
{
    size_t groups = (size_t) j->norm->op.spec.group.groups;
    return (float *) j->call->workspace + 2 * (row * groups + group);
}

static hpct_cpu_group_rows group_of(const job *j, size_t row, size_t group)
{
    const hpct_op *op = &j->norm->op;
    size_t channels = channels_of(op), width = channels / (size_t) op->spec.group.groups,
           first = group * width, at = row * j->row + first;
    const float *notes = notes_of(j, row, group);
    return (hpct_cpu_group_rows){
        .cells = (size_t) op->spec.group.cells,
        .channels = width,
        .step = channels,
        .src = j->call->src[0] + at,
        .diff = j->call->diff_dst == NULL ? NULL : j->call->diff_dst + at,
        .gamma = param_or(op, j->call->param, HPCT_GRAPH_NORM_GAMMA, j->norm->ones) + first,
        .beta = param_or(op, j->call->param, HPCT_GRAPH_NORM_BETA, j->norm->zeros) + first,
        .mean = notes[0],
        .inverse = notes[1],
    };
}

static void forward_rows(size_t first, size_t count, void *arg)
{
    const job *j = arg;
    const hpct_cpu_loops *loops = hpct_cpu_loops_best();
    const hpct_op_spec *spec = &j->norm->op.spec;
    for (size_t row = first; row < first + count; row++) {
        for (size_t k = 0; k < (size_t) spec->group.groups; k++) {
            float *notes = notes_of(j, row, k), variance;
            hpct_cpu_group_rows group = group_of(j, row, k);
            loops->group_moments(&group, &notes[0], &variance);
            notes[1] = 1 / sqrtf(variance + spec->group.epsilon);
            group.mean = notes[0];
            group.inverse = notes[1];
            loops->group_normalize(&group, j->call->dst + (group.src - j->call->src[0]));
        }
    }
}

static job job_of(const hpct_op *op, const hpct_op_call *call)
{
    return (job){.norm = (const group_op *) op,
                 .call = call,
                 .row = (size_t) op->spec.group.cells * channels_of(op)};
}

static hpct_status forward(hpct_op *op, const hpct_op_call *call)
{
    job j = job_of(op, call);
    hpct_cpu_loops_split(rows_of(&j), LEAST / j.row + 1, forward_rows, &j);
    return HPCT_OK;
}

/* sums: of the gradients of gamma and beta, [2][padded]. */
static void backward_rows(const job *j, size_t first, size_t count, float *sums)
{
    const hpct_cpu_loops *loops = hpct_cpu_loops_best();
    const hpct_op *op = &j->norm->op;
    size_t step = hpct_cpu_lanes(channels_of(op)), groups = (size_t) op->spec.group.groups;
    float *diff_src = j->call->diff_src[0];
    for (size_t row = first; row < first + count; row++) {
        for (size_t k = 0; k < groups; k++) {
            hpct_cpu_group_rows g = group_of(j, row, k);
            float sum, sum_x, all = (float) (g.cells * g.channels);
            size_t channel = k * g.channels;
            loops->group_sums(&g, &sum, &sum_x, sums + channel, sums + step + channel);
            float offset = -g.inverse * sum / all;
            float slope = -g.inverse * g.inverse * g.inverse * sum_x / all;
            if (diff_src != NULL)
                loops->group_backward(&g, slope, offset, j->call->add[0],
                                      diff_src + (g.src - j->call->src[0]));
        }
    }
}

static void store_sums(const hpct_op *op, const hpct_op_call *call, const float *sums)
{
    size_t channels = channels_of(op);
    int gamma = hpct_op_norm_param(&op->spec, HPCT_GRAPH_NORM_GAMMA),
        beta = hpct_op_norm_param(&op->spec, HPCT_GRAPH_NORM_BETA);
    if (gamma >= 0)
        memcpy(call->grad[gamma], sums, channels * sizeof *sums);
    if (beta >= 0)
        memcpy(call->grad[beta], sums + hpct_cpu_lanes(channels), channels * sizeof *sums);
}

static hpct_status backward(hpct_op *op, const hpct_op_call *call)
{
    job j = job_of(op, call);
    const group_op *norm = j.norm;
    size_t rows = rows_of(&j), step = 2 * hpct_cpu_lanes(channels_of(op)),
           most = rows * j.row / LEAST + 1;
    size_t threads = (size_t) omp_get_max_threads();
    threads = threads > (size_t) norm->threads ? (size_t) norm->threads : threads;
    threads = threads > most ? most : threads;
    float *sums = call->scratch;
    memset(sums, 0, threads * step * sizeof *sums);
#pragma omp parallel for schedule(static) num_threads((int) threads)
    for (size_t t = 0; t < threads; t++) {
        size_t first = rows * t / threads;
        backward_rows(&j, first, rows * (t + 1) / threads - first, sums + t * step);
    }
    for (size_t t = 1; t < threads; t++)
        hpct_cpu_loops_best()->add(step, sums + t * step, sums);
    store_sums(op, call, sums);
    return HPCT_OK;
}

static void destroy(hpct_op *op)
{
    free(((group_op *) op)->ones);
    free(op);
}

hpct_status hpct_cpu_make_group_norm(hpct_op **out, const hpct_op_spec *spec,
                                     const hpct_op_build *build)
{
    static const hpct_op_class class = {
        .forward = forward, .backward = backward, .destroy = destroy};
    HPCT_TRY(hpct_op_new(out, sizeof(group_op), &class, spec, build));
    hpct_op *op = *out;
    group_op *norm = (group_op *) op;
    norm->threads =
        omp_get_num_procs() > omp_get_max_threads() ? omp_get_num_procs() : omp_get_max_threads();
    op->workspace_bytes = 2 * sizeof(float) * (size_t) hpct_op_largest_batch(build) *
                          (size_t) spec->group.rows * (size_t) spec->group.groups;
    op->scratch_bytes =
        (size_t) norm->threads * 2 * hpct_cpu_lanes(channels_of(op)) * sizeof(float);
    norm->ones = calloc(2 * channels_of(op), sizeof *norm->ones);
    if (norm->ones == NULL)
        return hpct_fail_memory(2 * channels_of(op) * sizeof *norm->ones);
    norm->zeros = norm->ones + channels_of(op);
    for (size_t c = 0; c < channels_of(op); c++)
        norm->ones[c] = 1;
    return HPCT_OK;
}
