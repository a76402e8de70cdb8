/* nn/cpu/scratch.h - several buffers in one: offsets that keep each 64-byte aligned. */
#ifndef HPCT_NN_CPU_SCRATCH_H
#define HPCT_NN_CPU_SCRATCH_H

#include "nn/op.h"

/* So many bytes, and what it takes to the next buffer. */
static inline size_t hpct_cpu_padded(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* The buffer at this offset of a call's scratch. */
static inline void *hpct_cpu_scratch(const hpct_op_call *call, size_t offset)
{
    return (char *) call->scratch + offset;
}

#endif
