/* Collectives of a split model: sums and gathers over the parts. */
#include "nn/backend/collective.h"

#include "base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static size_t rows_of(const hpct_op *op, int n)
{
    return (size_t) n * (size_t) op->spec.parts.rows;
}

static int share_of(int count, int parts) /* of the first part, the largest */
{
    return count / parts + (count % parts != 0);
}

/* Floats of a record, of the same length for each part: its channels or samples, padded to the
 * largest part's, and the piggybacked values. */
static size_t record_floats(const hpct_op_spec *spec, int n)
{
    const hpct_graph_channel_split *split = &spec->parts.split;
    int channels = split->channels, samples = n; /* SUM_PARTS: all */
    if (spec->kind == HPCT_OP_GATHER_PARTS)
        channels = share_of(channels / split->unit, split->parts) * split->unit;
    else if (spec->kind == HPCT_OP_GATHER_SAMPLES)
        samples = share_of(n, split->parts);
    return (size_t) samples * (size_t) spec->parts.rows * (size_t) channels +
           (spec->parts.carries ? HPCT_GRAPH_PIGGYBACK : 0);
}

size_t hpct_backend_collective_floats(const hpct_op_spec *spec, int n)
{
    size_t again = (size_t) n * hpct_op_dst_floats(spec);
    if (spec->kind == HPCT_OP_GATHER_PARTS)
        again = (size_t) spec->parts.split.parts * record_floats(spec, n);
    return record_floats(spec, n) + (spec->parts.sum_diff ? again : 0);
}

static hpct_status need_replicas(const hpct_op_call *call)
{
    return call->replicas != NULL
               ? HPCT_OK
               : hpct_fail(HPCT_ERR_INTERNAL, "a part of a model computes without the others");
}

/* The piggybacked values in a record; NULL if there are none. */
static float *piggyback_in(const hpct_op *op, const hpct_op_call *call, float *record)
{
    bool any = op->spec.parts.carries && call->replicas->piggyback != NULL;
    return any ? record + record_floats(&op->spec, call->n) - HPCT_GRAPH_PIGGYBACK : NULL;
}

/* Writes the piggybacked values, zeros if there are none. */
static void board(const hpct_op *op, const hpct_op_call *call, float *record)
{
    float *piggyback = record + record_floats(&op->spec, call->n) - HPCT_GRAPH_PIGGYBACK;
    if (!op->spec.parts.carries)
        return;
    if (call->replicas->piggyback != NULL)
        memcpy(piggyback, call->replicas->piggyback, HPCT_GRAPH_PIGGYBACK * sizeof *piggyback);
    else
        memset(piggyback, 0, HPCT_GRAPH_PIGGYBACK * sizeof *piggyback);
}

/* ---- SUM_PARTS ---- */

/* Bias and ReLU in one pass, as every rank processes the whole batch. `bias` is never NULL: without
 * one it is scratch, zeroed in forward, ignored in backward. */
static void finish_row(size_t channels, bool relu, const float *sum, const float *bias, float *dst)
{
    float least = relu ? 0 : -INFINITY;
#pragma omp simd
    for (size_t c = 0; c < channels; c++) {
        float value = sum[c] + bias[c];
        dst[c] = value < least ? least : value;
    }
}

/* ReLU's gradient, also added to the bias gradient. out may be diff. */
static void diff_row(size_t channels, const float *dst, const float *diff, float *bias, float *out)
{
#pragma omp simd
    for (size_t c = 0; c < channels; c++) {
        float passed = diff[c], value = dst[c] > 0 ? passed : 0;
        bias[c] += value;
        out[c] = value;
    }
}

static void linear_diff_row(size_t channels, const float *diff, float *bias, float *out)
{
#pragma omp simd
    for (size_t c = 0; c < channels; c++) {
        float value = diff[c];
        bias[c] += value;
        out[c] = value;
    }
}

/* In scratch, after the record. */
static float *room_for_bias(const hpct_op *op, const hpct_op_call *call)
{
    return (float *) call->scratch + record_floats(&op->spec, call->n);
}

