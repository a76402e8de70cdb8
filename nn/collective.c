/* Sums and gathers over the parts of a split model. */
#include "nn/collective.h"

#include "base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static size_t rows_of(const hpct_op *op, int n)
{
    return (size_t) n * (size_t) op->spec.parts.rows;
}

/* The same record from each part: its channels, padded to the most that one has, and the riders. */
static size_t record_floats(const hpct_op_spec *spec, int n)
{
    const hpct_channel_split *split = &spec->parts.split;
    int most = split->channels; /* SUM_PARTS: all */
    if (spec->kind == HPCT_OP_GATHER_PARTS) {
        int units = split->channels / split->unit;
        most = (units / split->parts + (units % split->parts != 0)) * split->unit;
    }
    return (size_t) n * (size_t) spec->parts.rows * (size_t) most +
           (spec->parts.carries ? HPCT_RIDERS : 0);
}

size_t hpct_collective_floats(const hpct_op_spec *spec, int n)
{
    size_t again = spec->parts.sum_diff ? (size_t) n * hpct_op_dst_floats(spec) : 0;
    return record_floats(spec, n) + again;
}

static hpct_status need_replicas(const hpct_op_call *call)
{
    return call->replicas != NULL
               ? HPCT_OK
               : hpct_fail(HPCT_ERR_INTERNAL, "a part of a model computes without the others");
}

/* Where the riders lie in a record; NULL when none ride. */
static float *riders_in(const hpct_op *op, const hpct_op_call *call, float *record)
{
    bool any = op->spec.parts.carries && call->replicas->riders != NULL;
    return any ? record + record_floats(&op->spec, call->n) - HPCT_RIDERS : NULL;
}

/* A record that nobody rides in has zeros there. */
static void board(const hpct_op *op, const hpct_op_call *call, float *record)
{
    float *seats = record + record_floats(&op->spec, call->n) - HPCT_RIDERS;
    if (!op->spec.parts.carries)
        return;
    if (call->replicas->riders != NULL)
        memcpy(seats, call->replicas->riders, HPCT_RIDERS * sizeof *seats);
    else
        memset(seats, 0, HPCT_RIDERS * sizeof *seats);
}

/* ---- SUM_PARTS ---- */

/* In one pass each, for every rank makes them over the whole batch. `bias` is never NULL: an
 * operation without one has zeros in its scratch, or numbers there that nobody reads. */
static void finish_row(size_t channels, bool relu, const float *sum, const float *bias, float *dst)
{
    float least = relu ? 0 : -INFINITY;
#pragma omp simd
    for (size_t c = 0; c < channels; c++) {
        float value = sum[c] + bias[c];
        dst[c] = value < least ? least : value;
    }
}

/* What the ReLU lets through goes on, and to the bias's gradient. out may be diff. */
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

/* Behind the record. */
static float *room_for_bias(const hpct_op *op, const hpct_op_call *call)
{
    return (float *) call->scratch + record_floats(&op->spec, call->n);
}

static const float *bias_of(const hpct_op *op, const hpct_op_call *call)
{
    size_t bytes = (size_t) op->spec.parts.split.channels * sizeof(float);
    return op->spec.no_bias ? memset(room_for_bias(op, call), 0, bytes) : call->param[0];
}

/* Each replica finishes its rows before they go to all. In the parts themselves, which nobody else
 * reads: without a copy. */
static hpct_status sum_in_halves(hpct_op *op, const hpct_op_call *call)
{
    const hpct_replicas *replicas = call->replicas;
    size_t rows = rows_of(op, call->n), channels = (size_t) op->spec.parts.split.channels;
    float *parts = (float *) (uintptr_t) call->src[0], *dst = call->dst;
    const float *bias = bias_of(op, call);
    size_t first, own;
    hpct_status status = replicas->reduce(replicas->argument, parts, rows, channels, &first, &own);
    for (size_t r = first; status == HPCT_OK && r < first + own; r++)
        finish_row(channels, op->spec.relu, parts + r * channels, bias, dst + r * channels);
    return status != HPCT_OK ? status
                             : replicas->spread(replicas->argument, dst, rows, channels,
                                                op->spec.parts.carries ? replicas->riders : NULL);
}

static hpct_status sum_forward(hpct_op *op, const hpct_op_call *call)
{
    size_t rows = rows_of(op, call->n), channels = (size_t) op->spec.parts.split.channels;
    float *record = call->scratch;
    hpct_status status = need_replicas(call);
    if (status != HPCT_OK)
        return status;
    if (call->replicas->reduce != NULL && rows * channels >= call->replicas->halves_from)
        return sum_in_halves(op, call);
    memcpy(record, call->src[0], rows * channels * sizeof *record);
    board(op, call, record);
    status =
        call->replicas->sum(call->replicas->argument, record, record_floats(&op->spec, call->n));
    const float *riders = riders_in(op, call, record);
    if (status == HPCT_OK && riders != NULL)
        memcpy(call->replicas->riders, riders, HPCT_RIDERS * sizeof *riders);
    const float *bias = bias_of(op, call);
    for (size_t r = 0; status == HPCT_OK && r < rows; r++)
        finish_row(channels, op->spec.relu, record + r * channels, bias, call->dst + r * channels);
    return status;
}

