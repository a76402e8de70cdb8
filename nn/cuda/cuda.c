/* The GPU: opening it, its memory, and the backend's table. */
#include "nn/cuda/cuda.h"

#include "base/headway.h"
#include "base/status.h"
#include "nn/cuda/aside.h"
#include "nn/cuda/tune.h"
#include "nn/cuda/which.h"
#include "nn/module.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_MAJOR 7
#define LEAST_BYTES_PER_SECOND 1e11 /* less is none that is true, and this is taken: */
#define UNTOLD_BYTES_PER_SECOND 3e12
#define MOST_GPUS 64 /* of a process */
#define BLAS_BYTES                                                                                 \
    ((size_t) 32 << 20) /* cuBLAS's own workspace, that it allocates none in a step */
#define OPENING_BYTES (2 * BLAS_BYTES) /* with less left an error is probably for want of them */

static hpct_cuda gpus[MOST_GPUS];
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

_Thread_local hpct_cuda *hpct_gpu_here = &gpus[0];

/* ---- opening ---- */

/* What stands in the way of CUDA, in one line. */
static hpct_status count_devices(int *count)
{
    int driver = 0, runtime = 0;
    cudaError_t error = cudaGetDeviceCount(count);
    if (error == cudaSuccess && *count > 0)
        return HPCT_OK;
    cudaGetLastError();
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    if (driver == 0)
        return hpct_fail(HPCT_ERR_CONFIG, "no GPU: NVIDIA's driver is not here; take --device cpu");
    if (error == cudaErrorInsufficientDriver)
        return hpct_fail(HPCT_ERR_CONFIG,
                         "no GPU: NVIDIA's driver here is for CUDA %d.%d, this program for CUDA "
                         "%d.%d: install a newer driver, or take --device cpu",
                         driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    return hpct_fail(HPCT_ERR_CONFIG, "no GPU: %s; take --device cpu",
                     error == cudaSuccess ? "CUDA shows none" : cudaGetErrorString(error));
}

static hpct_status attribute(int *value, enum cudaDeviceAttr which)
{
    return HPCT_CUDA(cudaDeviceGetAttribute(value, which, hpct_gpu.device));
}

static hpct_status read_device(void)
{
    int shared = 0, kilohertz = 0, bits = 0;
    hpct_status status = attribute(&hpct_gpu.major, cudaDevAttrComputeCapabilityMajor);
    if (status == HPCT_OK)
        status = attribute(&hpct_gpu.minor, cudaDevAttrComputeCapabilityMinor);
    if (status == HPCT_OK)
        status = attribute(&hpct_gpu.multiprocessors, cudaDevAttrMultiProcessorCount);
    if (status == HPCT_OK)
        status = attribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin);
    if (status == HPCT_OK)
        status = attribute(&kilohertz, cudaDevAttrMemoryClockRate);
    if (status == HPCT_OK)
        status = attribute(&bits, cudaDevAttrGlobalMemoryBusWidth);
    hpct_gpu.shared_bytes = (size_t) shared;
    hpct_gpu.bytes_per_second = 2e3 * kilohertz * bits / 8; /* two at each tick */
    if (hpct_gpu.bytes_per_second < LEAST_BYTES_PER_SECOND)
        hpct_gpu.bytes_per_second = UNTOLD_BYTES_PER_SECOND;
    if (status == HPCT_OK && hpct_gpu.major < LEAST_MAJOR)
        status = hpct_fail(HPCT_ERR_CONFIG,
                           "the GPU has compute capability %d.%d, it must be %d.0 or more: take "
                           "--device cpu",
                           hpct_gpu.major, hpct_gpu.minor, LEAST_MAJOR);
    cudaError_t found = status == HPCT_OK ? hpct_kernels_are_there() : cudaSuccess;
    if (found == cudaErrorMemoryAllocation)
        return HPCT_CUDA(found);
    if (found != cudaSuccess) {
        cudaGetLastError(); /* or the next check of a launch would find it */
        status = hpct_fail(HPCT_ERR_CONFIG,
                           "hpctrain-cuda.so has no kernels for a GPU of compute capability %d.%d: "
                           "./configure --enable-cuda-archs=%d%d, or take --device cpu",
                           hpct_gpu.major, hpct_gpu.minor, hpct_gpu.major, hpct_gpu.minor);
    }
    return status;
}

