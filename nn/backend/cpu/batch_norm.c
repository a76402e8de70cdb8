/* BatchNormalization, with a fused ReLU. Two passes over the data in forward and two in backward,
 * which recomputes the ReLU's mask from the source that it reads anyway. */
#include "nn/backend/cpu/cpu.h"

#include "base/status.h"
#include "nn/backend/cpu/loops.h"
#include "nn/backend/norm_sync.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#define LEAST 16384 /* floats per thread, at least */

typedef struct norm_op {
    hpct_op op;
    int threads; /* maximum that the scratch has room for */
} norm_op;

/* Saved by forward for backward: consecutive arrays of `channels` floats. */
typedef struct notes {
    float *mean, *inverse; /* the batch's; inverse: 1 / sqrt(variance + epsilon) */
    float *scale, *shift;  /* dst = src * scale + shift */
    float *rows;           /* one number: rows of the batch, over all replicas if synchronized */
} notes;

static size_t channels_of(const hpct_op *op)
{
    return (size_t) op->spec.norm.channels;
}

static notes notes_of(const hpct_op *op, void *memory)
{
    float *at = memory;
    size_t step = hpct_cpu_lanes(channels_of(op));
    return (notes){at, at + step, at + 2 * step, at + 3 * step, at + 4 * step};
}

static float *param_of(const hpct_op *op, float *const *params, hpct_graph_norm_param which)
{
    int index = hpct_op_norm_param(&op->spec, which);
    return index < 0 ? NULL : params[index];
}

typedef struct job {
    const hpct_op *op;
    const hpct_op_call *call;
    notes notes;
    size_t rows;
    size_t units, unit_rows;     /* divided among threads: rows, or samples with channel blocks */
    const float *slope, *offset; /* of backward: see norm_backward in loops.h */
} job;

static bool has_blocks(const hpct_op *op)
{
    return op->spec.src_blocks || op->spec.dst_blocks;
}

static job job_of(const hpct_op *op, const hpct_op_call *call)
{
    job j = {.op = op, .call = call, .notes = notes_of(op, call->workspace)};
    j.rows = (size_t) call->n * (size_t) op->spec.norm.rows;
    j.unit_rows = has_blocks(op) ? (size_t) op->spec.norm.rows : 1;
    j.units = j.rows / j.unit_rows;
    return j;
}

/* ---- parts of a thread's units: consecutive rows with all channels or, with channel blocks, the
 * rows of one sample in one block ---- */

typedef struct part {
    hpct_cpu_norm_rows rows;
    size_t channel;  /* first channel */
    size_t before;   /* rows of the same channels in earlier parts */
    size_t src, dst; /* offsets */
} part;

static size_t num_parts(const job *j, size_t count)
{
    return has_blocks(j->op) ? count * (channels_of(j->op) / HPCT_GRAPH_CHANNEL_BLOCK) : 1;
}

/* Offset of a block of a sample; *step: floats between its rows. */
static size_t find_block(const job *j, bool blocks, size_t sample, size_t block, size_t *step)
{
    size_t channels = channels_of(j->op), begin = sample * j->unit_rows * channels;
    *step = blocks ? HPCT_GRAPH_CHANNEL_BLOCK : channels;
    return begin + block * HPCT_GRAPH_CHANNEL_BLOCK * (blocks ? j->unit_rows : 1);
}

static part part_of(const job *j, size_t first, size_t count, size_t index)
{
    size_t channels = channels_of(j->op);
    part p = {.src = first * channels, .dst = first * channels};
    hpct_cpu_norm_rows *rows = &p.rows;
    rows->rows = count;
    rows->channels = rows->src_step = rows->dst_step = channels;
    if (has_blocks(j->op)) {
        size_t blocks = channels / HPCT_GRAPH_CHANNEL_BLOCK, sample = index / blocks;
        rows->rows = j->unit_rows;
        rows->channels = HPCT_GRAPH_CHANNEL_BLOCK;
        p.channel = index % blocks * HPCT_GRAPH_CHANNEL_BLOCK;
        p.before = sample * j->unit_rows;
        p.src =
            find_block(j, j->op->spec.src_blocks, first + sample, index % blocks, &rows->src_step);
        p.dst =
            find_block(j, j->op->spec.dst_blocks, first + sample, index % blocks, &rows->dst_step);
    }
    rows->src = j->call->src[0] + p.src;
    rows->diff = j->call->diff_dst == NULL ? NULL : j->call->diff_dst + p.dst;
    rows->mean = j->notes.mean + p.channel;
    rows->scale = j->notes.scale + p.channel;
    rows->shift = j->notes.shift + p.channel;
    rows->relu = j->op->spec.relu;
    return p;
}

/* ---- two sums per channel over the rows, on several threads ---- */

