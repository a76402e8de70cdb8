/* Transposes kernels on the host, in a temporary buffer. */
#include "nn/backend/cuda/import.h"

#include "base/status.h"
#include "nn/backend/cuda/cuda.h"
#include "nn/backend/cuda/transpose.h"

#include <stdlib.h>

static hpct_status import_turned(size_t in, size_t out, const float *keras, float *arena)
{
    size_t bytes = in * out * sizeof *keras;
    float *turned = malloc(bytes);
    if (turned == NULL)
        return hpct_fail_memory(bytes);
    hpct_cuda_transpose(in, out, keras, turned);
    hpct_status status = hpct_cuda_from_host(arena, turned, bytes);
    free(turned);
    return status;
}

static hpct_status export_turned(size_t in, size_t out, const float *arena, float *keras)
{
    size_t bytes = in * out * sizeof *keras;
    float *turned = malloc(bytes);
    if (turned == NULL)
        return hpct_fail_memory(bytes);
    hpct_status status = hpct_cuda_to_host(turned, arena, bytes);
    if (status == HPCT_OK)
        hpct_cuda_transpose(out, in, turned, keras);
    free(turned);
    return status;
}

hpct_status hpct_cuda_import_param(hpct_op *op, int which, const float *keras, float *arena)
{
    size_t floats = op->param_floats[which], out = op->param_rows[HPCT_OP_KERNEL];
    if (which == HPCT_OP_KERNEL)
        return import_turned(floats / out, out, keras, arena);
    return hpct_cuda_from_host(arena, keras, floats * sizeof *keras);
}

hpct_status hpct_cuda_export_param(hpct_op *op, int which, const float *arena, float *keras)
{
    size_t floats = op->param_floats[which], out = op->param_rows[HPCT_OP_KERNEL];
    if (which == HPCT_OP_KERNEL)
        return export_turned(floats / out, out, arena, keras);
    return hpct_cuda_to_host(keras, arena, floats * sizeof *keras);
}