static const float *bias_of(const hpct_op *op, const hpct_op_call *call)
{
    size_t bytes = (size_t) op->spec.parts.split.channels * sizeof(float);
    return op->spec.no_bias ? memset(room_for_bias(op, call), 0, bytes) : call->param[0];
}

/* Each replica applies bias and ReLU to its rows between the two halves. In place in src, which no
 * other operation reads: no copy. */
static hpct_status sum_in_halves(hpct_op *op, const hpct_op_call *call)
{
    const hpct_graph_step_peers *replicas = call->replicas;
    size_t rows = rows_of(op, call->n), channels = (size_t) op->spec.parts.split.channels;
    float *parts = (float *) (uintptr_t) call->src[0], *dst = call->dst;
    const float *bias = bias_of(op, call);
    size_t first, own;
    hpct_status status =
        replicas->reduce_rows(replicas->argument, parts, rows, channels, &first, &own);
    for (size_t r = first; status == HPCT_OK && r < first + own; r++)
        finish_row(channels, op->spec.relu, parts + r * channels, bias, dst + r * channels);
    return status != HPCT_OK
               ? status
               : replicas->spread_rows(replicas->argument, dst, rows, channels,
                                       op->spec.parts.carries ? replicas->piggyback : NULL);
}

static hpct_status sum_forward(hpct_op *op, const hpct_op_call *call)
{
    size_t rows = rows_of(op, call->n), channels = (size_t) op->spec.parts.split.channels;
    float *record = call->scratch;
    HPCT_TRY(need_replicas(call));
    if (call->replicas->reduce_rows != NULL && rows * channels >= call->replicas->halves_from)
        return sum_in_halves(op, call);
    memcpy(record, call->src[0], rows * channels * sizeof *record);
    board(op, call, record);
    hpct_status status =
        call->replicas->sum(call->replicas->argument, record, record_floats(&op->spec, call->n));
    const float *piggyback = piggyback_in(op, call, record);
    if (status == HPCT_OK && piggyback != NULL)
        memcpy(call->replicas->piggyback, piggyback, HPCT_GRAPH_PIGGYBACK * sizeof *piggyback);
    const float *bias = bias_of(op, call);
    for (size_t r = 0; status == HPCT_OK && r < rows; r++)
        finish_row(channels, op->spec.relu, record + r * channels, bias, call->dst + r * channels);
    return status;
}

static hpct_status sum_backward(hpct_op *op, const hpct_op_call *call)
{
    size_t rows = rows_of(op, call->n), channels = (size_t) op->spec.parts.split.channels;
    float *diff = call->diff_dst, *out = call->diff_src[0] != NULL ? call->diff_src[0] : diff;
    bool unwanted = op->spec.no_bias || op->build.frozen;
    float *grad = unwanted ? room_for_bias(op, call) : call->grad[0];
    hpct_status status = HPCT_OK;
    if (op->spec.parts.sum_diff)
        status = call->replicas->sum(call->replicas->argument, diff, rows * channels);
    memset(grad, 0, channels * sizeof *grad);
    for (size_t r = 0; r < rows; r++) {
        size_t at = r * channels;
        if (op->spec.relu)
            diff_row(channels, call->dst + at, diff + at, grad, out + at);
        else
            linear_diff_row(channels, diff + at, grad, out + at);
    }
    return status;
}

/* ---- gathers ---- */

/* All-gather of this part's `count` floats, padded to a record; sums the piggybacked values.
 * Returns all parts' records; NULL on error. */
static const float *exchange(const hpct_op *op, const hpct_op_call *call, size_t count,
                             hpct_status *status)
{
    int parts = op->spec.parts.split.parts;
    size_t floats = record_floats(&op->spec, call->n);
    float *mine = call->scratch, *all = mine + floats;
    memcpy(mine, call->src[0], count * sizeof *mine);
    memset(mine + count, 0, (floats - count) * sizeof *mine);
    board(op, call, mine);
    *status = call->replicas->gather(call->replicas->argument, mine, all, floats);
    if (*status != HPCT_OK)
        return NULL;
    if (piggyback_in(op, call, mine) != NULL)
        memset(call->replicas->piggyback, 0, HPCT_GRAPH_PIGGYBACK * sizeof *mine);
    for (int part = 0; part < parts && piggyback_in(op, call, mine) != NULL; part++)
        for (int i = 0; i < HPCT_GRAPH_PIGGYBACK; i++)
            call->replicas->piggyback[i] += piggyback_in(op, call, all + (size_t) part * floats)[i];
    return all;
}

