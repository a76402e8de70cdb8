/* Selects, opens, enters and waits for this thread's GPU. */
#include "nn/backend/cuda/cuda.h"

#include "base/progress.h"
#include "base/status.h"
#include "nn/backend/cuda/side_stream.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_MAJOR 7
#define LEAST_BYTES_PER_SECOND 1e11 /* a lower reported bandwidth is implausible; use: */
#define UNTOLD_BYTES_PER_SECOND 3e12
#define MOST_GPUS 64 /* per process */
#define BLAS_BYTES                                                                                 \
    ((size_t) 32 << 20) /* workspace of cuBLAS, so that it allocates none in a step */
#define OPENING_BYTES (2 * BLAS_BYTES) /* if less is free, an error is probably caused by that */

static hpct_cuda gpus[MOST_GPUS];
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

_Thread_local hpct_cuda *hpct_cuda_gpu_here = &gpus[0];

/* ---- opening ---- */

/* Why CUDA cannot be used, in one line. */
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
    return HPCT_CUDA(cudaDeviceGetAttribute(value, which, hpct_cuda_gpu.device));
}

static hpct_status read_device(void)
{
    int shared = 0, kilohertz = 0, bits = 0;
    HPCT_TRY(attribute(&hpct_cuda_gpu.major, cudaDevAttrComputeCapabilityMajor));
    HPCT_TRY(attribute(&hpct_cuda_gpu.minor, cudaDevAttrComputeCapabilityMinor));
    HPCT_TRY(attribute(&hpct_cuda_gpu.multiprocessors, cudaDevAttrMultiProcessorCount));
    HPCT_TRY(attribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin));
    HPCT_TRY(attribute(&kilohertz, cudaDevAttrMemoryClockRate));
    HPCT_TRY(attribute(&bits, cudaDevAttrGlobalMemoryBusWidth));
    hpct_cuda_gpu.shared_bytes = (size_t) shared;
    hpct_cuda_gpu.bytes_per_second = 2e3 * kilohertz * bits / 8; /* double data rate */
    if (hpct_cuda_gpu.bytes_per_second < LEAST_BYTES_PER_SECOND)
        hpct_cuda_gpu.bytes_per_second = UNTOLD_BYTES_PER_SECOND;
    if (hpct_cuda_gpu.major < LEAST_MAJOR)
        return hpct_fail(HPCT_ERR_CONFIG,
                         "the GPU has compute capability %d.%d, it must be %d.0 or more: take "
                         "--device cpu",
                         hpct_cuda_gpu.major, hpct_cuda_gpu.minor, LEAST_MAJOR);
    cudaError_t found = hpct_cuda_kernels_are_there();
    if (found == cudaErrorMemoryAllocation)
        return HPCT_CUDA(found);
    if (found != cudaSuccess) {
        cudaGetLastError(); /* clears it: the next check of a launch would report it */
        return hpct_fail(HPCT_ERR_CONFIG,
                         "hpctrain-cuda.so has no kernels for a GPU of compute capability %d.%d: "
                         "./configure --enable-cuda-archs=%d%d, or take --device cpu",
                         hpct_cuda_gpu.major, hpct_cuda_gpu.minor, hpct_cuda_gpu.major,
                         hpct_cuda_gpu.minor);
    }
    return HPCT_OK;
}

static hpct_status make_handles(void)
{
    void *workspace = NULL;
    int least = 0, greatest = 0; /* stream priorities: the lowest has the largest number */
    HPCT_TRY(HPCT_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest)));
    /* between the side stream and the reductions over ranks */
    HPCT_TRY(HPCT_CUDA(cudaStreamCreateWithPriority(&hpct_cuda_gpu.stream, cudaStreamNonBlocking,
                                                    least - (least - greatest) / 2)));
    HPCT_TRY(hpct_cuda_open_side());
    HPCT_TRY(HPCT_CUDA_BLAS(cublasCreate(&hpct_cuda_gpu.blas)));
    HPCT_TRY(HPCT_CUDA_BLAS(cublasSetStream(hpct_cuda_gpu.blas, hpct_cuda_gpu.stream)));
    HPCT_TRY(HPCT_CUDA(cudaMalloc(&workspace, BLAS_BYTES)));
    /* after cublasSetStream, which resets the workspace */
    HPCT_TRY(HPCT_CUDA_BLAS(cublasSetWorkspace(hpct_cuda_gpu.blas, workspace, BLAS_BYTES)));
    HPCT_TRY(HPCT_CUDA_BLAS(cublasSetMathMode(
        hpct_cuda_gpu.blas, (cublasMath_t) (CUBLAS_TF32_TENSOR_OP_MATH |
                                            CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION))));
    HPCT_TRY(HPCT_CUDA_BLAS(cublasLtCreate(&hpct_cuda_gpu.lt)));
    HPCT_TRY(HPCT_DNN(cudnnCreate(&hpct_cuda_gpu.dnn)));
    HPCT_TRY(HPCT_DNN(cudnnSetStream(hpct_cuda_gpu.dnn, hpct_cuda_gpu.stream)));
    HPCT_TRY(HPCT_CUDA(cudaMalloc((void **) &hpct_cuda_gpu.now, sizeof(hpct_cuda_moment))));
    return HPCT_CUDA(
        cudaMemsetAsync(hpct_cuda_gpu.now, 0, sizeof(hpct_cuda_moment), hpct_cuda_gpu.stream));
}