static hpct_status make_handles(void)
{
    void *workspace = NULL;
    int least = 0, greatest = 0; /* priorities: the least is the largest number */
    hpct_status status = HPCT_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    if (status == HPCT_OK) /* of three or more above what is made aside, below sums over ranks */
        status = HPCT_CUDA(cudaStreamCreateWithPriority(&hpct_gpu.stream, cudaStreamNonBlocking,
                                                        least - (least - greatest) / 2));
    if (status == HPCT_OK)
        status = hpct_cuda_open_aside();
    if (status == HPCT_OK)
        status = HPCT_BLAS(cublasCreate(&hpct_gpu.blas));
    if (status == HPCT_OK)
        status = HPCT_BLAS(cublasSetStream(hpct_gpu.blas, hpct_gpu.stream));
    if (status == HPCT_OK)
        status = HPCT_CUDA(cudaMalloc(&workspace, BLAS_BYTES));
    if (status == HPCT_OK) /* after SetStream, which takes it away */
        status = HPCT_BLAS(cublasSetWorkspace(hpct_gpu.blas, workspace, BLAS_BYTES));
    if (status == HPCT_OK)
        status = HPCT_BLAS(cublasSetMathMode(
            hpct_gpu.blas, (cublasMath_t) (CUBLAS_TF32_TENSOR_OP_MATH |
                                           CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)));
    if (status == HPCT_OK)
        status = HPCT_BLAS(cublasLtCreate(&hpct_gpu.lt));
    if (status == HPCT_OK)
        status = HPCT_DNN(cudnnCreate(&hpct_gpu.dnn));
    if (status == HPCT_OK)
        status = HPCT_DNN(cudnnSetStream(hpct_gpu.dnn, hpct_gpu.stream));
    if (status == HPCT_OK)
        status = HPCT_CUDA(cudaMalloc((void **) &hpct_gpu.now, sizeof(hpct_moment)));
    if (status == HPCT_OK)
        status = HPCT_CUDA(cudaMemsetAsync(hpct_gpu.now, 0, sizeof(hpct_moment), hpct_gpu.stream));
    return status;
}

/* That of replica 0, or one of those behind it. */
static hpct_status find_device(void)
{
    int count = 0, first = 0, replica = (int) (hpct_gpu_here - gpus);
    hpct_status status = count_devices(&count);
    if (status == HPCT_OK)
        status =
            hpct_cuda_which(getenv("HPC_TRAIN_GPU"), getenv("CUDA_VISIBLE_DEVICES"), count, &first);
    if (status == HPCT_OK && replica >= count)
        status = hpct_fail(HPCT_ERR_CONFIG,
                           "replica %d needs a GPU of its own, and this task sees %d: ask for more "
                           "(srun --gpus-per-task), or take fewer --replicas",
                           replica, count);
    hpct_gpu.device = (first + replica) % (count > 0 ? count : 1);
    return status;
}

/* What failed with hardly any memory left has probably failed for want of it. */
static hpct_status explain(hpct_status status)
{
    size_t left = 0, all = 0;
    char free_of[64] = "";
    if (status != HPCT_ERR_INTERNAL)
        return status;
    bool known = cudaMemGetInfo(&left, &all) == cudaSuccess; /* else there is not even a context */
    if (known)
        snprintf(free_of, sizeof free_of, ": of its %zu MiB %zu are free", all >> 20, left >> 20);
    else
        cudaGetLastError();
    if (known ? left >= OPENING_BYTES : strstr(hpct_last_error(), "out of memory") == NULL)
        return status;
    return hpct_fail(
        HPCT_ERR_CONFIG,
        "the GPU is out of memory before anything is computed%s; others use it "
        "(nvidia-smi shows who): ask for a GPU of this job's own, or take --device cpu "
        "(%s)",
        free_of, hpct_last_error());
}

static hpct_status open_device(void)
{
    hpct_status status = find_device();
    if (status != HPCT_OK)
        return status;
    status = HPCT_CUDA(cudaSetDevice(hpct_gpu.device));
    if (status == HPCT_OK)
        status = read_device();
    return explain(status == HPCT_OK ? make_handles() : status);
}

hpct_status hpct_cuda_open(void)
{
    hpct_cuda *gpu = hpct_gpu_here;
    pthread_mutex_lock(&opening);
    if (!gpu->asked) {
        gpu->opened = open_device();
        if (gpu->opened != HPCT_OK)
            snprintf(gpu->message, sizeof gpu->message, "%s", hpct_last_error());
        gpu->asked = true;
    }
    pthread_mutex_unlock(&opening);
    return gpu->opened == HPCT_OK ? HPCT_CUDA(cudaSetDevice(gpu->device))
                                  : hpct_fail(gpu->opened, "%s", gpu->message);
}

