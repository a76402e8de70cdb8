/* The backend table: GPU memory, copies, constructors of operations. */
#include "nn/backend/cuda/ops.h"

#include "base/progress.h"
#include "base/status.h"
#include "nn/backend/cuda/side_stream.h"
#include "nn/backend/cuda/tune.h"
#include "nn/backend/module.h"

#include <stdio.h>
#include <string.h>

/* ---- memory ---- */

static void *allocate(size_t bytes)
{
    void *memory = NULL;
    cudaSetDevice(hpct_cuda_gpu.device); /* the current device is per host thread */
    if (cudaMalloc(&memory, bytes > 0 ? bytes : 1) != cudaSuccess) {
        cudaGetLastError();
        return NULL;
    }
    if (cudaMemsetAsync(memory, 0, bytes > 0 ? bytes : 1, hpct_cuda_gpu.stream) == cudaSuccess)
        return memory;
    cudaGetLastError();
    cudaFree(memory);
    return NULL;
}

static void release(void *memory)
{
    cudaFree(memory); /* synchronizes the device; accepts NULL */
}

static void *allocate_host(size_t bytes)
{
    void *memory = NULL;
    cudaSetDevice(hpct_cuda_gpu.device);
    if (cudaHostAlloc(&memory, bytes > 0 ? bytes : 1, cudaHostAllocDefault) != cudaSuccess) {
        cudaGetLastError();
        return NULL;
    }
    memset(memory, 0, bytes);
    return memory;
}

static void release_host(void *memory)
{
    cudaFreeHost(memory);
}

static hpct_status memory_left(size_t *left, size_t *all)
{
    HPCT_TRY(HPCT_CUDA(cudaSetDevice(hpct_cuda_gpu.device)));
    return HPCT_CUDA(cudaMemGetInfo(left, all));
}

static hpct_status wait(void)
{
    HPCT_TRY(hpct_cuda_join_side());
    return hpct_cuda_wait();
}

hpct_status hpct_cuda_to_host(void *host, const void *device, size_t bytes)
{
    HPCT_TRY(hpct_cuda_join_side());
    if (bytes > 0)
        HPCT_TRY(HPCT_CUDA(
            cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, hpct_cuda_gpu.stream)));
    return wait();
}

static hpct_status send(void *memory, const void *host, size_t bytes)
{
    return bytes == 0 ? HPCT_OK
                      : HPCT_CUDA(cudaMemcpyAsync(memory, host, bytes, cudaMemcpyHostToDevice,
                                                  hpct_cuda_gpu.stream));
}

hpct_status hpct_cuda_from_host(void *device, const void *host, size_t bytes)
{
    HPCT_TRY(hpct_cuda_join_side());
    HPCT_TRY(send(device, host, bytes));
    return wait();
}

static hpct_status fetch(void *host, const void *memory, size_t bytes)
{
    return HPCT_CUDA(
        cudaMemcpyAsync(host, memory, bytes, cudaMemcpyDeviceToHost, hpct_cuda_gpu.stream));
}

/* Records an event, created on first use. */
static hpct_status record(cudaEvent_t *event, cudaStream_t stream)
{
    if (*event == NULL)
        HPCT_TRY(HPCT_CUDA(cudaEventCreateWithFlags(event, cudaEventDisableTiming)));
    return HPCT_CUDA(cudaEventRecord(*event, stream));
}

static hpct_status taken(void)
{
    return record(&hpct_cuda_gpu.taken_before, hpct_cuda_gpu.stream);
}

static hpct_status send_beside(void *memory, const void *host, size_t bytes)
{
    if (hpct_cuda_gpu.beside == NULL)
        HPCT_TRY(
            HPCT_CUDA(cudaStreamCreateWithFlags(&hpct_cuda_gpu.beside, cudaStreamNonBlocking)));
    if (hpct_cuda_gpu.taken_before != NULL)
        HPCT_TRY(
            HPCT_CUDA(cudaStreamWaitEvent(hpct_cuda_gpu.beside, hpct_cuda_gpu.taken_before, 0)));
    if (bytes > 0)
        HPCT_TRY(HPCT_CUDA(
            cudaMemcpyAsync(memory, host, bytes, cudaMemcpyHostToDevice, hpct_cuda_gpu.beside)));
    return HPCT_OK;
}

static hpct_status wait_for_sent(void)
{
    HPCT_TRY(record(&hpct_cuda_gpu.sent_beside, hpct_cuda_gpu.beside));
    return HPCT_CUDA(cudaStreamWaitEvent(hpct_cuda_gpu.stream, hpct_cuda_gpu.sent_beside, 0));
}

static hpct_status copy(void *to, const void *from, size_t bytes)
{
    return bytes == 0 ? HPCT_OK
                      : HPCT_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice,
                                                  hpct_cuda_gpu.stream));
}

static hpct_status set_mark(hpct_backend_mark mark)
{
    return record(&hpct_cuda_gpu.marks[mark],
                  mark == HPCT_BACKEND_MARK_INPUT ? hpct_cuda_gpu.beside : hpct_cuda_gpu.stream);
}

