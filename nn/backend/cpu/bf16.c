/* Conversion from fp32 to bf16, on several threads. */
#include "nn/backend/cpu/bf16.h"

#include "nn/backend/cpu/loops.h"

#include <string.h>

#define LEAST 16384 /* values per thread, at least */

typedef struct span {
    const float *src;
    hpct_backend_bf16 *dst;
} span;

static void convert_part(size_t first, size_t count, void *arg)
{
    const span *s = arg;
    hpct_cpu_loops_best()->to_bf16(count, s->src + first, s->dst + first);
}

void hpct_cpu_to_bf16(size_t count, const float *src, hpct_backend_bf16 *dst)
{
    span s = {src, dst};
    hpct_cpu_loops_split(count, LEAST, convert_part, &s);
}

typedef struct widening {
    size_t columns, wide_columns;
    const hpct_backend_bf16 *from;
    hpct_backend_bf16 *wide;
} widening;

static void widen_rows(size_t first, size_t count, void *arg)
{
    const widening *w = arg;
    for (size_t r = first; r < first + count; r++) {
        hpct_backend_bf16 *row = w->wide + r * w->wide_columns;
        memcpy(row, w->from + r * w->columns, w->columns * sizeof *row);
        memset(row + w->columns, 0, (w->wide_columns - w->columns) * sizeof *row);
    }
}

void hpct_cpu_widen_bf16(size_t rows, size_t columns, size_t wide_columns,
                         const hpct_backend_bf16 *from, hpct_backend_bf16 *wide)
{
    widening w = {columns, wide_columns, from, wide};
    hpct_cpu_loops_split(rows, LEAST / wide_columns + 1, widen_rows, &w);
}

static void convert_diffs(size_t first, size_t count, void *arg)
{
    const hpct_cpu_low_diff *d = arg;
    for (size_t part = first; part < first + count; part++) {
        size_t begin = d->rows * part / HPCT_CPU_LOW_DIFF_PARTS,
               end = d->rows * (part + 1) / HPCT_CPU_LOW_DIFF_PARTS, at = begin * d->out;
        float *sums = d->sums != NULL ? d->sums + part * d->out : NULL;
        if (sums != NULL)
            memset(sums, 0, d->out * sizeof *sums);
        hpct_cpu_loops_best()->diff_to_bf16(end - begin, d->out,
                                            d->dst != NULL ? d->dst + at : NULL, d->diff + at,
                                            d->factor, d->low + at, sums);
    }
}

void hpct_cpu_diff_to_bf16(const hpct_cpu_low_diff *d)
{
    size_t numbers = d->rows * d->out;
    hpct_cpu_loops_split(HPCT_CPU_LOW_DIFF_PARTS,
                         LEAST * HPCT_CPU_LOW_DIFF_PARTS / (numbers + 1) + 1, convert_diffs,
                         (void *) (uintptr_t) d);
    for (size_t part = 1; d->sums != NULL && part < HPCT_CPU_LOW_DIFF_PARTS; part++)
        hpct_cpu_loops_best()->add(d->out, d->sums + part * d->out, d->sums);
}
