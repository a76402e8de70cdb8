/* The table of base/device_calls.h for CUDA and NCCL, part of the CUDA module. NCCL is loaded on
 * demand, so that the module also works without it. */
#include "base/device_calls.h"

#include "base/status.h"
#include "nn/backend/cuda/cuda.h"
#include "nn/backend/cuda/kernels.h"
#include "nn/backend/module.h"

#include <dlfcn.h>
#include <nccl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

_Static_assert(HPCT_DEVICE_ID_BYTES == NCCL_UNIQUE_ID_BYTES, "an id of NCCL's");

#define LEAST_NCCL 21800 /* minimum version, for ncclCommSplit */

static _Thread_local char words[512];

static const char *error(void)
{
    return words;
}

/* ---- CUDA ---- */

static hpct_device_result checked(cudaError_t error, const char *call)
{
    if (error == cudaSuccess)
        return HPCT_DEVICE_OK;
    if (error == cudaErrorNotReady) {
        cudaGetLastError();
        return HPCT_DEVICE_BUSY;
    }
    snprintf(words, sizeof words, "%s: %s", call, hpct_cuda_error(error));
    cudaGetLastError(); /* clears it: the next launch is not the cause */
    return error == cudaErrorMemoryAllocation ? HPCT_DEVICE_MEMORY : HPCT_DEVICE_FAILED;
}

static hpct_device_result open_device(void)
{
    if (hpct_cuda_open() == HPCT_OK)
        return HPCT_DEVICE_OK;
    snprintf(words, sizeof words, "%.500s", hpct_last_error());
    return HPCT_DEVICE_FAILED;
}

static const char *device_name(void)
{
    static _Thread_local char name[32];
    if (checked(cudaDeviceGetPCIBusId(name, sizeof name, hpct_cuda_gpu.device),
                "cudaDeviceGetPCIBusId") != HPCT_DEVICE_OK)
        snprintf(name, sizeof name, "device %d", hpct_cuda_gpu.device);
    return name;
}

static void *compute_stream(void)
{
    return hpct_cuda_gpu.stream;
}

static bool is_recording(void)
{
    return hpct_cuda_gpu.recording;
}

static bool is_device(const void *at)
{
    struct cudaPointerAttributes about;
    if (at == NULL ||
        checked(cudaPointerGetAttributes(&about, at), "cudaPointerGetAttributes") != HPCT_DEVICE_OK)
        return false;
    return about.type == cudaMemoryTypeDevice || about.type == cudaMemoryTypeManaged;
}

static hpct_device_result allocate(void **out, size_t bytes)
{
    return checked(cudaMalloc(out, bytes), "cudaMalloc");
}

static void release(void *at)
{
    checked(cudaFree(at), "cudaFree");
}

static hpct_device_result allocate_host(void **out, size_t bytes)
{
    return checked(cudaHostAlloc(out, bytes, cudaHostAllocDefault), "cudaHostAlloc");
}

static void release_host(void *at)
{
    checked(cudaFreeHost(at), "cudaFreeHost");
}

/* Highest priority, above the model's waiting kernels: early reductions finish early. */
static hpct_device_result create_stream(void **out)
{
    int least = 0, greatest = 0;
    cudaStream_t stream = NULL;
    hpct_device_result result = checked(cudaDeviceGetStreamPriorityRange(&least, &greatest),
                                        "cudaDeviceGetStreamPriorityRange");
    if (result == HPCT_DEVICE_OK)
        result = checked(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest),
                         "cudaStreamCreateWithPriority");
    *out = stream;
    return result;
}

static void destroy_stream(void *stream)
{
    checked(cudaStreamDestroy(stream), "cudaStreamDestroy");
}

static hpct_device_result create_event(void **out)
{
    cudaEvent_t event = NULL;
    hpct_device_result result = checked(cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
                                        "cudaEventCreateWithFlags");
    *out = event;
    return result;
}

static void destroy_event(void *event)
{
    checked(cudaEventDestroy(event), "cudaEventDestroy");
}

static hpct_device_result record(void *event, void *stream)
{
    return checked(cudaEventRecord(event, stream), "cudaEventRecord");
}

/* BUSY for an event recorded into a graph, which does not tell when the graph runs, and during
 * capture, when queries are not permitted. */
static hpct_device_result query(void *event)
{
    if (hpct_cuda_gpu.recording)
        return HPCT_DEVICE_BUSY;
    cudaError_t code = cudaEventQuery(event);
    if (code == cudaErrorCapturedEvent) {
        cudaGetLastError();
        return HPCT_DEVICE_BUSY;
    }
    return checked(code, "cudaEventQuery");
}

static hpct_device_result wait_event(void *stream, void *event)
{
    return checked(cudaStreamWaitEvent(stream, event, 0), "cudaStreamWaitEvent");
}

