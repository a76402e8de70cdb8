/* BatchNormalization by own loops, with a ReLU behind it on the way. Two passes over the picture
 * forward and two backward; where the ReLU was closed is worked out again from the source, which
 * backward reads anyway. */
#include "nn/cpu/cpu.h"

#include "base/status.h"
#include "nn/cpu/loops.h"
#include "nn/ref/ref.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#define LEAST 16384 /* floats that are worth a thread */

typedef struct norm_op {
    hpct_op op;
    int threads; /* most that the scratch has room for */
} norm_op;

/* What forward leaves for backward: arrays of `channels` floats, one behind the other. */
typedef struct notes {
    float *mean, *inverse; /* of the batch: 1 / sqrt(variance + epsilon) */
    float *scale, *shift;  /* dst = src * scale + shift */
} notes;

static size_t channels_of(const hpct_op *op)
{
    return (size_t) op->spec.norm.channels;
}

static size_t padded(size_t channels)
{
    return (channels + HPCT_LANES - 1) / HPCT_LANES * HPCT_LANES;
}

static notes notes_of(const hpct_op *op, void *memory)
{
    float *at = memory;
    size_t step = padded(channels_of(op));
    return (notes){at, at + step, at + 2 * step, at + 3 * step};
}

static float *param_of(const hpct_op *op, float *const *params, hpct_norm_param which)
{
    int index = hpct_op_norm_param(&op->spec, which);
    return index < 0 ? NULL : params[index];
}

/* ---- two sums per channel over the rows, by several threads ---- */

typedef struct job {
    const hpct_op *op;
    const hpct_op_call *call;
    notes notes;
    size_t rows;
    const float *slope, *offset; /* of backward: see norm_backward in loops.h */
} job;

static int threads_for(const norm_op *norm, size_t rows)
{
    size_t threads = (size_t) omp_get_max_threads();
    size_t most = rows * channels_of(&norm->op) / LEAST + 1;
    if (threads > (size_t) norm->threads)
        threads = (size_t) norm->threads;
    if (threads > most)
        threads = most;
    return (int) (threads > rows ? rows : threads);
}

/* The share of thread t, and where its two sums lie in the scratch. */
static size_t share(const job *j, int t, int threads, size_t *first)
{
    *first = j->rows * (size_t) t / (size_t) threads;
    return j->rows * ((size_t) t + 1) / (size_t) threads - *first;
}

static float *sums_of(const job *j, int t)
{
    return (float *) j->call->scratch + (size_t) t * 2 * padded(channels_of(j->op));
}

/* Mean and sum of squared distances of each part become those of all (Chan, Golub and LeVeque,
 * Updating Formulae and a Pairwise Algorithm for Computing Sample Variances, 1979). */
static void join_moments(const job *j, int threads)
{
    size_t channels = channels_of(j->op), step = padded(channels), first;
    float *mean = sums_of(j, 0), *squares = mean + step;
    size_t rows = share(j, 0, threads, &first);
    for (int t = 1; t < threads; t++) {
        const float *other = sums_of(j, t);
        size_t more = share(j, t, threads, &first);
        float part = (float) more / (float) (rows + more);
        for (size_t c = 0; c < channels; c++) {
            float delta = other[c] - mean[c];
            mean[c] += delta * part;
            squares[c] += other[step + c] + delta * delta * part * (float) rows;
        }
        rows += more;
    }
}

static void find_moments(const norm_op *norm, const job *j)
{
    int threads = threads_for(norm, j->rows);
    size_t channels = channels_of(j->op);
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int t = 0; t < threads; t++) {
        size_t first, rows = share(j, t, threads, &first);
        float *sums = sums_of(j, t);
        hpct_loops_best()->column_moments(rows, channels, j->call->src[0] + first * channels, sums,
                                          sums + padded(channels));
    }
    join_moments(j, threads);
}

/* ---- forward ---- */

static void normalize_rows(size_t first, size_t rows, void *arg)
{
    const job *j = arg;
    size_t channels = channels_of(j->op), at = first * channels;
    hpct_loops_best()->normalize(rows, channels, j->call->src[0] + at, j->notes.scale,
                                 j->notes.shift, j->op->spec.relu, j->call->dst + at);
}

/* The batch's statistics into the notes, and the moving ones towards them. */
static void take_statistics(const norm_op *norm, const job *j)
{
    const hpct_op *op = j->op;
    size_t channels = channels_of(op);
    float *mean = param_of(op, j->call->param, HPCT_NORM_MEAN),
          *variance = param_of(op, j->call->param, HPCT_NORM_VARIANCE);
    float momentum = op->spec.norm.momentum;
    find_moments(norm, j);
    const float *sums = sums_of(j, 0);
    for (size_t c = 0; c < channels; c++) {
        float batch = sums[padded(channels) + c] / (float) j->rows;
        j->notes.mean[c] = sums[c];
        j->notes.inverse[c] = 1 / sqrtf(batch + op->spec.norm.epsilon);
        mean[c] = momentum * mean[c] + (1 - momentum) * sums[c];
        variance[c] = momentum * variance[c] + (1 - momentum) * batch;
    }
}

