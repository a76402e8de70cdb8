/* CUDA's runtime, as far as the GPU module calls it. */
#include "tests/gpu_without/kernels/cuda_on_host.h"
#include "tests/gpu_without/machine/streams.h"

#include <map>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

using namespace emulated;

namespace
{

constexpr int MULTIPROCESSORS = 3; /* few, so that small cases go around in grids */
constexpr int SHARED_BYTES = 227 << 10;

thread_local int current;
cudaStream_t default_streams[8]; /* which others do not wait for */
thread_local cudaError_t last;
bool faulty[8]; /* a kernel did what it must not: the device reports it to every caller, for good */

bool is_gone()
{
    return count_devices() == 0;
}

/* A queue of the device that the thread uses. */
bool is_here(cudaStream_t stream)
{
    return stream != nullptr && stream->device == current;
}

int major_of()
{
    const char *major = getenv("HPC_TRAIN_TEST_MAJOR");
    return major != nullptr ? atoi(major) : 9;
}

cudaError_t state_of(int device)
{
    return faulty[device] ? tell(cudaErrorIllegalAddress) : cudaSuccess;
}

bool are_launches_blocking()
{
    const char *blocking = getenv("CUDA_LAUNCH_BLOCKING");
    return blocking != nullptr && strcmp(blocking, "1") == 0;
}

cudaError_t copy_of(void *to, const void *from, size_t bytes, cudaStream_t stream)
{
    int source = device_of(from), target = device_of(to);
    bool pinned = target < 0 ? is_pinned(to) : source < 0 && is_pinned(from);
    auto body = [=] {
        if (source >= 0)
            open(source);
        if (target >= 0)
            open(target);
        memcpy(to, from, bytes);
    };
    if (stream->into != nullptr || pinned || (source >= 0 && target >= 0))
        return enqueue(stream, once(body));
    if (target < 0) { /* to memory that is not pinned: the call ends when it is there */
        cudaError_t error = enqueue(stream, once(body));
        wait_stream(stream);
        return error;
    }
    std::vector<char> kept((const char *) from, (const char *) from + bytes);
    return enqueue(stream, once([=] {
                       open(target);
                       memcpy(to, kept.data(), bytes);
                   }));
}

} // namespace

namespace emulated
{

cudaError_t tell(cudaError_t error)
{
    last = error;
    return error;
}

int current_device()
{
    return current;
}

bool is_faulty(int device)
{
    return faulty[device];
}

} // namespace emulated

/* Variables of a device: each has its own, and a kernel finds those of its device. */
extern "C" char __start_hpct_of_device[], __stop_hpct_of_device[];

static char *variables_of(int device) /* made with the device's first stream */
{
    static char *of[8], *first;
    size_t bytes = (size_t) (__stop_hpct_of_device - __start_hpct_of_device);
    if (first == nullptr) {
        first = (char *) malloc(bytes);
        memcpy(first, __start_hpct_of_device, bytes);
    }
    if (of[device] == nullptr) {
        of[device] = (char *) allocate(device, bytes);
        memcpy(of[device], first, bytes);
    }
    return of[device];
}

void *hpct_host_symbol(void *variable)
{
    turn t;
    return variables_of(current) + ((char *) variable - __start_hpct_of_device);
}

static size_t run_kernel(int device, dim3 grid, dim3 block, const std::function<void()> &kernel,
                         bool watched)
{
    size_t bytes = (size_t) (__stop_hpct_of_device - __start_hpct_of_device);
    char *own = variables_of(device);
    memcpy(__start_hpct_of_device, own, bytes);
    size_t traffic = hpct_host_run(grid, block, kernel, watched);
    memcpy(own, __start_hpct_of_device, bytes);
    return traffic;
}

/* What a launcher does again in each step is looked at for races in the first ones: the next differ
 * in the numbers alone. */