static hpct_device_result copy(void *dst, const void *src, size_t bytes, void *stream)
{
    return checked(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault, stream), "cudaMemcpyAsync");
}

/* ---- conversions ---- */

static hpct_device_result cast(size_t count, hpct_precision from, const void *src,
                               hpct_precision to, void *dst, void *stream)
{
    return checked(hpct_cuda_launch_cast(stream, count, from, src, to, dst),
                   "the cast around a sum");
}

static hpct_precision number_of(hpct_device_type type)
{
    return type == HPCT_DEVICE_FP16 ? HPCT_FP16 : HPCT_BF16;
}

static hpct_device_result encode(hpct_device_type type, size_t count, const float *src, void *dst,
                                 void *stream)
{
    return cast(count, HPCT_FP32, src, number_of(type), dst, stream);
}

static hpct_device_result decode(hpct_device_type type, size_t count, const void *src, float *dst,
                                 void *stream)
{
    return cast(count, number_of(type), src, HPCT_FP32, dst, stream);
}

/* ---- NCCL ---- */

#define NCCL_CALLS(CALL)                                                                           \
    CALL(get_version, ncclGetVersion)                                                              \
    CALL(get_error_string, ncclGetErrorString)                                                     \
    CALL(get_last_error, ncclGetLastError)                                                         \
    CALL(get_unique_id, ncclGetUniqueId)                                                           \
    CALL(init, ncclCommInitRankConfig)                                                             \
    CALL(split, ncclCommSplit)                                                                     \
    CALL(get_async_error, ncclCommGetAsyncError)                                                   \
    CALL(group_start, ncclGroupStart)                                                              \
    CALL(group_end, ncclGroupEnd)                                                                  \
    CALL(all_reduce, ncclAllReduce)                                                                \
    CALL(reduce, ncclReduce)                                                                       \
    CALL(broadcast, ncclBroadcast)                                                                 \
    CALL(all_gather, ncclAllGather)                                                                \
    CALL(send, ncclSend)                                                                           \
    CALL(receive, ncclRecv)                                                                        \
    CALL(finalize, ncclCommFinalize)                                                               \
    CALL(destroy, ncclCommDestroy)                                                                 \
    CALL(abort, ncclCommAbort)

#define MEMBER(name, call) __typeof__(&call) name;

static struct {
    pthread_once_t once;
    int version; /* 0: not available */
    char missing[400];
    NCCL_CALLS(MEMBER)
} nccl = {.once = PTHREAD_ONCE_INIT};

static void find_all(void *library)
{
    const struct {
        void *to;
        const char *name;
    } wanted[] = {
#define WANTED(name, call) {&nccl.name, #call},
        NCCL_CALLS(WANTED)};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        void *found = dlsym(library, wanted[i].name);
        if (found == NULL) {
            snprintf(nccl.missing, sizeof nccl.missing,
                     "libnccl.so.2 has no %s: NCCL 2.18 or later is needed", wanted[i].name);
            return;
        }
        memcpy(wanted[i].to, &found, sizeof found);
    }
    if (nccl.get_version(&nccl.version) != ncclSuccess || nccl.version < LEAST_NCCL) {
        snprintf(nccl.missing, sizeof nccl.missing,
                 "libnccl.so.2 is NCCL %d.%d, and 2.18 or later is needed", nccl.version / 10000,
                 nccl.version % 10000 / 100);
        nccl.version = 0;
    }
}

static void load_nccl(void)
{
    void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        snprintf(nccl.missing, sizeof nccl.missing, "%.350s", dlerror());
    else
        find_all(library);
}

static bool has_nccl(int *version)
{
    pthread_once(&nccl.once, load_nccl);
    *version = nccl.version;
    if (nccl.version == 0)
        snprintf(words, sizeof words, "%s", nccl.missing);
    return nccl.version != 0;
}

static hpct_device_result nccl_checked(ncclResult_t code, const char *call, ncclComm_t comm)
{
    if (code == ncclSuccess)
        return HPCT_DEVICE_OK;
    if (code == ncclInProgress)
        return HPCT_DEVICE_BUSY;
    const char *more = nccl.get_last_error(comm);
    snprintf(words, sizeof words, "%s: %s%s%.300s", call, nccl.get_error_string(code),
             more != NULL && *more != '\0' ? ": " : "", more != NULL ? more : "");
    return code == ncclRemoteError || code == ncclSystemError ? HPCT_DEVICE_LOST
                                                              : HPCT_DEVICE_FAILED;
}

static hpct_device_result unique_id(unsigned char id[HPCT_DEVICE_ID_BYTES])
{
    ncclUniqueId made;
    hpct_device_result result = nccl_checked(nccl.get_unique_id(&made), "ncclGetUniqueId", NULL);
    memcpy(id, made.internal, sizeof made.internal);
    return result;
}

