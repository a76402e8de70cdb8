/* Penalties of regularizers: tables of parameters for the kernels. */
#include "nn/backend/cuda/cuda.h"
#include "nn/backend/cuda/kernels.h"
#include "nn/backend/cuda/ops.h"

#include "base/status.h"

#define UNIT 16 /* floats per unit of the table */

_Static_assert(HPCT_BACKEND_ARENA_ALIGN % UNIT == 0, "parameters are not whole units");

/* The next parameters from *at on, those that are split or the others, as many as there is room
 * for; chunks are enlarged if there would be too many. */
static hpct_cuda_penalty_table table_of(const hpct_backend_penalty_call *call, bool split, int *at)
{
    hpct_cuda_penalty_table t = {.chunk = HPCT_CUDA_PENALTY_CHUNK / UNIT};
    uint64_t units = 0;
    for (; *at < call->num && t.num < HPCT_CUDA_PENALTY_RANGES; ++*at) {
        const hpct_backend_penalty *p = &call->penalties[*at];
        if (p->split != split)
            continue;
        t.offset[t.num] = (uint32_t) (p->offset / UNIT);
        t.count[t.num] = (uint32_t) (p->count / UNIT);
        t.l1[t.num] = p->l1;
        t.l2[t.num] = p->l2;
        units += t.count[t.num++];
    }
    uint64_t even = (units + HPCT_CUDA_PENALTY_CHUNKS - 1) / HPCT_CUDA_PENALTY_CHUNKS;
    if (even > t.chunk)
        t.chunk = (uint32_t) even;
    for (int i = 0; i < t.num; i++)
        t.first_chunk[i + 1] = t.first_chunk[i] + (t.count[i] + t.chunk - 1) / t.chunk;
    return t;
}

/* sum: NULL, or where the penalties go. */
static hpct_status penalize(const hpct_backend_penalty_call *call, bool split, float *sum)
{
    for (int at = 0, first = 1; at < call->num || (first && sum != NULL); first = 0) {
        hpct_cuda_penalty_table t = table_of(call, split, &at);
        if (call->grad != NULL && t.num > 0)
            HPCT_TRY(HPCT_CUDA(hpct_cuda_launch_penalty_gradients(hpct_cuda_current_queue(), &t,
                                                                  call->factor, call->scaling,
                                                                  call->param, call->grad)));
        if (sum != NULL && (t.num > 0 || first))
            HPCT_TRY(HPCT_CUDA(hpct_cuda_launch_penalty_sums(hpct_cuda_current_queue(), &t,
                                                             call->param, first != 0, sum)));
    }
    return HPCT_OK;
}

hpct_status hpct_cuda_penalize(const hpct_backend_penalty_call *call)
{
    HPCT_TRY(penalize(call, true, call->sums));
    return penalize(call, false, call->sums != NULL ? call->sums + 1 : NULL);
}
