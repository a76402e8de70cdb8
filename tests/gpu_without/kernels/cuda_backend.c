/* What nn/backend/cuda/gpu.c and backend.c are to the GPU, for the host: memory, checks, the table.
 */
#include "tests/gpu_without/kernels/cuda_backend.h"

#include "base/status.h"
#include "nn/backend/cuda/ops.h"

#include <string.h>

/* Few multiprocessors, so that small cases go around in grids. */
static hpct_cuda gpu = {.multiprocessors = 3};
_Thread_local hpct_cuda *hpct_cuda_gpu_here = &gpu;

hpct_status hpct_cuda_check(cudaError_t error, const char *call)
{
    return error == cudaSuccess ? HPCT_OK
                                : hpct_fail(HPCT_ERR_INTERNAL, "%s: error %d", call, (int) error);
}

const char *hpct_cuda_error(cudaError_t error)
{
    return error == cudaSuccess ? "no error" : "an error";
}

hpct_status hpct_cuda_to_host(void *host, const void *device, size_t bytes)
{
    memcpy(host, device, bytes);
    return HPCT_OK;
}

hpct_status hpct_cuda_from_host(void *device, const void *host, size_t bytes)
{
    memcpy(device, host, bytes);
    return HPCT_OK;
}

static hpct_status check_precision(hpct_precision precision)
{
    (void) precision;
    return HPCT_OK;
}

static bool fuses(hpct_backend_fusion fusion, const hpct_op_spec *spec, const hpct_op_build *build,
                  const hpct_op_spec *other)
{
    (void) spec, (void) build, (void) other;
    return fusion == HPCT_BACKEND_FUSION_ADD_NORM;
}

const hpct_backend cuda_backend_on_host = {
    .name = "cuda on the host",
    .low_values = true,
    .allocate = hpct_backend_host_allocate,
    .release = hpct_backend_host_release,
    .check_precision = check_precision,
    .make_op = hpct_cuda_make_own,
    .loss = hpct_cuda_loss,
    .update = hpct_cuda_update,
    .penalize = hpct_cuda_penalize,
    .accumulate = hpct_cuda_accumulate,
    .add_values = hpct_cuda_add_values,
    .scale = hpct_cuda_scale,
    .fuses = fuses,
};

const hpct_backend *const cuda_backends_on_host[] = {&cuda_backend_on_host, NULL};