/* Index of `entry` in a comma-separated list; -1 if it is not in the list. */
static int place_in(const char *list, const char *entry)
{
    size_t wanted = strlen(entry);
    for (int place = 0;; place++) {
        size_t length = strcspn(list, ",");
        if (length == wanted && strncmp(list, entry, length) == 0)
            return place;
        if (list[length] == '\0')
            return -1;
        list += length + 1;
    }
}

static int number_of(const char *text)
{
    char *end;
    long number = strtol(text, &end, 10);
    return end == text || *end != '\0' || number < 0 || number > 4095 ? -1 : (int) number;
}

/* *device: CUDA device number of this process, below `count`, the number of devices. own:
 * HPC_TRAIN_GPU, an entry of `visible`, CUDA_VISIBLE_DEVICES, or a number if that is not set;
 * either may be NULL. HPCT_ERR_CONFIG if it matches none. */
static hpct_status find_own(const char *own, const char *visible, int count, int *device)
{
    *device = 0;
    if (own == NULL || own[0] == '\0')
        return HPCT_OK;
    *device = visible != NULL && visible[0] != '\0' ? place_in(visible, own) : number_of(own);
    if (*device >= 0 && *device < count)
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_CONFIG,
                     "HPC_TRAIN_GPU is %s, which is none of the %d GPUs here "
                     "(CUDA_VISIBLE_DEVICES is %s)",
                     own, count, visible != NULL ? visible : "not set");
}

/* The device of replica 0, or one of those after it. */
static hpct_status find_device(void)
{
    int count = 0, first = 0, replica = (int) (hpct_cuda_gpu_here - gpus);
    hpct_status status = count_devices(&count);
    if (status == HPCT_OK)
        status = find_own(getenv("HPC_TRAIN_GPU"), getenv("CUDA_VISIBLE_DEVICES"), count, &first);
    if (status == HPCT_OK && replica >= count)
        status = hpct_fail(HPCT_ERR_CONFIG,
                           "replica %d needs a GPU of its own, and this task sees %d: ask for more "
                           "(srun --gpus-per-task), or take fewer --replicas",
                           replica, count);
    hpct_cuda_gpu.device = (first + replica) % (count > 0 ? count : 1);
    return status;
}

/* Adds a hint if hardly any memory was free, which is then probably the cause. */
static hpct_status explain(hpct_status status)
{
    size_t left = 0, all = 0;
    char free_of[64] = "";
    if (status != HPCT_ERR_INTERNAL)
        return status;
    bool known = cudaMemGetInfo(&left, &all) == cudaSuccess; /* else there is no context */
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
    HPCT_TRY(find_device());
    hpct_status status = HPCT_CUDA(cudaSetDevice(hpct_cuda_gpu.device));
    if (status == HPCT_OK)
        status = read_device();
    return explain(status == HPCT_OK ? make_handles() : status);
}

hpct_status hpct_cuda_open(void)
{
    hpct_cuda *gpu = hpct_cuda_gpu_here;
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
    hpct_cuda_gpu_here = &gpus[replica];
    return hpct_cuda_open();
}

/* ---- information for the user ---- */

bool hpct_cuda_describe(int number, char *text, size_t size)
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

/* Peer access with native atomics is NVLink. */
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

bool hpct_cuda_links(int number, char *text, size_t size)
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

void hpct_cuda_versions(char *text, size_t size)
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

/* ---- waiting ---- */

hpct_status hpct_cuda_wait(void)
{
    hpct_waits before = hpct_enter_wait(HPCT_WAITS_FOR_DEVICE);
    hpct_status status = HPCT_CUDA(cudaStreamSynchronize(hpct_cuda_gpu.stream));
    hpct_enter_wait(before);
    return status;
}