static bool is_new(const char *launcher, dim3 grid, dim3 block)
{
    constexpr int OFTEN = 8;
    static auto &seen = *new std::map<std::vector<uintptr_t>, int>;
    return seen[{(uintptr_t) launcher, grid.x, grid.y, grid.z, block.x, block.y, block.z}]++ <
           OFTEN;
}

/* The launcher's name, of what the compiler calls it. */
static std::string name_of(const char *launcher)
{
    std::string name(launcher, strcspn(launcher, "("));
    size_t at = name.find_last_of(" :");
    return at == std::string::npos ? name : name.substr(at + 1);
}

void hpct_host_launch(cudaStream_t stream, dim3 grid, dim3 block, std::function<void()> kernel,
                      const char *launcher)
{
    turn t;
    if (!is_here(stream) || refuses("launch")) {
        tell(is_here(stream) ? cudaErrorLaunchFailure : cudaErrorInvalidResourceHandle);
        return;
    }
    if (block.x * block.y * block.z > 1024 || grid.x == 0 || grid.y == 0 || grid.z == 0 ||
        grid.y > 65535 || grid.z > 65535) {
        tell(cudaErrorInvalidConfiguration);
        return;
    }
    int device = current;
    bool fault = refuses("kernel");
    if (state_of(device) != cudaSuccess)
        return;
    enqueue(stream, once([=] {
                faulty[device] = faulty[device] || fault;
                if (!faulty[device])
                    count_traffic(name_of(launcher), run_kernel(device, grid, block, kernel,
                                                                is_new(launcher, grid, block)));
            }));
    if (stream->into == nullptr && are_launches_blocking()) {
        wait_stream(stream);
        state_of(device);
    }
}

/* A call may fail where a test asks for it. */
#define BEGIN(error)                                                                               \
    turn t;                                                                                        \
    if (refuses(__func__))                                                                         \
    return tell(error)

/* It breaks a capture. */
#define NOT_CAPTURED()                                                                             \
    if (!may(__func__))                                                                            \
    return cudaErrorStreamCaptureUnsupported

extern "C" {

/* ---- errors, devices ---- */

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = last;
    last = cudaSuccess;
    return error;
}

const char *cudaGetErrorString(cudaError_t error)
{
    static thread_local char text[64];
    if (error == cudaErrorMemoryAllocation)
        return "out of memory";
    snprintf(text, sizeof text, "emulated CUDA error %d", (int) error);
    return text;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = count_devices();
    return is_gone() ? tell(cudaErrorNoDevice) : cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    if (device < 0 || device >= count_devices())
        return tell(cudaErrorInvalidDevice);
    current = device;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor:
        *value = major_of();
        return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
        *value = 0;
        return cudaSuccess;
    case cudaDevAttrMultiProcessorCount:
        *value = MULTIPROCESSORS;
        return cudaSuccess;
    case cudaDevAttrMemoryClockRate:
        *value = 2619000;
        return cudaSuccess;
    case cudaDevAttrGlobalMemoryBusWidth:
        *value = 5120;
        return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        *value = SHARED_BYTES;
        return cudaSuccess;
    default:
        broken("attribute %d of device %d is not emulated", (int) attribute, device);
    }
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *about, int device)
{
    size_t left;
    memset(about, 0, sizeof *about);
    snprintf(about->name, sizeof about->name, "emulated GPU");
    memory_left(device, &left, &about->totalGlobalMem);
    about->major = major_of();
    about->multiProcessorCount = MULTIPROCESSORS;
    about->pciBusID = device + 1;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int size, int device)
{
    snprintf(text, (size_t) size, "0000:%02x:00.0", device + 1);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr, int, int)
{
    *value = 1;
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
    BEGIN(cudaErrorLaunchFailure);
    NOT_CAPTURED();
    wait_device(current);
    return state_of(current);
}

/* ---- memory ---- */

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    BEGIN(cudaErrorMemoryAllocation);
    NOT_CAPTURED();
    *memory = allocate(current, bytes);
    return *memory != nullptr ? cudaSuccess : tell(cudaErrorMemoryAllocation);
}