hpct_status hpct_cuda_enter(int replica)
{
    if (replica < 0 || replica >= MOST_GPUS)
        return hpct_fail(HPCT_ERR_INTERNAL, "there is no replica %d", replica);
    hpct_gpu_here = &gpus[replica];
    return hpct_cuda_open();
}

static bool describe(int number, char *text, size_t size)
{
    struct cudaDeviceProp about;
    int count = 0;
    if (count_devices(&count) != HPCT_OK || number >= count ||
        HPCT_CUDA(cudaGetDeviceProperties(&about, number)) != HPCT_OK)
        return false;
    snprintf(text, size,
             "%s, %.1f GiB, compute capability %d.%d, %d multiprocessors, at %04x:%02x:%02x.0",
             about.name, (double) about.totalGlobalMem / (1 << 30), about.major, about.minor,
             about.multiProcessorCount, (unsigned) about.pciDomainID, (unsigned) about.pciBusID,
             (unsigned) about.pciDeviceID);
    return true;
}

/* Atomics that reach the other's memory are NVLink's. */
static const char *link_to(int from, int to)
{
    int access = 0, atomics = 0;
    if (cudaDeviceGetP2PAttribute(&access, cudaDevP2PAttrAccessSupported, from, to) !=
            cudaSuccess ||
        cudaDeviceGetP2PAttribute(&atomics, cudaDevP2PAttrNativeAtomicSupported, from, to) !=
            cudaSuccess) {
        cudaGetLastError();
        return "not known";
    }
    return access == 0 ? "through the host" : atomics != 0 ? "by NVLink" : "by PCIe";
}

static bool links(int number, char *text, size_t size)
{
    int count = 0;
    size_t used = 0;
    if (count_devices(&count) != HPCT_OK || number >= count || count < 2)
        return false;
    text[0] = '\0';
    for (int other = 0; other < count && used < size; other++) {
        if (other != number)
            used += (size_t) snprintf(text + used, size - used, "%s%d %s", used > 0 ? ", " : "",
                                      other, link_to(number, other));
    }
    return true;
}

static void versions(char *text, size_t size)
{
    int driver = 0, runtime = 0;
    size_t dnn = cudnnGetVersion(), blas = cublasLtGetVersion();
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    int used = snprintf(text, size, "CUDA %d.%d, cuDNN %zu.%zu.%zu, cuBLAS %zu.%zu.%zu, ",
                        runtime / 1000, runtime % 1000 / 10, dnn / 10000, dnn % 10000 / 100,
                        dnn % 100, blas / 10000, blas % 10000 / 100, blas % 100);
    if (driver == 0)
        snprintf(text + used, size - (size_t) used, "no driver");
    else
        snprintf(text + used, size - (size_t) used, "driver for CUDA %d.%d", driver / 1000,
                 driver % 1000 / 10);
}

/* ---- memory ---- */

static void *allocate(size_t bytes)
{
    void *memory = NULL;
    cudaSetDevice(hpct_gpu.device); /* CUDA keeps it for each thread of the host */
    if (cudaMalloc(&memory, bytes > 0 ? bytes : 1) != cudaSuccess) {
        cudaGetLastError();
        return NULL;
    }
    if (cudaMemsetAsync(memory, 0, bytes > 0 ? bytes : 1, hpct_gpu.stream) == cudaSuccess)
        return memory;
    cudaGetLastError();
    cudaFree(memory);
    return NULL;
}

static void release(void *memory)
{
    cudaFree(memory); /* waits for the device; allows NULL */
}

static void *allocate_host(size_t bytes)
{
    void *memory = NULL;
    cudaSetDevice(hpct_gpu.device);
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
    hpct_status status = HPCT_CUDA(cudaSetDevice(hpct_gpu.device));
    return status == HPCT_OK ? HPCT_CUDA(cudaMemGetInfo(left, all)) : status;
}

hpct_status hpct_cuda_wait(void)
{
    hpct_waits before = hpct_headway_enter(HPCT_WAITS_FOR_DEVICE);
    hpct_status status = HPCT_CUDA(cudaStreamSynchronize(hpct_gpu.stream));
    hpct_headway_enter(before);
    return status;
}

