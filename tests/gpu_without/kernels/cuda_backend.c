/* What nn/backend/cuda/gpu.c and backend.c are to the GPU, for the host: memory, checks, the table.
 */
#include "tests/gpu_without/kernels/cuda_backend.h"

#include "base/status.h"
#include "nn/backend/cuda/cuda.h"

#include <string.h>

/* Few multiprocessors, so that small cases go around in grids. */
static hpct_cuda gpu = {.multiprocessors = 3};
_Thread_local hpct_cuda *hpct_gpu_here = &gpu;

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
    return hpct_precision_bytes(values);
}

static hpct_status make_op(hpct_op **out, const hpct_op_spec *spec, const hpct_op_build *build)
{
    switch (spec->kind) {
    case HPCT_OP_MAX_POOL2D:
    case HPCT_OP_AVERAGE_POOL2D:
        return hpct_cuda_make_pool(out, spec, build);
    case HPCT_OP_SOFTMAX:
        return hpct_cuda_make_softmax(out, spec, build);
    case HPCT_OP_ADD:
    case HPCT_OP_CONCATENATE:
        return hpct_cuda_make_join(out, spec, build);
    case HPCT_OP_MULTIPLY:
        return hpct_cuda_make_multiply(out, spec, build);
    case HPCT_OP_NORMALIZATION:
    case HPCT_OP_PRELU:
        return hpct_cuda_make_line(out, spec, build);
    case HPCT_OP_RELU:
    case HPCT_OP_RELU6:
    case HPCT_OP_SIGMOID:
    case HPCT_OP_TANH:
    case HPCT_OP_GELU:
    case HPCT_OP_SILU:
    case HPCT_OP_HARD_SIGMOID:
    case HPCT_OP_HARD_SILU:
    case HPCT_OP_LEAKY_RELU:
    case HPCT_OP_ELU:
    case HPCT_OP_RESCALING:
        return hpct_cuda_make_activation(out, spec, build);
    case HPCT_OP_BATCH_NORM:
        return hpct_cuda_make_batch_norm(out, spec, build);
    case HPCT_OP_PAD2D:
        return hpct_cuda_make_pad2d(out, spec, build);
    case HPCT_OP_DROPOUT:
        return hpct_cuda_make_dropout(out, spec, build);
    case HPCT_OP_RESIZING:
    case HPCT_OP_RANDOM_CROP:
    case HPCT_OP_RANDOM_FLIP:
        return hpct_cuda_make_picture(out, spec, build);
    case HPCT_OP_RANDOM_AFFINE:
    case HPCT_OP_RANDOM_TONE:
        return hpct_cuda_make_variation(out, spec, build);
    case HPCT_OP_GROUP_NORM:
        return hpct_cuda_make_group_norm(out, spec, build);
    case HPCT_OP_PERMUTE:
        return hpct_cuda_make_permute(out, spec, build);
    case HPCT_OP_GAUSSIAN_NOISE:
        return hpct_cuda_make_noise(out, spec, build);
    case HPCT_OP_CONV2D:
    case HPCT_OP_CONV2D_TRANSPOSE:
    case HPCT_OP_DENSE:
    case HPCT_OP_SUM_PARTS:
    case HPCT_OP_GATHER_PARTS:
    case HPCT_OP_GATHER_SAMPLES:
    case HPCT_OP_KINDS:
        break;
    }
    return hpct_fail(HPCT_ERR_CONFIG, "%s is a library's", hpct_op_kind_name(spec->kind));
}

static hpct_status check_precision(hpct_precision precision)
{
    (void) precision;
    return HPCT_OK;
}

static bool fuses(hpct_fusion fusion, const hpct_op_spec *spec, const hpct_op_build *build,
                  const hpct_op_spec *other)
{
    (void) spec, (void) build, (void) other;
    return fusion == HPCT_FUSION_ADD_NORM;
}

const hpct_backend cuda_backend_on_host = {
    .name = "cuda on the host",
    .low_values = true,
    .allocate = hpct_host_allocate,
    .release = hpct_host_release,
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