cudaError_t cudaFree(void *memory)
{
    turn t;
    if (memory == nullptr)
        return cudaSuccess;
    NOT_CAPTURED();
    if (device_of(memory) >= 0)
        wait_device(device_of(memory));
    release(memory);
    return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned)
{
    BEGIN(cudaErrorMemoryAllocation);
    NOT_CAPTURED();
    *memory = allocate_pinned(bytes);
    return *memory != nullptr ? cudaSuccess : tell(cudaErrorMemoryAllocation);
}

cudaError_t cudaFreeHost(void *memory)
{
    turn t;
    if (memory == nullptr)
        return cudaSuccess;
    NOT_CAPTURED();
    wait_device(current);
    release_pinned(memory);
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *left, size_t *all)
{
    turn t;
    memory_left(current, left, all);
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *about, const void *memory)
{
    turn t;
    memset(about, 0, sizeof *about);
    about->device = device_of(memory);
    about->type = about->device >= 0  ? cudaMemoryTypeDevice
                  : is_pinned(memory) ? cudaMemoryTypeHost
                                      : cudaMemoryTypeUnregistered;
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    BEGIN(cudaErrorLaunchFailure);
    int source = device_of(from), target = device_of(to);
    bool fits = kind == cudaMemcpyDefault ||
                (kind == cudaMemcpyHostToDevice && source < 0 && target >= 0) ||
                (kind == cudaMemcpyDeviceToHost && source >= 0 && target < 0) ||
                (kind == cudaMemcpyDeviceToDevice && source >= 0 && target >= 0);
    if (kind == cudaMemcpyHostToDevice && is_pinned(from))
        count_sent(bytes);
    return fits ? copy_of(to, from, bytes, stream) : tell(cudaErrorInvalidMemcpyDirection);
}

cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *what, cudaStream_t stream)
{
    BEGIN(cudaErrorLaunchFailure);
    struct cudaMemcpy3DParms c = *what;
    if (c.kind != cudaMemcpyDeviceToDevice || device_of(c.srcPtr.ptr) != stream->device ||
        device_of(c.dstPtr.ptr) != stream->device || c.srcPos.x + c.extent.width > c.srcPtr.pitch ||
        c.dstPos.x + c.extent.width > c.dstPtr.pitch)
        return tell(cudaErrorInvalidValue);
    return enqueue(stream, once([c] {
                       for (size_t z = 0; z < c.extent.depth; z++) {
                           for (size_t y = 0; y < c.extent.height; y++) {
                               size_t from = ((z + c.srcPos.z) * c.srcPtr.ysize + y + c.srcPos.y) *
                                                 c.srcPtr.pitch +
                                             c.srcPos.x,
                                      to = ((z + c.dstPos.z) * c.dstPtr.ysize + y + c.dstPos.y) *
                                               c.dstPtr.pitch +
                                           c.dstPos.x;
                               memcpy((char *) c.dstPtr.ptr + to, (char *) c.srcPtr.ptr + from,
                                      c.extent.width);
                           }
                       }
                   }));
}

cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream)
{
    BEGIN(cudaErrorLaunchFailure);
    if (device_of(memory) != stream->device)
        return tell(cudaErrorInvalidValue);
    return enqueue(stream, once([=] { memset(memory, value, bytes); }));
}

/* In the default stream, for which nothing here waits but a whole device. */
cudaError_t cudaMemset(void *memory, int value, size_t bytes)
{
    turn t;
    NOT_CAPTURED();
    cudaStream_t &stream = default_streams[current];
    if (stream == nullptr) {
        stream = new CUstream_st{};
        stream->device = current;
        add_stream(stream);
    }
    return enqueue(stream, once([=] { memset(memory, value, bytes); }));
}

