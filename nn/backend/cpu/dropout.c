/* Dropout. Backward draws the same numbers again: as fast as reading a mask, without its memory. */
#include "nn/backend/cpu/cpu.h"

#include "base/status.h"
#include "nn/backend/cpu/loops.h"

#include <stdlib.h>
#include <string.h>

typedef struct job {
    hpct_backend_dropout dropout;
    uint32_t first_sample;
    size_t size, groups; /* per sample */
    const float *src;
    float *dst;
} job;

/* Groups are numbered over the whole batch. */
static void drop_groups(size_t first, size_t count, void *arg)
{
    const job *j = arg;
    for (size_t group = first, end = first + count; group < end;) {
        size_t sample = group / j->groups, begin = group % j->groups;
        size_t here = end - group < j->groups - begin ? end - group : j->groups - begin;
        size_t from = begin * HPCT_BACKEND_DROPOUT_GROUP,
               to = from + here * HPCT_BACKEND_DROPOUT_GROUP;
        size_t at = sample * j->size + from;
        hpct_cpu_loops_best()->dropout(&j->dropout, j->first_sample + (uint32_t) sample,
                                       (uint32_t) begin, (to < j->size ? to : j->size) - from,
                                       j->src + at, j->dst + at);
        group += here;
    }
}

/* Samples whose rows all lose the same elements: the mask of a sample is in scratch. */
typedef struct mask_job {
    hpct_backend_dropout dropout;
    uint32_t first_sample;
    size_t rows, size;
    const float *src;
    float *dst, *masks; /* [samples][2][size]: ones, and the mask drawn from them */
} mask_job;

static void mask_row(const mask_job *j, size_t count, const float *mask, const float *src,
                     float *dst)
{
    if (j->size == 1 && mask[0] == 0) /* whole samples */
        memset(dst, 0, count * sizeof *dst);
    else if (j->size == 1)
        hpct_cpu_loops_best()->rescaling(count, mask[0], 0, src, dst);
    for (size_t at = 0; j->size > 1 && at < count; at += j->size)
        for (size_t e = 0; e < j->size; e++)
            dst[at + e] = mask[e] == 0 ? 0 : src[at + e] * mask[e];
}

static void mask_samples(size_t first, size_t count, void *arg)
{
    const mask_job *j = arg;
    for (size_t s = first; s < first + count; s++) {
        float *ones = j->masks + 2 * s * j->size, *mask = ones + j->size;
        for (size_t e = 0; e < j->size; e++)
            ones[e] = 1;
        hpct_cpu_loops_best()->dropout(&j->dropout, j->first_sample + (uint32_t) s, 0, j->size,
                                       ones, mask);
        mask_row(j, j->rows * j->size, mask, j->src + s * j->rows * j->size,
                 j->dst + s * j->rows * j->size);
    }
}

static void drop_rows(const hpct_op *op, const hpct_op_call *call, const float *src, float *dst)
{
    hpct_graph_draw draw = hpct_op_draw(op, call);
    mask_job j = {.dropout = hpct_backend_dropout_make(&draw, op->spec.rate),
                  .first_sample = (uint32_t) call->first_sample,
                  .rows = (size_t) op->spec.dense.rows,
                  .size = (size_t) op->spec.dense.out,
                  .src = src,
                  .dst = dst,
                  .masks = call->scratch};
    hpct_cpu_loops_split((size_t) call->n, 1, mask_samples, &j);
}

static void drop(const hpct_op *op, const hpct_op_call *call, const float *src, float *dst)
{
    hpct_graph_draw draw = hpct_op_draw(op, call);
    size_t size = (size_t) op->spec.dense.out, n = (size_t) call->n;
    job j = {.dropout = hpct_backend_dropout_make(&draw, op->spec.rate),
             .first_sample = (uint32_t) call->first_sample,
             .size = size,
             .groups = (size + HPCT_BACKEND_DROPOUT_GROUP - 1) / HPCT_BACKEND_DROPOUT_GROUP,
             .src = src,
             .dst = dst};
    if (!call->training)
        memcpy(dst, src, n * hpct_op_dst_floats(&op->spec) * sizeof *dst);
    else if (op->spec.dense.rows > 1)
        drop_rows(op, call, src, dst);
    else
        hpct_cpu_loops_split(n * j.groups, 64, drop_groups, &j);
}

static hpct_status forward(hpct_op *op, const hpct_op_call *call)
{
    drop(op, call, call->src[0], call->dst);
    return HPCT_OK;
}

static hpct_status backward(hpct_op *op, const hpct_op_call *call)
{
    if (call->diff_src[0] != NULL)
        drop(op, call, call->diff_dst, call->diff_src[0]);
    return HPCT_OK;
}

hpct_status hpct_cpu_make_dropout(hpct_op **out, const hpct_op_spec *spec,
                                  const hpct_op_build *build)
{
    static const hpct_op_class class = {
        .forward = forward, .backward = backward, .destroy = hpct_op_free};
    HPCT_TRY(hpct_op_new(out, sizeof **out, &class, spec, build));
    if (spec->dense.rows > 1)
        (*out)->scratch_bytes =
            2 * sizeof(float) * (size_t) hpct_op_largest_batch(build) * (size_t) spec->dense.out;
    return HPCT_OK;
}