static hpct_device_result init(void **comm, int size, const unsigned char *id, int rank)
{
    ncclUniqueId made;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t opened = NULL;
    config.blocking = 0;
    memcpy(made.internal, id, sizeof made.internal);
    ncclResult_t code = nccl.init(&opened, size, made, rank, &config);
    *comm = opened;
    return nccl_checked(code, "ncclCommInitRankConfig", NULL);
}

/* The new communicator inherits its parent's configuration: non-blocking. */
static hpct_device_result split(void *comm, int color, int key, void **out)
{
    return nccl_checked(
        nccl.split(comm, color < 0 ? NCCL_SPLIT_NOCOLOR : color, key, (ncclComm_t *) out, NULL),
        "ncclCommSplit", comm);
}

static hpct_device_result async_error(void *comm)
{
    ncclResult_t state = ncclSuccess;
    ncclResult_t code = nccl.get_async_error(comm, &state);
    return nccl_checked(code == ncclSuccess ? state : code, "ncclCommGetAsyncError", comm);
}

static hpct_device_result group_start(void)
{
    return nccl_checked(nccl.group_start(), "ncclGroupStart", NULL);
}

static hpct_device_result group_end(void)
{
    return nccl_checked(nccl.group_end(), "ncclGroupEnd", NULL);
}

static ncclDataType_t type_of(hpct_device_type type)
{
    switch (type) {
    case HPCT_DEVICE_FP32:
        return ncclFloat32;
    case HPCT_DEVICE_BF16:
        return ncclBfloat16;
    case HPCT_DEVICE_FP16:
        return ncclFloat16;
    default:
        return ncclUint8;
    }
}

static hpct_device_result all_reduce(void *data, size_t count, hpct_device_type type, void *comm,
                                     void *stream)
{
    return nccl_checked(nccl.all_reduce(data, data, count, type_of(type), ncclSum, comm, stream),
                        "ncclAllReduce", comm);
}

static hpct_device_result reduce(void *data, size_t count, hpct_device_type type, int root,
                                 void *comm, void *stream)
{
    return nccl_checked(nccl.reduce(data, data, count, type_of(type), ncclSum, root, comm, stream),
                        "ncclReduce", comm);
}

static hpct_device_result broadcast(void *data, size_t count, hpct_device_type type, int root,
                                    void *comm, void *stream)
{
    return nccl_checked(nccl.broadcast(data, data, count, type_of(type), root, comm, stream),
                        "ncclBroadcast", comm);
}

static hpct_device_result all_gather(const void *src, void *dst, size_t count,
                                     hpct_device_type type, void *comm, void *stream)
{
    return nccl_checked(nccl.all_gather(src, dst, count, type_of(type), comm, stream),
                        "ncclAllGather", comm);
}

static hpct_device_result send(const void *src, size_t count, hpct_device_type type, int peer,
                               void *comm, void *stream)
{
    return nccl_checked(nccl.send(src, count, type_of(type), peer, comm, stream), "ncclSend", comm);
}

static hpct_device_result receive(void *dst, size_t count, hpct_device_type type, int peer,
                                  void *comm, void *stream)
{
    return nccl_checked(nccl.receive(dst, count, type_of(type), peer, comm, stream), "ncclRecv",
                        comm);
}

static hpct_device_result finalize(void *comm)
{
    return nccl_checked(nccl.finalize(comm), "ncclCommFinalize", comm);
}

static void destroy(void *comm)
{
    nccl_checked(nccl.destroy(comm), "ncclCommDestroy", NULL);
}

static void abort_comm(void *comm)
{
    nccl_checked(nccl.abort(comm), "ncclCommAbort", NULL);
}

HPCT_API const hpct_device_calls hpct_cuda_device_calls;
const hpct_device_calls hpct_cuda_device_calls = {
    .error = error,
    .open = open_device,
    .device_name = device_name,
    .compute_stream = compute_stream,
    .is_recording = is_recording,
    .is_device = is_device,
    .allocate = allocate,
    .release = release,
    .allocate_host = allocate_host,
    .release_host = release_host,
    .create_stream = create_stream,
    .destroy_stream = destroy_stream,
    .create_event = create_event,
    .destroy_event = destroy_event,
    .record = record,
    .query = query,
    .wait_event = wait_event,
    .copy = copy,
    .encode = encode,
    .decode = decode,
    .has_nccl = has_nccl,
    .unique_id = unique_id,
    .init = init,
    .split = split,
    .async_error = async_error,
    .group_start = group_start,
    .group_end = group_end,
    .all_reduce = all_reduce,
    .reduce = reduce,
    .broadcast = broadcast,
    .all_gather = all_gather,
    .send = send,
    .receive = receive,
    .finalize = finalize,
    .destroy = destroy,
    .abort = abort_comm,
};
