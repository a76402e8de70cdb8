/* nn/backend/cpu/bf16.h - conversion of gradients to bf16, for operations that compute in it. */
#ifndef HPCT_NN_BACKEND_CPU_BF16_H
#define HPCT_NN_BACKEND_CPU_BF16_H

#include "nn/backend/bf16.h"
#include "nn/graph/op.h"

void hpct_cpu_to_bf16(size_t count, const float *src, hpct_backend_bf16 *dst);

/* wide[rows][wide_columns] = from[rows][columns], with zeros behind. */
void hpct_cpu_widen_bf16(size_t rows, size_t columns, size_t wide_columns,
                         const hpct_backend_bf16 *from, hpct_backend_bf16 *wide);

/* A result's gradient, [rows][out], converted by diff_to_bf16 (nn/backend/cpu/loops.h). */
typedef struct hpct_cpu_low_diff {
    size_t rows, out;
    const float *dst, *diff; /* dst: NULL without ReLU */
    float factor;
    hpct_backend_bf16 *low;
    float *sums; /* [HPCT_CPU_LOW_DIFF_PARTS][out]: the first row receives the column sums, bitwise
                    equal for any number of threads; NULL: not needed */
} hpct_cpu_low_diff;
#define HPCT_CPU_LOW_DIFF_PARTS ((size_t) 16)
void hpct_cpu_diff_to_bf16(const hpct_cpu_low_diff *d);

#endif
