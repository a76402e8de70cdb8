/* Multiply of two inputs, the second possibly one row per sample. */
#include "nn/backend/cpu/cpu.h"

#include "base/status.h"
#include "nn/backend/cpu/loops.h"

#include <stdlib.h>
#include <string.h>

#define LEAST 16384 /* floats per thread, at least */
#define ROWS 64     /* summed at once: keeps rounding errors of long sums small */

/* out = a b, or added to it. */
typedef struct job {
    const hpct_op_spec *spec;
    const float *a, *b;
    float *out, *sums;
    bool add;
} job;

static void part(size_t first, size_t count, void *arg)
{
    const job *j = arg;
    hpct_cpu_loops_best()->product(count, j->a + first, j->b + first, j->add, j->out + first);
}

static void rows_part(size_t first, size_t rows, void *arg)
{
    const job *j = arg;
    const hpct_cpu_loops *loops = hpct_cpu_loops_best();
    size_t channels = (size_t) j->spec->join.size[0];
    for (size_t r = first; r < first + rows; r++)
        loops->product(channels, j->a + r * channels,
                       j->b + r / (size_t) j->spec->join.rows * channels, j->add,
                       j->out + r * channels);
}

/* out = a b, where b is broadcast unless it has the shape of a. */
static void multiply(const hpct_op *op, int n, const float *a, const float *b, bool add, float *out)
{
    job j = {.spec = &op->spec, .a = a, .b = b, .add = add, .out = out};
    size_t channels = (size_t) op->spec.join.size[0], rows = (size_t) (n * op->spec.join.rows);
    if (op->spec.join.broadcasts)
        hpct_cpu_loops_split(rows, LEAST / channels + 1, rows_part, &j);
    else
        hpct_cpu_loops_split(rows * channels, LEAST, part, &j);
}

/* Sums a b over the rows of a sample. */
static void sum_rows(size_t first, size_t count, void *arg)
{
    const job *j = arg;
    const hpct_cpu_loops *loops = hpct_cpu_loops_best();
    size_t channels = (size_t) j->spec->join.size[0], rows = (size_t) j->spec->join.rows;
    for (size_t s = first; s < first + count; s++) {
        const float *a = j->a + s * rows * channels, *b = j->b + s * rows * channels;
        float *sum = j->sums + s * channels, *out = j->out + s * channels;
        if (!j->add)
            memset(out, 0, channels * sizeof *out);
        for (size_t r = 0; r < rows; r++) {
            loops->product(channels, a + r * channels, b + r * channels, r % ROWS > 0, sum);
            if (r % ROWS == ROWS - 1 || r == rows - 1)
                loops->add(channels, sum, out);
        }
    }
}

static hpct_status forward(hpct_op *op, const hpct_op_call *call)
{
    multiply(op, call->n, call->src[0], call->src[1], false, call->dst);
    return HPCT_OK;
}

static hpct_status backward(hpct_op *op, const hpct_op_call *call)
{
    const float *a = call->src[0], *b = call->src[1], *diff = call->diff_dst;
    if (call->diff_src[0] != NULL)
        multiply(op, call->n, diff, b, call->add[0], call->diff_src[0]);
    job j = {.spec = &op->spec,
             .a = diff,
             .b = a,
             .add = call->add[1],
             .out = call->diff_src[1],
             .sums = call->scratch};
    if (j.out != NULL && op->spec.join.broadcasts)
        hpct_cpu_loops_split((size_t) call->n, 1, sum_rows, &j);
    else if (j.out != NULL)
        multiply(op, call->n, diff, a, j.add, j.out);
    return HPCT_OK;
}

hpct_status hpct_cpu_make_multiply(hpct_op **out, const hpct_op_spec *spec,
                                   const hpct_op_build *build)
{
    static const hpct_op_class class = {
        .forward = forward, .backward = backward, .destroy = hpct_op_free};
    HPCT_TRY(hpct_op_new(out, sizeof **out, &class, spec, build));
    if (spec->join.broadcasts && build->training)
        (*out)->scratch_bytes =
            (size_t) hpct_op_largest_batch(build) * (size_t) spec->join.size[0] * sizeof(float);
    return HPCT_OK;
}
