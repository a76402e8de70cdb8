/* What nn/backend/cuda/gpu.c and backend.c are to the GPU, for the host: memory, checks, the table.
 */
#include "tests/gpu_without/kernels/cuda_backend.h"

#include "base/status.h"
#include "nn/backend/cuda/cuda.h"

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

cudaError_t cudaGetLastError(void)
{
    return cudaSuccess;
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

size_t hpct_cuda_value_bytes(hpct_precision values)
{
    return hpct_backend_precision_bytes(values);
}

#define ELEMENT(kind, ...) [HPCT_OP_##kind] = hpct_cuda_make_activation

/* Those whose kernels are not a library's. */
static hpct_status (*const makers[HPCT_OP_KINDS])(hpct_op **out, const hpct_op_spec *spec,
                                                  const hpct_op_build *build) = {
    [HPCT_OP_MAX_POOL2D] = hpct_cuda_make_pool,
    [HPCT_OP_AVERAGE_POOL2D] = hpct_cuda_make_pool,
    [HPCT_OP_SOFTMAX] = hpct_cuda_make_softmax,
    [HPCT_OP_ADD] = hpct_cuda_make_join,
    [HPCT_OP_CONCATENATE] = hpct_cuda_make_join,
    [HPCT_OP_MULTIPLY] = hpct_cuda_make_multiply,
    [HPCT_OP_NORMALIZATION] = hpct_cuda_make_line,
    [HPCT_OP_PRELU] = hpct_cuda_make_line,
    [HPCT_OP_RESCALING] = hpct_cuda_make_activation,
    [HPCT_OP_BATCH_NORM] = hpct_cuda_make_batch_norm,
    [HPCT_OP_PAD2D] = hpct_cuda_make_pad2d,
    [HPCT_OP_DROPOUT] = hpct_cuda_make_dropout,
    [HPCT_OP_RESIZING] = hpct_cuda_make_picture,
    [HPCT_OP_RANDOM_CROP] = hpct_cuda_make_picture,
    [HPCT_OP_RANDOM_FLIP] = hpct_cuda_make_picture,
    [HPCT_OP_RANDOM_AFFINE] = hpct_cuda_make_variation,
    [HPCT_OP_RANDOM_TONE] = hpct_cuda_make_variation,
    [HPCT_OP_GROUP_NORM] = hpct_cuda_make_group_norm,
    [HPCT_OP_PERMUTE] = hpct_cuda_make_permute,
    [HPCT_OP_GAUSSIAN_NOISE] = hpct_cuda_make_noise,
    HPCT_GRAPH_ELEMENT_ROWS(ELEMENT),
};

static hpct_status make_op(hpct_op **out, const hpct_op_spec *spec, const hpct_op_build *build)
{
    if (makers[spec->kind] == NULL)
        return hpct_fail(HPCT_ERR_CONFIG, "%s is a library's", hpct_op_kind_name(spec->kind));
    return makers[spec->kind](out, spec, build);
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
    .make_op = make_op,
    .loss = hpct_cuda_loss,
    .update = hpct_cuda_update,
    .penalize = hpct_cuda_penalize,
    .accumulate = hpct_cuda_accumulate,
    .add_values = hpct_cuda_add_values,
    .scale = hpct_cuda_scale,
    .fuses = fuses,
};

const hpct_backend *const cuda_backends_on_host[] = {&cuda_backend_on_host, NULL};