static hpct_status wait(void)
{
    hpct_status status = hpct_cuda_join(false);
    return status != HPCT_OK ? status : hpct_cuda_wait();
}

hpct_status hpct_cuda_to_host(void *host, const void *device, size_t bytes)
{
    hpct_status status = hpct_cuda_join(false);
    if (status == HPCT_OK && bytes > 0)
        status = HPCT_CUDA(
            cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, hpct_gpu.stream));
    return status == HPCT_OK ? wait() : status;
}

static hpct_status send(void *memory, const void *host, size_t bytes)
{
    return bytes == 0 ? HPCT_OK
                      : HPCT_CUDA(cudaMemcpyAsync(memory, host, bytes, cudaMemcpyHostToDevice,
                                                  hpct_gpu.stream));
}

hpct_status hpct_cuda_from_host(void *device, const void *host, size_t bytes)
{
    hpct_status status = hpct_cuda_join(false);
    if (status == HPCT_OK)
        status = send(device, host, bytes);
    return status == HPCT_OK ? wait() : status;
}

static hpct_status fetch(void *host, const void *memory, size_t bytes)
{
    return HPCT_CUDA(cudaMemcpyAsync(host, memory, bytes, cudaMemcpyDeviceToHost, hpct_gpu.stream));
}

/* An event, made at its first use. */
static hpct_status record(cudaEvent_t *event, cudaStream_t stream)
{
    hpct_status status = HPCT_OK;
    if (*event == NULL)
        status = HPCT_CUDA(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
    return status == HPCT_OK ? HPCT_CUDA(cudaEventRecord(*event, stream)) : status;
}

static hpct_status taken(void)
{
    return record(&hpct_gpu.taken_before, hpct_gpu.stream);
}

static hpct_status send_beside(void *memory, const void *host, size_t bytes)
{
    hpct_status status = HPCT_OK;
    if (hpct_gpu.beside == NULL)
        status = HPCT_CUDA(cudaStreamCreateWithFlags(&hpct_gpu.beside, cudaStreamNonBlocking));
    if (status == HPCT_OK && hpct_gpu.taken_before != NULL)
        status = HPCT_CUDA(cudaStreamWaitEvent(hpct_gpu.beside, hpct_gpu.taken_before, 0));
    if (status == HPCT_OK && bytes > 0)
        status = HPCT_CUDA(
            cudaMemcpyAsync(memory, host, bytes, cudaMemcpyHostToDevice, hpct_gpu.beside));
    return status;
}

static hpct_status take(void)
{
    hpct_status status = record(&hpct_gpu.sent_beside, hpct_gpu.beside);
    return status == HPCT_OK
               ? HPCT_CUDA(cudaStreamWaitEvent(hpct_gpu.stream, hpct_gpu.sent_beside, 0))
               : status;
}

static hpct_status copy(void *to, const void *from, size_t bytes)
{
    return bytes == 0 ? HPCT_OK
                      : HPCT_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice,
                                                  hpct_gpu.stream));
}

static hpct_status set_mark(hpct_mark mark)
{
    return record(&hpct_gpu.marks[mark],
                  mark == HPCT_MARK_INPUT ? hpct_gpu.beside : hpct_gpu.stream);
}

static hpct_status await(hpct_mark mark)
{
    if (hpct_gpu.marks[mark] == NULL)
        return HPCT_OK;
    hpct_waits before = hpct_headway_enter(HPCT_WAITS_FOR_DEVICE);
    hpct_status status = HPCT_CUDA(cudaEventSynchronize(hpct_gpu.marks[mark]));
    hpct_headway_enter(before);
    return status;
}

static hpct_status zero(void *memory, size_t bytes)
{
    return bytes == 0 ? HPCT_OK : HPCT_CUDA(cudaMemsetAsync(memory, 0, bytes, hpct_gpu.stream));
}

/* ---- numbers ---- */

size_t hpct_cuda_value_bytes(hpct_precision values)
{
    return hpct_precision_bytes(values);
}

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
    if (precision != HPCT_BF16 || hpct_gpu.major >= 8)
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_CONFIG,
                     "precision bf16 needs a GPU of compute capability 8.0 or more, this one has "
                     "%d.%d: take --precision fp16 or fp32",
                     hpct_gpu.major, hpct_gpu.minor);
}

/* ---- operations ---- */

typedef hpct_status maker(hpct_op **, const hpct_op_spec *, const hpct_op_build *);