static hpct_status sum_backward(hpct_op *op, const hpct_op_call *call)
{
    size_t rows = rows_of(op, call->n), channels = (size_t) op->spec.parts.split.channels;
    float *diff = call->diff_dst, *out = call->diff_src[0] != NULL ? call->diff_src[0] : diff;
    float *grad = op->spec.no_bias ? room_for_bias(op, call) : call->grad[0];
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

/* ---- GATHER_PARTS ---- */

static hpct_status gather_forward(hpct_op *op, const hpct_op_call *call)
{
    const hpct_channel_split *split = &op->spec.parts.split;
    size_t rows = rows_of(op, call->n), floats = record_floats(&op->spec, call->n),
           channels = (size_t) split->channels;
    float *mine = call->scratch, *all = mine + floats;
    hpct_status status = need_replicas(call);
    if (status != HPCT_OK)
        return status;
    memset(mine, 0, floats * sizeof *mine);
    memcpy(mine, call->src[0],
           rows * (size_t) hpct_channel_split_count(split, split->part) * sizeof *mine);
    board(op, call, mine);
    status = call->replicas->gather(call->replicas->argument, mine, all, floats);
    if (status != HPCT_OK)
        return status;
    for (int part = 0; part < split->parts; part++) {
        size_t first = (size_t) hpct_channel_split_first(split, part),
               own = (size_t) hpct_channel_split_count(split, part);
        const float *from = all + (size_t) part * floats;
        for (size_t r = 0; r < rows; r++)
            memcpy(call->dst + r * channels + first, from + r * own, own * sizeof *from);
    }
    if (riders_in(op, call, mine) == NULL)
        return HPCT_OK;
    memset(call->replicas->riders, 0, HPCT_RIDERS * sizeof *mine);
    for (int part = 0; part < split->parts; part++)
        for (int i = 0; i < HPCT_RIDERS; i++)
            call->replicas->riders[i] += riders_in(op, call, all + (size_t) part * floats)[i];
    return HPCT_OK;
}

static hpct_status gather_backward(hpct_op *op, const hpct_op_call *call)
{
    const hpct_channel_split *split = &op->spec.parts.split;
    size_t rows = rows_of(op, call->n), channels = (size_t) split->channels,
           first = (size_t) hpct_channel_split_first(split, split->part),
           own = (size_t) hpct_channel_split_count(split, split->part);
    hpct_status status = HPCT_OK;
    if (op->spec.parts.sum_diff)
        status = call->replicas->sum(call->replicas->argument, call->diff_dst, rows * channels);
    for (size_t r = 0; call->diff_src[0] != NULL && r < rows; r++)
        memcpy(call->diff_src[0] + r * own, call->diff_dst + r * channels + first,
               own * sizeof(float));
    return status;
}

/* ---- making one ---- */

static hpct_status copy_param(hpct_op *op, int which, const float *from, float *to)
{
    memcpy(to, from, op->param_floats[which] * sizeof *to);
    return HPCT_OK;
}

static void destroy(hpct_op *op)
{
    free(op);
}

hpct_status hpct_make_collective(hpct_op **out, const hpct_op_spec *spec,
                                 const hpct_op_build *build)
{
    static const hpct_op_class sum = {.forward = sum_forward,
                                      .backward = sum_backward,
                                      .import_param = copy_param,
                                      .export_param = copy_param,
                                      .destroy = destroy};
    static const hpct_op_class gather = {
        .forward = gather_forward, .backward = gather_backward, .destroy = destroy};
    bool sums = spec->kind == HPCT_OP_SUM_PARTS;
    hpct_op *op = calloc(1, sizeof *op);
    if (op == NULL)
        return hpct_fail_memory(sizeof *op);
    op->class = sums ? &sum : &gather;
    op->spec = *spec;
    op->build = *build;
    op->num_params = hpct_op_num_params(spec);
    if (op->num_params > 0)
        op->param_floats[0] = hpct_op_param_floats(spec, 0);
    op->backward_reads_dst = spec->relu;
    op->backward_keeps_diff_dst = !spec->relu && !spec->parts.sum_diff;
    op->passes_diff_dst = sums;
    int largest = 0;
    for (int i = 0; i < build->num_batch_sizes; i++)
        largest = build->batch_sizes[i] > largest ? build->batch_sizes[i] : largest;
    size_t records = sums ? 1 : 1 + (size_t) spec->parts.split.parts;
    size_t bias = sums ? (size_t) spec->parts.split.channels : 0;
    op->scratch_bytes = (records * record_floats(spec, largest) + bias) * sizeof(float);
    *out = op;
    return HPCT_OK;
}
