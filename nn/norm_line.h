/* nn/norm_line.h - what a deferred BATCH_NORM (hpct_op_build.deferred) leaves for who works its
 * result out, at the beginning of its workspace: a line for each channel. For C and CUDA. */
#ifndef HPCT_NN_NORM_LINE_H
#define HPCT_NN_NORM_LINE_H

#include <stddef.h>

/* The result of x is (x - mean) scale + shift; inverse is 1 / sqrt(variance + epsilon), so that
 * gamma is scale / inverse. [channels] each. */
typedef struct hpct_norm_line {
    const float *mean, *scale, *shift, *inverse;
} hpct_norm_line;
#define HPCT_NORM_LINE_ARRAYS 4

/* Floats from one of them to the next, so that each begins at 16 bytes. */
static inline size_t hpct_norm_line_step(size_t channels)
{
    return (channels + 3) / 4 * 4;
}

static inline hpct_norm_line hpct_norm_line_in(const void *workspace, size_t channels)
{
    const float *at = (const float *) workspace;
    size_t step = hpct_norm_line_step(channels);
    hpct_norm_line line = {at, at + step, at + 2 * step, at + 3 * step};
    return line;
}

#endif