static int threads_for(const norm_op *norm, const job *j)
{
    size_t threads = (size_t) omp_get_max_threads();
    size_t most = j->rows * channels_of(&norm->op) / LEAST + 1;
    if (threads > (size_t) norm->threads)
        threads = (size_t) norm->threads;
    if (threads > most)
        threads = most;
    return (int) (threads > j->units ? j->units : threads);
}

/* Units of thread t. */
static size_t share(const job *j, int t, int threads, size_t *first)
{
    *first = j->units * (size_t) t / (size_t) threads;
    return j->units * ((size_t) t + 1) / (size_t) threads - *first;
}

static float *sums_of(const job *j, int t)
{
    return (float *) j->call->scratch + (size_t) t * 2 * hpct_cpu_lanes(channels_of(j->op));
}

/* In scratch, after the sums of all threads. */
static float *sync_room(const norm_op *norm, const job *j)
{
    return sums_of(j, norm->threads);
}

/* Merges mean and sum of squared distances of all parts (Chan, Golub and LeVeque, Updating Formulae
 * and a Pairwise Algorithm for Computing Sample Variances, 1979). */
static void join_moments(const job *j, int threads)
{
    size_t channels = channels_of(j->op), step = hpct_cpu_lanes(channels), first;
    float *mean = sums_of(j, 0), *squares = mean + step;
    size_t rows = share(j, 0, threads, &first) * j->unit_rows;
    for (int t = 1; t < threads; t++) {
        const float *other = sums_of(j, t);
        size_t more = share(j, t, threads, &first) * j->unit_rows;
        float weight = (float) more / (float) (rows + more);
        for (size_t c = 0; c < channels; c++) {
            float delta = other[c] - mean[c];
            mean[c] += delta * weight;
            squares[c] += other[step + c] + delta * delta * weight * (float) rows;
        }
        rows += more;
    }
}

static void find_moments(const norm_op *norm, const job *j)
{
    int threads = threads_for(norm, j);
    size_t step = hpct_cpu_lanes(channels_of(j->op));
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int t = 0; t < threads; t++) {
        size_t first, count = share(j, t, threads, &first);
        for (size_t i = 0; i < num_parts(j, count); i++) {
            part p = part_of(j, first, count, i);
            float *sums = sums_of(j, t) + p.channel;
            hpct_cpu_loops_best()->column_moments(&p.rows, p.before, sums, sums + step);
        }
    }
    join_moments(j, threads);
}

/* ---- forward ---- */

static void normalize_share(size_t first, size_t count, void *arg)
{
    const job *j = arg;
    for (size_t i = 0; i < num_parts(j, count); i++) {
        part p = part_of(j, first, count, i);
        hpct_cpu_loops_best()->normalize(&p.rows, j->call->dst + p.dst);
    }
}

/* Minimum number of units per thread. */
static size_t least(const job *j)
{
    return LEAST / (channels_of(j->op) * j->unit_rows) + 1;
}

/* Saves the batch's statistics for backward, and updates the moving ones. */
static hpct_status take_statistics(const norm_op *norm, const job *j)
{
    const hpct_op *op = j->op;
    size_t channels = channels_of(op);
    float *mean = param_of(op, j->call->param, HPCT_GRAPH_NORM_MEAN),
          *variance = param_of(op, j->call->param, HPCT_GRAPH_NORM_VARIANCE);
    float momentum = op->spec.norm.momentum;
    float *sums = sums_of(j, 0), *rows = j->notes.rows;
    if (j->rows > 0)
        find_moments(norm, j);
    else
        memset(sums, 0, 2 * hpct_cpu_lanes(channels) * sizeof *sums);
    hpct_status status = HPCT_OK;
    *rows = (float) j->rows;
    if (hpct_backend_norm_is_synced(&op->spec, j->call))
        status = hpct_backend_norm_sync_moments(j->call->replicas, channels, j->rows, sums,
                                                sums + hpct_cpu_lanes(channels), sync_room(norm, j),
                                                rows);
    for (size_t c = 0; c < channels && status == HPCT_OK; c++) {
        float batch = sums[hpct_cpu_lanes(channels) + c] / *rows;
        j->notes.mean[c] = sums[c];
        j->notes.inverse[c] = 1 / sqrtf(batch + op->spec.norm.epsilon);
        mean[c] = momentum * mean[c] + (1 - momentum) * sums[c];
        variance[c] = momentum * variance[c] + (1 - momentum) * batch;
    }
    return status;
}

static void take_moving(const job *j)
{
    const hpct_op *op = j->op;
    const float *mean = param_of(op, j->call->param, HPCT_GRAPH_NORM_MEAN),
                *variance = param_of(op, j->call->param, HPCT_GRAPH_NORM_VARIANCE);
    for (size_t c = 0; c < channels_of(op); c++) {
        j->notes.mean[c] = mean[c];
        j->notes.inverse[c] = 1 / sqrtf(variance[c] + op->spec.norm.epsilon);
    }
}