/* ---- streams, events, graphs ---- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    BEGIN(cudaErrorLaunchFailure);
    if (flags != cudaStreamNonBlocking)
        broken("a stream that waits for the default one is not emulated");
    *stream = new CUstream_st{};
    (*stream)->device = current;
    add_stream(*stream);
    variables_of(current);
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int)
{
    return cudaStreamCreateWithFlags(stream, flags);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    turn t;
    drop_stream(stream);
    delete stream;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    BEGIN(cudaErrorLaunchFailure);
    if (stream->into != nullptr) {
        stream->into->spoilt = true;
        return tell(cudaErrorStreamCaptureUnsupported);
    }
    count_wait();
    wait_stream(stream);
    return state_of(stream->device);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
    turn t;
    *status = stream->into == nullptr ? cudaStreamCaptureStatusNone
              : stream->into->spoilt  ? cudaStreamCaptureStatusInvalidated
                                      : cudaStreamCaptureStatusActive;
    return state_of(stream->device);
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    turn t;
    NOT_CAPTURED();
    cudaError_t state = state_of(stream->device);
    return state != cudaSuccess || stream->items.empty() ? state : tell(cudaErrorNotReady);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    BEGIN(cudaErrorLaunchFailure);
    return wait_event(stream, event);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *argument)
{
    turn t;
    return enqueue_host(stream, [=] { function(argument); });
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    *event = new CUevent_st{};
    (*event)->device = current;
    (*event)->tells_time = true;
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    cudaError_t error = cudaEventCreate(event);
    (*event)->tells_time = (flags & cudaEventDisableTiming) == 0;
    return error;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    turn t;
    forget(event);
    delete event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    BEGIN(cudaErrorLaunchFailure);
    return event->device == stream->device ? record(event, stream)
                                           : tell(cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    BEGIN(cudaErrorLaunchFailure);
    NOT_CAPTURED();
    if (event->captured)
        return tell(cudaErrorCapturedEvent);
    if (*event->done < event->recorded)
        go_on(event);
    if (state_of(event->device) != cudaSuccess)
        return cudaErrorIllegalAddress;
    return *event->done >= event->recorded ? cudaSuccess : tell(cudaErrorNotReady);
}

static bool is_stuck()
{
    turn t;
    return refuses("stuck");
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    while (is_stuck())
        pause();
    BEGIN(cudaErrorLaunchFailure);
    NOT_CAPTURED();
    if (event->captured)
        return tell(cudaErrorCapturedEvent);
    if (event->recorded > 0)
        wait_until(event->where, [event] { return *event->done >= event->recorded; });
    return state_of(event->device);
}

/* Drawn: choices by time are choices by chance, but for slow libraries. */
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t begin, cudaEvent_t end)
{
    BEGIN(cudaErrorLaunchFailure);
    if (begin->recorded == 0 || end->recorded == 0 || *end->done < end->recorded)
        return tell(cudaErrorNotReady);
    *milliseconds = 1e-3f * (float) (100 + draw(900));
    if (libraries_are_slow() && begin->library_calls != end->library_calls)
        *milliseconds += 1;
    return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    BEGIN(cudaErrorLaunchFailure);
    if (mode != cudaStreamCaptureModeThreadLocal)
        broken("a capture that forbids other threads something is not emulated");
    return begin_capture(stream);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    turn t;
    cudaError_t error = end_capture(stream, graph);
    bool refused =
        getenv("HPC_TRAIN_TEST_NO_RECORDING") != nullptr || refuses("cudaStreamEndCapture");
    return error == cudaSuccess && refused ? tell(cudaErrorNotSupported) : error;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *made, cudaGraph_t graph, unsigned long long)
{
    BEGIN(cudaErrorLaunchFailure);
    *made = new CUgraphExec_st{*graph, 0};
    return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t)
{
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    delete graph;
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph)
{
    tell_recording(graph->graph.nodes.size(), longest_way(graph->graph), graph->launches);
    delete graph;
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream)
{
    BEGIN(cudaErrorLaunchFailure);
    if (is_broken(stream->device))
        return tell(cudaErrorIllegalAddress);
    cudaError_t state = state_of(stream->device);
    return state != cudaSuccess ? state : launch(graph, stream);
}
}
