/* nn/cpu/bf16.h - what operations in bf16 share: their operands are made from fp32 numbers. */
#ifndef HPCT_NN_CPU_BF16_H
#define HPCT_NN_CPU_BF16_H

#include "nn/bf16.h"
#include "nn/op.h"

void hpct_cpu_to_bf16(size_t count, const float *src, hpct_bf16 *dst);

/* The gradient of a result, [rows][out], as diff_to_bf16 of nn/cpu/loops.h makes it. */
typedef struct hpct_low_diff {
    size_t rows, out;
    const float *dst, *diff; /* dst: NULL without ReLU */
    float factor;
    hpct_bf16 *low;
    float *sums; /* [HPCT_LOW_DIFF_PARTS][out]: the first row becomes the sums of all rows, the same
                    for every number of threads; NULL: nobody wants them */
} hpct_low_diff;
#define HPCT_LOW_DIFF_PARTS ((size_t) 16)
void hpct_cpu_diff_to_bf16(const hpct_low_diff *d);

#endif