static hpct_status forward(hpct_op *op, const hpct_op_call *call)
{
    job j = job_of(op, call);
    hpct_status status = HPCT_OK;
    if (call->training)
        status = take_statistics((const norm_op *) op, &j);
    else
        take_moving(&j);
    if (status != HPCT_OK || call->n == 0)
        return status;
    const float *gamma = param_of(op, call->param, HPCT_GRAPH_NORM_GAMMA),
                *beta = param_of(op, call->param, HPCT_GRAPH_NORM_BETA);
    for (size_t c = 0; c < channels_of(op); c++) {
        j.notes.scale[c] = (gamma != NULL ? gamma[c] : 1) * j.notes.inverse[c];
        j.notes.shift[c] = (beta != NULL ? beta[c] : 0) - j.notes.mean[c] * j.notes.scale[c];
    }
    hpct_cpu_loops_split(j.units, least(&j), normalize_share, &j);
    return HPCT_OK;
}

/* ---- backward ---- */

/* The sums of the gradient and of the gradient times (x - mean), in the first thread's scratch. */
static void find_sums(const norm_op *norm, const job *j)
{
    int threads = threads_for(norm, j);
    size_t step = hpct_cpu_lanes(channels_of(j->op));
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int t = 0; t < threads; t++) {
        size_t first, count = share(j, t, threads, &first);
        memset(sums_of(j, t), 0, 2 * step * sizeof(float));
        for (size_t i = 0; i < num_parts(j, count); i++) {
            part p = part_of(j, first, count, i);
            float *sums = sums_of(j, t) + p.channel;
            hpct_cpu_loops_best()->norm_sums(&p.rows, sums, sums + step);
        }
    }
    for (int t = 1; t < threads; t++)
        hpct_cpu_loops_best()->add(2 * step, sums_of(j, t), sums_of(j, 0));
}

static void backward_share(size_t first, size_t count, void *arg)
{
    const job *j = arg;
    for (size_t i = 0; i < num_parts(j, count); i++) {
        part p = part_of(j, first, count, i);
        hpct_cpu_loops_best()->norm_backward(&p.rows, j->slope + p.channel, j->offset + p.channel,
                                             j->call->add[0], j->call->diff_src[0] + p.src);
    }
}

static hpct_status backward(hpct_op *op, const hpct_op_call *call)
{
    job j = job_of(op, call);
    size_t channels = channels_of(op), step = hpct_cpu_lanes(channels);
    find_sums((const norm_op *) op, &j);
    float *sum = sums_of(&j, 0), *sum_x = sum + step;
    float *diff_gamma = param_of(op, call->grad, HPCT_GRAPH_NORM_GAMMA),
          *diff_beta = param_of(op, call->grad, HPCT_GRAPH_NORM_BETA);
    for (size_t c = 0; c < channels; c++) { /* local; all-reduced with other gradients later */
        if (diff_beta != NULL)
            diff_beta[c] = sum[c];
        if (diff_gamma != NULL)
            diff_gamma[c] = sum_x[c] * j.notes.inverse[c];
    }
    const float *all = sum, *all_x = sum_x;
    if (hpct_backend_norm_is_synced(&op->spec, call)) {
        float *room = sync_room((const norm_op *) op, &j);
        HPCT_TRY(hpct_backend_norm_sync_sums(call->replicas, channels, sum, sum_x, room));
        all = room;
        all_x = room + channels;
    }
    for (size_t c = 0; c < channels; c++) {
        float inverse = j.notes.inverse[c], scale = j.notes.scale[c], rows = *j.notes.rows;
        sum[c] = -scale * all[c] / rows;
        sum_x[c] = -scale * inverse * inverse * all_x[c] / rows;
    }
    if (call->diff_src[0] == NULL)
        return HPCT_OK;
    j.offset = sum;
    j.slope = sum_x;
    hpct_cpu_loops_split(j.units, least(&j), backward_share, &j);
    return HPCT_OK;
}

hpct_status hpct_cpu_make_batch_norm(hpct_op **out, const hpct_op_spec *spec,
                                     const hpct_op_build *build)
{
    static const hpct_op_class class = {
        .forward = forward, .backward = backward, .destroy = hpct_op_free};
    HPCT_TRY(hpct_op_new(out, sizeof(norm_op), &class, spec, build));
    hpct_op *op = *out;
    norm_op *norm = (norm_op *) op;
    norm->threads =
        omp_get_num_procs() > omp_get_max_threads() ? omp_get_num_procs() : omp_get_max_threads();
    op->workspace_bytes = (4 * hpct_cpu_lanes(channels_of(op)) + 1) * sizeof(float);
    op->scratch_bytes =
        (size_t) norm->threads * 2 * hpct_cpu_lanes(channels_of(op)) * sizeof(float);
    if (spec->norm.synchronized)
        op->scratch_bytes += HPCT_BACKEND_NORM_SYNC_ROOM(channels_of(op)) * sizeof(float);
    op->backward_reads_dst = false; /* the mask of the ReLU is computed again */
    op->backward_keeps_diff_dst = true;
    return HPCT_OK;
}
