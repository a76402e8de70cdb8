/* Add and Concatenate: memory-bound loops. */
#include "nn/backend/cpu/cpu.h"

#include "base/status.h"
#include "nn/backend/cpu/loops.h"

#include <stdlib.h>
#include <string.h>

#define LEAST 16384 /* floats per thread, at least */

typedef struct job {
    const hpct_op_spec *spec;
    const hpct_op_call *call;
} job;

static void add_part(size_t first, size_t count, void *arg)
{
    const job *j = arg;
    const hpct_cpu_loops *loops = hpct_cpu_loops_best();
    int num = j->spec->join.count;
    const float *sum = j->call->src[0] + first;
    float *dst = j->call->dst + first;
    for (int k = 1; k < num; k++) {
        loops->sum(count, sum, j->call->src[k] + first, j->spec->relu && k == num - 1, dst);
        sum = dst;
    }
}

static hpct_status add_forward(hpct_op *op, const hpct_op_call *call)
{
    job j = {&op->spec, call};
    hpct_cpu_loops_split((size_t) call->n * hpct_op_dst_floats(&op->spec), LEAST, add_part, &j);
    return HPCT_OK;
}

static void add_back(size_t first, size_t count, void *arg)
{
    const job *j = arg;
    const hpct_cpu_loops *loops = hpct_cpu_loops_best();
    float *diff = j->call->diff_dst + first;
    if (j->spec->relu)
        loops->relu_backward(count, j->call->dst + first, diff, diff);
    for (int k = 0; k < j->spec->join.count; k++) {
        float *diff_src = j->call->diff_src[k];
        if (diff_src == NULL || diff_src == j->call->diff_dst)
            continue;
        if (j->call->add[k])
            loops->add(count, diff, diff_src + first);
        else
            memcpy(diff_src + first, diff, count * sizeof *diff);
    }
}

static bool all_passed(const hpct_op *op, const hpct_op_call *call)
{
    bool all = !op->spec.relu;
    for (int k = 0; k < op->spec.join.count; k++)
        all = all && (call->diff_src[k] == NULL || call->diff_src[k] == call->diff_dst);
    return all;
}

static hpct_status add_backward(hpct_op *op, const hpct_op_call *call)
{
    job j = {&op->spec, call};
    if (!all_passed(op, call))
        hpct_cpu_loops_split((size_t) call->n * hpct_op_dst_floats(&op->spec), LEAST, add_back, &j);
    return HPCT_OK;
}

/* Number of contiguous pieces of an input per sample: rows or, with channel blocks, 1. */
static size_t rows_of(const hpct_op_spec *spec)
{
    return spec->src_blocks || spec->dst_blocks ? 1 : (size_t) spec->join.rows;
}

static size_t part_floats(const hpct_op_spec *spec, int input)
{
    return hpct_op_src_floats(spec, input) / rows_of(spec);
}

/* Floats of one row of the result. */
static size_t row_floats(const hpct_op_spec *spec)
{
    return hpct_op_dst_floats(spec) / rows_of(spec);
}

static void concatenate_rows(size_t first, size_t rows, void *arg)
{
    const job *j = arg;
    float *dst = j->call->dst + first * row_floats(j->spec);
    for (size_t r = first; r < first + rows; r++) {
        for (int k = 0; k < j->spec->join.count; k++) {
            size_t count = part_floats(j->spec, k);
            memcpy(dst, j->call->src[k] + r * count, count * sizeof *dst);
            dst += count;
        }
    }
}

static void split_rows(size_t first, size_t rows, void *arg)
{
    const job *j = arg;
    const hpct_cpu_loops *loops = hpct_cpu_loops_best();
    const float *diff = j->call->diff_dst + first * row_floats(j->spec);
    for (size_t r = first; r < first + rows; r++) {
        for (int k = 0; k < j->spec->join.count; k++) {
            size_t count = part_floats(j->spec, k);
            float *diff_src = j->call->diff_src[k];
            if (diff_src != NULL && j->call->add[k])
                loops->add(count, diff, diff_src + r * count);
            else if (diff_src != NULL)
                memcpy(diff_src + r * count, diff, count * sizeof *diff);
            diff += count;
        }
    }
}

static void each_row(const hpct_op *op, const hpct_op_call *call,
                     void (*body)(size_t first, size_t rows, void *arg))
{
    job j = {&op->spec, call};
    size_t rows = (size_t) call->n * rows_of(&op->spec);
    hpct_cpu_loops_split(rows, LEAST / row_floats(&op->spec) + 1, body, &j);
}

static hpct_status concatenate_forward(hpct_op *op, const hpct_op_call *call)
{
    each_row(op, call, concatenate_rows);
    return HPCT_OK;
}

static hpct_status concatenate_backward(hpct_op *op, const hpct_op_call *call)
{
    each_row(op, call, split_rows);
    return HPCT_OK;
}

const hpct_op_class hpct_cpu_add = {
    .forward = add_forward, .backward = add_backward, .destroy = hpct_op_free};

const hpct_op_class hpct_cpu_concatenate = {
    .forward = concatenate_forward, .backward = concatenate_backward, .destroy = hpct_op_free};