static hpct_status await(hpct_backend_mark mark)
{
    if (hpct_cuda_gpu.marks[mark] == NULL)
        return HPCT_OK;
    hpct_waits before = hpct_enter_wait(HPCT_WAITS_FOR_DEVICE);
    hpct_status status = HPCT_CUDA(cudaEventSynchronize(hpct_cuda_gpu.marks[mark]));
    hpct_enter_wait(before);
    return status;
}

static hpct_status zero(void *memory, size_t bytes)
{
    return bytes == 0 ? HPCT_OK
                      : HPCT_CUDA(cudaMemsetAsync(memory, 0, bytes, hpct_cuda_gpu.stream));
}

/* ---- types ---- */

cudaDataType_t hpct_cuda_data_type(hpct_precision values)
{
    static const cudaDataType_t types[HPCT_PRECISIONS] = {
        [HPCT_FP32] = CUDA_R_32F, [HPCT_BF16] = CUDA_R_16BF, [HPCT_FP16] = CUDA_R_16F};
    return types[values];
}

cudnnDataType_t hpct_cuda_dnn_type(hpct_precision values)
{
    static const cudnnDataType_t types[HPCT_PRECISIONS] = {[HPCT_FP32] = CUDNN_DATA_FLOAT,
                                                           [HPCT_BF16] = CUDNN_DATA_BFLOAT16,
                                                           [HPCT_FP16] = CUDNN_DATA_HALF};
    return types[values];
}

static hpct_status check_precision(hpct_precision precision)
{
    if (precision != HPCT_BF16 || hpct_cuda_gpu.major >= 8)
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_CONFIG,
                     "precision bf16 needs a GPU of compute capability 8.0 or more, this one has "
                     "%d.%d: take --precision fp16 or fp32",
                     hpct_cuda_gpu.major, hpct_cuda_gpu.minor);
}

/* ---- operations ---- */

static hpct_status make(hpct_op **out, const hpct_op_spec *spec, const hpct_op_build *build)
{
    switch (spec->kind) {
    case HPCT_OP_CONV2D:
        return hpct_cuda_make_conv2d(out, spec, build);
    case HPCT_OP_CONV2D_TRANSPOSE:
        return hpct_cuda_make_conv2d_transpose(out, spec, build);
    case HPCT_OP_DENSE:
        return hpct_cuda_make_dense(out, spec, build);
    default:
        return hpct_cuda_make_own(out, spec, build);
    }
}

static hpct_status make_op(hpct_op **out, const hpct_op_spec *spec, const hpct_op_build *build)
{
    *out = NULL;
    hpct_status status = make(out, spec, build);
    if (status != HPCT_OK && *out != NULL) {
        (*out)->class->destroy(*out);
        *out = NULL;
    }
    return status;
}

static bool fuses(hpct_backend_fusion fusion, const hpct_op_spec *spec, const hpct_op_build *build,
                  const hpct_op_spec *other)
{
    (void) spec, (void) build, (void) other;
    return fusion != HPCT_BACKEND_FUSION_POOL;
}

/* In the side stream: the first operations may not need the copies. */
static hpct_status copy_params(hpct_precision values, const hpct_backend_param_copy *copies,
                               int num)
{
    hpct_status status = hpct_cuda_begin_side();
    if (status == HPCT_OK)
        status = hpct_cuda_copy_params(values, copies, num);
    return hpct_cuda_end_side(status);
}

static const hpct_backend_device device = {
    .open = hpct_cuda_open,
    .enter = hpct_cuda_enter,
    .describe = hpct_cuda_describe,
    .links = hpct_cuda_links,
    .versions = hpct_cuda_versions,
    .memory = memory_left,
    .busy = hpct_cuda_busy,
    .allocate_host = allocate_host,
    .release_host = release_host,
    .to_host = hpct_cuda_to_host,
    .from_host = hpct_cuda_from_host,
    .send = send,
    .send_beside = send_beside,
    .take = wait_for_sent,
    .taken = taken,
    .fetch = fetch,
    .copy = copy,
    .zero = zero,
    .wait = wait,
    .join = hpct_cuda_join_side,
    .mark = set_mark,
    .await = await,
    .leaves_sums = true,
    .put_sums = hpct_cuda_put_sums,
    .to_values = hpct_cuda_to_values,
    .from_values = hpct_cuda_from_values,
    .gather = hpct_cuda_gather_values,
    .record = hpct_cuda_record,
    .end_record = hpct_cuda_end_record,
    .replay = hpct_cuda_replay,
    .drop_recording = hpct_cuda_drop_recording,
    .set_draws = hpct_cuda_set_draws,
    .set_rates = hpct_cuda_set_rates,
};

const hpct_backend hpct_cuda_backend = {
    .name = "cuda",
    .device = &device,
    .low_values = true,
    .allocate = allocate,
    .release = release,
    .check_precision = check_precision,
    .make_op = make_op,
    .loss = hpct_cuda_loss,
    .update = hpct_cuda_update,
    .penalize = hpct_cuda_penalize,
    .accumulate = hpct_cuda_accumulate,
    .add_values = hpct_cuda_add_values,
    .scale = hpct_cuda_scale,
    .copy_params = copy_params,
    .made_ops = hpct_cuda_tune_keep,
    .fuses = fuses,
    .measure = hpct_cuda_measure,
};