/* ---- GATHER_PARTS ---- */

/* Contiguous runs: the channels of a row or, in channel blocks, those of a sample with all its
 * rows. */
typedef struct runs {
    size_t num, floats; /* of the gathered tensor */
    size_t channel;     /* floats of a channel in a run */
} runs;

static runs runs_of(const hpct_op *op, int n)
{
    size_t rows = (size_t) op->spec.parts.rows, channels = (size_t) op->spec.parts.split.channels;
    if (op->spec.dst_blocks)
        return (runs){.num = (size_t) n, .floats = rows * channels, .channel = rows};
    return (runs){.num = (size_t) n * rows, .floats = channels, .channel = 1};
}

/* Floats of a part's channels in a run; *first: their offset. */
static size_t part_of(const hpct_op *op, const runs *r, int part, size_t *first)
{
    const hpct_graph_channel_split *split = &op->spec.parts.split;
    *first = (size_t) hpct_graph_channel_split_first(split, part) * r->channel;
    return (size_t) hpct_graph_channel_split_count(split, part) * r->channel;
}

static void paste(const hpct_op *op, const runs *r, int part, const float *own, float *whole)
{
    size_t first, floats = part_of(op, r, part, &first);
    for (size_t i = 0; i < r->num; i++)
        memcpy(whole + i * r->floats + first, own + i * floats, floats * sizeof *own);
}

static void cut(const hpct_op *op, const runs *r, int part, const float *whole, float *own)
{
    size_t first, floats = part_of(op, r, part, &first);
    for (size_t i = 0; i < r->num; i++)
        memcpy(own + i * floats, whole + i * r->floats + first, floats * sizeof *own);
}

static hpct_status gather_forward(hpct_op *op, const hpct_op_call *call)
{
    const hpct_graph_channel_split *split = &op->spec.parts.split;
    const runs r = runs_of(op, call->n);
    size_t first;
    HPCT_TRY(need_replicas(call));
    hpct_status status = HPCT_OK;
    const float *all = exchange(op, call, r.num * part_of(op, &r, split->part, &first), &status);
    for (int part = 0; all != NULL && part < split->parts; part++)
        paste(op, &r, part, all + (size_t) part * record_floats(&op->spec, call->n), call->dst);
    return status;
}

/* Reduce-scatter: each part gets the sum of its channels. */
static hpct_status reduce_parts(const hpct_op *op, const hpct_op_call *call, const runs *r)
{
    const hpct_graph_step_peers *replicas = call->replicas;
    const hpct_graph_channel_split *split = &op->spec.parts.split;
    size_t parts = (size_t) split->parts, floats = record_floats(&op->spec, call->n), first, own;
    float *records = call->scratch;
    memset(records, 0, parts * floats * sizeof *records);
    for (int part = 0; part < split->parts; part++)
        cut(op, r, part, call->diff_dst, records + (size_t) part * floats);
    size_t count = r->num * part_of(op, r, split->part, &own);
    hpct_status status = HPCT_OK;
    if (replicas->reduce_rows != NULL) {
        status = replicas->reduce_rows(replicas->argument, records, parts, floats, &first, &own);
    } else {
        status = replicas->sum(replicas->argument, records, parts * floats);
        first = (size_t) split->part;
    }
    if (status == HPCT_OK && call->diff_src[0] != NULL)
        memcpy(call->diff_src[0], records + first * floats, count * sizeof *records);
    return status;
}

static hpct_status gather_backward(hpct_op *op, const hpct_op_call *call)
{
    const runs r = runs_of(op, call->n);
    if (op->spec.parts.sum_diff)
        return reduce_parts(op, call, &r);
    if (call->diff_src[0] != NULL)
        cut(op, &r, op->spec.parts.split.part, call->diff_dst, call->diff_src[0]);
    return HPCT_OK;
}

