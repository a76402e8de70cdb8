/* The description in place of a handle, and measurements in place of a device's. */
#include "tests/gpu_without/libraries/described_gpu.h"

#include "base/status.h"
#include "nn/backend/cuda/conv2d_parts.h"
#include "nn/backend/cuda/self_test.h"
#include "nn/backend/cuda/tune.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if CUDNN_VERSION < 91100 /* then nothing is asked for */
#define CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR CUDNN_BACKEND_TENSOR_DESCRIPTOR
#define CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION CUDNN_ATTR_TENSOR_DATA_TYPE
#define CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP CUDNN_ATTR_EXECUTION_PLAN_HANDLE
#define CUDNN_ATTR_ENGINEHEUR_DEVICEPROP CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH
#define CUDNN_ATTR_ENGINE_DEVICEPROP CUDNN_ATTR_ENGINE_OPERATION_GRAPH
#endif

#define MOST_GPUS 32 /* opened by one program; the module keeps what it found by GPU */

static cudnnBackendDescriptor_t device;
static size_t memory_bytes;
static hpct_cuda_choices *kept;
int described_gpu_measured;

cudnnStatus_t __real_cudnnBackendSetAttribute(cudnnBackendDescriptor_t of,
                                              cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t type, int64_t count,
                                              const void *values);

bool described_gpu_supported(void)
{
    return cudnnGetVersion() >= 91100 && CUDNN_VERSION >= 91100;
}

static hpct_status check(cudnnStatus_t error, const char *name)
{
    return error == CUDNN_STATUS_SUCCESS
               ? HPCT_OK
               : hpct_fail(HPCT_ERR_CONFIG, "cuDNN %zu does not take the device %s: %s",
                           cudnnGetVersion(), name, cudnnGetErrorString(error));
}

static hpct_status make_device(const char *name, const char *json)
{
    HPCT_TRY(
        check(cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &device), name));
    HPCT_TRY(
        check(__real_cudnnBackendSetAttribute(device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                                              CUDNN_TYPE_CHAR, (int64_t) strlen(json) + 1, json),
              name));
    return check(cudnnBackendFinalize(device), name);
}

static hpct_status number(const json_t *json, const char *file, const char *key, size_t *out)
{
    const json_t *value = json_object_get(json, key);
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return hpct_fail(HPCT_ERR_DATA, "%s: %s is not a number", file, key);
    *out = (size_t) json_integer_value(value);
    return HPCT_OK;
}

/* What the module reads of its device. */
static hpct_status enter(const json_t *json, const char *file)
{
    static hpct_cuda gpus[MOST_GPUS];
    static int next;
    size_t version = 0, processors = 0, shared = 0;
    if (next == MOST_GPUS)
        return hpct_fail(HPCT_ERR_INTERNAL, "more than %d described GPUs", MOST_GPUS);
    HPCT_TRY(number(json, file, "deviceVer", &version));
    HPCT_TRY(number(json, file, "multiProcessorCount", &processors));
    HPCT_TRY(number(json, file, "maxSharedMemoryPerBlockOptin", &shared));
    HPCT_TRY(number(json, file, "totalGlobalMem", &memory_bytes));
    hpct_cuda_gpu_here = &gpus[next++];
    *hpct_cuda_gpu_here = (hpct_cuda){.major = (int) version / 100,
                                      .minor = (int) version / 10 % 10,
                                      .multiprocessors = (int) processors,
                                      .shared_bytes = shared,
                                      .bytes_per_second = 1e12};
    return HPCT_OK;
}

hpct_status described_gpu_open(const char *name, hpct_cuda_choices *choices)
{
    const char *folder = getenv("top_srcdir");
    char file[4096];
    json_error_t error;
    snprintf(file, sizeof file, "%s/tests/fixtures/gpu/cudnn/%s.json",
             folder != NULL ? folder : ".", name);
    described_gpu_close();
    kept = choices;
    json_t *json = json_load_file(file, 0, &error);
    if (json == NULL)
        return hpct_fail(HPCT_ERR_NO_INPUT, "%s: %s", file, error.text);
    char *text = json_dumps(json, JSON_COMPACT | JSON_PRESERVE_ORDER);
    hpct_status status = text != NULL ? enter(json, file) : hpct_fail_memory(0);
    if (status == HPCT_OK)
        status = make_device(name, text);
    free(text);
    json_decref(json);
    return status;
}