static void take_moving(const job *j)
{
    const hpct_op *op = j->op;
    const float *mean = param_of(op, j->call->param, HPCT_NORM_MEAN),
                *variance = param_of(op, j->call->param, HPCT_NORM_VARIANCE);
    for (size_t c = 0; c < channels_of(op); c++) {
        j->notes.mean[c] = mean[c];
        j->notes.inverse[c] = 1 / sqrtf(variance[c] + op->spec.norm.epsilon);
    }
}

static hpct_status forward(hpct_op *op, const hpct_op_call *call)
{
    job j = {.op = op,
             .call = call,
             .notes = notes_of(op, call->workspace),
             .rows = (size_t) call->n * (size_t) op->spec.norm.rows};
    if (call->training)
        take_statistics((const norm_op *) op, &j);
    else
        take_moving(&j);
    const float *gamma = param_of(op, call->param, HPCT_NORM_GAMMA),
                *beta = param_of(op, call->param, HPCT_NORM_BETA);
    for (size_t c = 0; c < channels_of(op); c++) {
        j.notes.scale[c] = (gamma != NULL ? gamma[c] : 1) * j.notes.inverse[c];
        j.notes.shift[c] = (beta != NULL ? beta[c] : 0) - j.notes.mean[c] * j.notes.scale[c];
    }
    hpct_loops_split(j.rows, LEAST / channels_of(op) + 1, normalize_rows, &j);
    return HPCT_OK;
}

/* ---- backward ---- */

/* The sums of the gradient and of the gradient times (x - mean) into the first scratch. */
static void find_sums(const norm_op *norm, const job *j)
{
    int threads = threads_for(norm, j->rows);
    size_t channels = channels_of(j->op);
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int t = 0; t < threads; t++) {
        size_t first, rows = share(j, t, threads, &first), at = first * channels;
        float *sums = sums_of(j, t);
        hpct_norm_rows part = {
            rows,          channels,       j->call->src[0] + at, j->call->diff_dst + at,
            j->notes.mean, j->notes.scale, j->notes.shift,       j->op->spec.relu};
        hpct_loops_best()->norm_sums(&part, sums, sums + padded(channels));
    }
    for (int t = 1; t < threads; t++)
        hpct_loops_best()->add(2 * padded(channels), sums_of(j, t), sums_of(j, 0));
}

static void backward_rows(size_t first, size_t rows, void *arg)
{
    const job *j = arg;
    size_t channels = channels_of(j->op), at = first * channels;
    hpct_norm_rows part = {
        rows,          channels,       j->call->src[0] + at, j->call->diff_dst + at,
        j->notes.mean, j->notes.scale, j->notes.shift,       j->op->spec.relu};
    hpct_loops_best()->norm_backward(&part, j->slope, j->offset, j->call->add[0],
                                     j->call->diff_src[0] + at);
}

static hpct_status backward(hpct_op *op, const hpct_op_call *call)
{
    job j = {.op = op,
             .call = call,
             .notes = notes_of(op, call->workspace),
             .rows = (size_t) call->n * (size_t) op->spec.norm.rows};
    size_t channels = channels_of(op), step = padded(channels);
    find_sums((const norm_op *) op, &j);
    float *sum = sums_of(&j, 0), *sum_x = sum + step;
    float *diff_gamma = param_of(op, call->grad, HPCT_NORM_GAMMA),
          *diff_beta = param_of(op, call->grad, HPCT_NORM_BETA);
    for (size_t c = 0; c < channels; c++) {
        float inverse = j.notes.inverse[c], scale = j.notes.scale[c];
        if (diff_beta != NULL)
            diff_beta[c] = sum[c];
        if (diff_gamma != NULL)
            diff_gamma[c] = sum_x[c] * inverse;
        sum[c] = -scale * sum[c] / (float) j.rows;
        sum_x[c] = -scale * inverse * inverse * sum_x[c] / (float) j.rows;
    }
    if (call->diff_src[0] == NULL)
        return HPCT_OK;
    j.offset = sum;
    j.slope = sum_x;
    hpct_loops_split(j.rows, LEAST / channels + 1, backward_rows, &j);
    return HPCT_OK;
}

static void destroy(hpct_op *op)
{
    free(op);
}

hpct_status hpct_cpu_make_batch_norm(hpct_op **out, const hpct_op_spec *spec,
                                     const hpct_op_build *build)
{
    static const hpct_op_class class = {.forward = forward,
                                        .backward = backward,
                                        .import_param = hpct_ref_import,
                                        .export_param = hpct_ref_export,
                                        .destroy = destroy};
    norm_op *norm = calloc(1, sizeof *norm);
    if (norm == NULL)
        return hpct_fail_memory(sizeof *norm);
    hpct_op *op = *out = &norm->op;
    op->class = &class;
    op->spec = *spec;
    op->build = *build;
    op->num_params = hpct_op_num_params(spec);
    for (int i = 0; i < op->num_params; i++)
        op->param_floats[i] = hpct_op_param_floats(spec, i);
    norm->threads =
        omp_get_num_procs() > omp_get_max_threads() ? omp_get_num_procs() : omp_get_max_threads();
    op->workspace_bytes = 4 * padded(channels_of(op)) * sizeof(float);
    op->scratch_bytes = (size_t) norm->threads * 2 * padded(channels_of(op)) * sizeof(float);
    op->backward_reads_src = true;
    op->backward_keeps_diff_dst = true;
    op->adds_diff_src = true;
    return HPCT_OK;
}