/* ---- GATHER_SAMPLES ---- */

/* Floats of a part's samples; *first: offset. */
static size_t samples_of(const hpct_op *op, int n, int part, size_t *first)
{
    int parts = op->spec.parts.split.parts;
    size_t sample = hpct_op_dst_floats(&op->spec);
    *first = (size_t) hpct_graph_samples_first(n, part, parts) * sample;
    return (size_t) hpct_graph_samples_count(n, part, parts) * sample;
}

static hpct_status samples_forward(hpct_op *op, const hpct_op_call *call)
{
    const hpct_graph_step_peers *replicas = call->replicas;
    const hpct_graph_channel_split *split = &op->spec.parts.split;
    size_t first, count = samples_of(op, call->n, split->part, &first);
    HPCT_TRY(need_replicas(call));
    hpct_status status = HPCT_OK;
    if (replicas->spread_rows != NULL) {
        memcpy(call->dst + first, call->src[0], count * sizeof *call->dst);
        return replicas->spread_rows(replicas->argument, call->dst, (size_t) call->n,
                                     hpct_op_dst_floats(&op->spec),
                                     op->spec.parts.carries ? replicas->piggyback : NULL);
    }
    const float *all = exchange(op, call, count, &status);
    for (int part = 0; all != NULL && part < split->parts; part++) {
        count = samples_of(op, call->n, part, &first);
        memcpy(call->dst + first, all + (size_t) part * record_floats(&op->spec, call->n),
               count * sizeof *call->dst);
    }
    return status;
}

static hpct_status samples_backward(hpct_op *op, const hpct_op_call *call)
{
    const hpct_graph_step_peers *replicas = call->replicas;
    size_t sample = hpct_op_dst_floats(&op->spec), rows = (size_t) call->n, first, own,
           count = samples_of(op, call->n, op->spec.parts.split.part, &first);
    hpct_status status = HPCT_OK;
    if (op->spec.parts.sum_diff && replicas->reduce_rows != NULL)
        status =
            replicas->reduce_rows(replicas->argument, call->diff_dst, rows, sample, &first, &own);
    else if (op->spec.parts.sum_diff)
        status = replicas->sum(replicas->argument, call->diff_dst, rows * sample);
    samples_of(op, call->n, op->spec.parts.split.part, &first);
    float *to = call->diff_src[0];
    if (status == HPCT_OK && to != NULL && call->add[0]) {
        for (size_t i = 0; i < count; i++)
            to[i] += call->diff_dst[first + i];
    } else if (status == HPCT_OK && to != NULL) {
        memcpy(to, call->diff_dst + first, count * sizeof *to);
    }
    return status;
}

/* ---- creation ---- */

hpct_status hpct_backend_make_collective(hpct_op **out, const hpct_op_spec *spec,
                                         const hpct_op_build *build)
{
    static const hpct_op_class sum = {
        .forward = sum_forward, .backward = sum_backward, .destroy = hpct_op_free};
    static const hpct_op_class gather = {
        .forward = gather_forward, .backward = gather_backward, .destroy = hpct_op_free};
    static const hpct_op_class samples = {
        .forward = samples_forward, .backward = samples_backward, .destroy = hpct_op_free};
    bool sums = spec->kind == HPCT_OP_SUM_PARTS;
    const hpct_op_class *class = sums                                 ? &sum
                                 : spec->kind == HPCT_OP_GATHER_PARTS ? &gather
                                                                      : &samples;
    HPCT_TRY(hpct_op_new(out, sizeof **out, class, spec, build));
    hpct_op *op = *out;
    op->backward_keeps_diff_dst = !spec->relu && !spec->parts.sum_diff;
    int largest = hpct_op_largest_batch(build);
    size_t records = sums ? 1 : 1 + (size_t) spec->parts.split.parts;
    size_t bias = sums ? (size_t) spec->parts.split.channels : 0;
    op->scratch_bytes = (records * record_floats(spec, largest) + bias) * sizeof(float);
    return HPCT_OK;
}