void described_gpu_close(void)
{
    if (device != NULL)
        cudnnBackendDestroyDescriptor(device);
    device = NULL;
}

/* ---- in place of a handle ---- */

static cudnnStatus_t describe(cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name)
{
    return __real_cudnnBackendSetAttribute(of, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &device);
}

cudnnStatus_t __wrap_cudnnBackendSetAttribute(cudnnBackendDescriptor_t of,
                                              cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t type, int64_t count,
                                              const void *values);
cudnnStatus_t __wrap_cudnnBackendSetAttribute(cudnnBackendDescriptor_t of,
                                              cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t type, int64_t count,
                                              const void *values)
{
    if (name == CUDNN_ATTR_OPERATIONGRAPH_HANDLE)
        return CUDNN_STATUS_SUCCESS;
    if (name == CUDNN_ATTR_EXECUTION_PLAN_HANDLE)
        return describe(of, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
    cudnnStatus_t error = CUDNN_STATUS_SUCCESS;
    if (name == CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)
        error = describe(of, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP);
    if (name == CUDNN_ATTR_ENGINE_OPERATION_GRAPH)
        error = describe(of, CUDNN_ATTR_ENGINE_DEVICEPROP);
    return error != CUDNN_STATUS_SUCCESS
               ? error
               : __real_cudnnBackendSetAttribute(of, name, type, count, values);
}

/* ---- in place of measurements ---- */

hpct_status __wrap_hpct_cuda_tune_choices(hpct_cuda_choices **out);
hpct_status __wrap_hpct_cuda_tune_choices(hpct_cuda_choices **out)
{
    *out = kept;
    return HPCT_OK;
}

/* Addresses that nobody reads. */
void *__wrap_hpct_cuda_tune_memory(size_t bytes);
void *__wrap_hpct_cuda_tune_memory(size_t bytes)
{
    (void) bytes;
    return (void *) (uintptr_t) 0x10000;
}

void __wrap_hpct_cuda_tune_release(void *memory);
void __wrap_hpct_cuda_tune_release(void *memory)
{
    (void) memory;
}

hpct_status __wrap_hpct_cuda_tune_time(hpct_status (*run)(void *argument), void *argument,
                                       double best, double *seconds);
hpct_status __wrap_hpct_cuda_tune_time(hpct_status (*run)(void *argument), void *argument,
                                       double best, double *seconds)
{
    (void) run;
    (void) argument;
    (void) best;
    *seconds = 1e-3 + 1e-6 * described_gpu_measured++; /* the first proposal is the fastest */
    return HPCT_OK;
}

/* Nothing is computed. */
hpct_status __wrap_hpct_cuda_self_test_open(hpct_cuda_self_test *test, const hpct_dnn_graph *graph,
                                            void *const *pointers, void *memory);
hpct_status __wrap_hpct_cuda_self_test_open(hpct_cuda_self_test *test, const hpct_dnn_graph *graph,
                                            void *const *pointers, void *memory)
{
    (void) graph;
    (void) pointers;
    (void) memory;
    *test = (hpct_cuda_self_test){0};
    return HPCT_OK;
}

hpct_status __wrap_hpct_cuda_self_test_run(const hpct_cuda_self_test *test,
                                           hpct_status (*run)(void *argument), void *argument,
                                           bool *right);
hpct_status __wrap_hpct_cuda_self_test_run(const hpct_cuda_self_test *test,
                                           hpct_status (*run)(void *argument), void *argument,
                                           bool *right)
{
    (void) test;
    (void) run;
    (void) argument;
    *right = true;
    return HPCT_OK;
}

/* Own kernels are not among what is looked at. */
hpct_status __wrap_hpct_cuda_conv_take_small(const hpct_cuda_conv *conv, int n, bool backward,
                                             double besides, hpct_cuda_conv_stage *s);
hpct_status __wrap_hpct_cuda_conv_take_small(const hpct_cuda_conv *conv, int n, bool backward,
                                             double besides, hpct_cuda_conv_stage *s)
{
    (void) conv;
    (void) n;
    (void) backward;
    (void) besides;
    (void) s;
    return HPCT_OK;
}

/* The limit of workspaces follows from it. */
cudaError_t __wrap_cudaMemGetInfo(size_t *available, size_t *total);
cudaError_t __wrap_cudaMemGetInfo(size_t *available, size_t *total)
{
    *available = *total = memory_bytes;
    return cudaSuccess;
}
