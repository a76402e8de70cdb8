/* Batches from a data set in device memory. */
#include "nn/backend/cuda/ops.h"

hpct_status hpct_cuda_gather_values(const hpct_backend_gather_call *call)
{
    const hpct_backend_pictures *p = call->pictures;
    hpct_cuda_gather gather = {
        .pixels = p->pixels,
        .labels = p->labels,
        .in_h = p->height,
        .in_w = p->width,
        .out_h = p->to_height,
        .out_w = p->to_width,
        .channels = p->channels,
        .factor = p->factor,
        .offset = p->offset,
    };
    return hpct_cuda_check(hpct_cuda_launch_gather(hpct_cuda_current_queue(),
                                                   hpct_cuda_number_for(call->values), &gather,
                                                   call->n, call->drawn, call->dst, call->labels),
                           "gather");
}
