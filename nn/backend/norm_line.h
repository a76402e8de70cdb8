/* nn/backend/norm_line.h - per-channel values that a BATCH_NORM fused downstream
 * (hpct_op_build.fused_downstream) stores at the beginning of its workspace for its reader. For C
 * and CUDA.
 */
#ifndef HPCT_NN_BACKEND_NORM_LINE_H
#define HPCT_NN_BACKEND_NORM_LINE_H

#include <stddef.h>

/* Result of x: (x - mean) scale + shift; inverse is 1 / sqrt(variance + epsilon), so that gamma is
 * scale / inverse. [channels] each. */
typedef struct hpct_backend_norm_line {
    const float *mean, *scale, *shift, *inverse;
} hpct_backend_norm_line;
#define HPCT_BACKEND_NORM_LINE_ARRAYS 4

/* Floats between consecutive arrays, so that each is 16-byte aligned. */
static inline size_t hpct_backend_norm_line_step(size_t channels)
{
    return (channels + 3) / 4 * 4;
}

static inline hpct_backend_norm_line hpct_backend_norm_line_in(const void *workspace,
                                                               size_t channels)
{
    const float *at = (const float *) workspace;
    size_t step = hpct_backend_norm_line_step(channels);
    hpct_backend_norm_line line = {at, at + step, at + 2 * step, at + 3 * step};
    return line;
}

#endif