static maker *const makers[HPCT_OP_KINDS] = {
    [HPCT_OP_CONV2D] = hpct_cuda_make_conv2d,
    [HPCT_OP_MAX_POOL2D] = hpct_cuda_make_pool,
    [HPCT_OP_AVERAGE_POOL2D] = hpct_cuda_make_pool,
    [HPCT_OP_DENSE] = hpct_cuda_make_dense,
    [HPCT_OP_RELU] = hpct_cuda_make_activation,
    [HPCT_OP_SOFTMAX] = hpct_cuda_make_softmax,
    [HPCT_OP_ADD] = hpct_cuda_make_join,
    [HPCT_OP_CONCATENATE] = hpct_cuda_make_join,
    [HPCT_OP_RELU6] = hpct_cuda_make_activation,
    [HPCT_OP_SIGMOID] = hpct_cuda_make_activation,
    [HPCT_OP_TANH] = hpct_cuda_make_activation,
    [HPCT_OP_GELU] = hpct_cuda_make_activation,
    [HPCT_OP_BATCH_NORM] = hpct_cuda_make_batch_norm,
    [HPCT_OP_PAD2D] = hpct_cuda_make_pad2d,
    [HPCT_OP_DROPOUT] = hpct_cuda_make_dropout,
    [HPCT_OP_RESCALING] = hpct_cuda_make_activation,
    [HPCT_OP_RESIZING] = hpct_cuda_make_picture,
    [HPCT_OP_RANDOM_CROP] = hpct_cuda_make_picture,
    [HPCT_OP_RANDOM_FLIP] = hpct_cuda_make_picture,
};

static hpct_status make_op(hpct_op **out, const hpct_op_spec *spec, const hpct_op_build *build)
{
    hpct_op *op = NULL;
    hpct_status status = HPCT_OK;
    if (makers[spec->kind] == NULL) /* nn/hosted.h has them */
        status =
            hpct_fail(HPCT_ERR_CONFIG, "a GPU does not have the operation %s: take --device cpu",
                      hpct_op_kind_name(spec->kind));
    else
        status = makers[spec->kind](&op, spec, build);
    if (status != HPCT_OK && op != NULL) {
        op->class->destroy(op);
        op = NULL;
    }
    *out = op;
    return status;
}

/* Aside: the first operations may need none of them. */
static hpct_status copy_params(hpct_precision values, const hpct_param_copy *copies, int num)
{
    hpct_status status = hpct_cuda_aside();
    if (status == HPCT_OK)
        status = hpct_cuda_copy_params(values, copies, num);
    return hpct_cuda_back(status);
}

static const hpct_device device = {
    .open = hpct_cuda_open,
    .enter = hpct_cuda_enter,
    .describe = describe,
    .links = links,
    .versions = versions,
    .memory = memory_left,
    .allocate_host = allocate_host,
    .release_host = release_host,
    .to_host = hpct_cuda_to_host,
    .from_host = hpct_cuda_from_host,
    .send = send,
    .send_beside = send_beside,
    .take = take,
    .taken = taken,
    .fetch = fetch,
    .copy = copy,
    .zero = zero,
    .wait = wait,
    .join = hpct_cuda_join,
    .mark = set_mark,
    .await = await,
    .leaves_sums = true,
    .put_sums = hpct_cuda_put_sums,
    .to_values = hpct_cuda_to_values,
    .from_values = hpct_cuda_from_values,
    .gather = hpct_cuda_gather,
    .record = hpct_cuda_record,
    .end_record = hpct_cuda_end_record,
    .replay = hpct_cuda_replay,
    .drop_recording = hpct_cuda_drop_recording,
    .set_draws = hpct_cuda_set_draws,
    .set_rates = hpct_cuda_set_rates,
};

const hpct_backend hpct_backend_cuda = {
    .name = "cuda",
    .device = &device,
    .low_values = true,
    .allocate = allocate,
    .release = release,
    .check_precision = check_precision,
    .make_op = make_op,
    .loss = hpct_cuda_loss,
    .head = hpct_cuda_head,
    .update = hpct_cuda_update,
    .accumulate = hpct_cuda_accumulate,
    .add_values = hpct_cuda_add_values,
    .scale = hpct_cuda_scale,
    .copy_params = copy_params,
    .made_ops = hpct_tune_keep,
    .makes_sums = true,
    .leaves_moments = true,
    .leaves_biases = true,
    .defers_norms = true,
    .takes_norm = hpct_cuda_takes_norm,
    .measure = hpct_cuda_measure,
};
