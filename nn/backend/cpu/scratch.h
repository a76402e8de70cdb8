/* nn/backend/cpu/scratch.h - several buffers in one scratch, each 64-byte aligned. */
#ifndef HPCT_NN_BACKEND_CPU_SCRATCH_H
#define HPCT_NN_BACKEND_CPU_SCRATCH_H

#include "nn/graph/op.h"

/* `bytes` rounded up to the alignment. */
static inline size_t hpct_cpu_padded(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static inline void hpct_cpu_at_least(size_t *bytes, size_t needed)
{
    if (*bytes < needed)
        *bytes = needed;
}

/* The buffer at this offset of the call's scratch. */
static inline void *hpct_cpu_scratch(const hpct_op_call *call, size_t offset)
{
    return (char *) call->scratch + offset;
}

#endif
