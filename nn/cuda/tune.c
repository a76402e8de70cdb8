/* Measuring on the stream of the device, with events. */
#include "nn/cuda/tune.h"

#include "base/status.h"
#include "nn/cuda/cuda.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPETITIONS 5
#define FILLING 0x3c /* each byte: a small number in fp32 and bf16, 1 in fp16 */

/* All that a choice may depend on. */
static hpct_status identify(char *identity, size_t size)
{
    struct cudaDeviceProp about;
    int driver = 0;
    hpct_status status = HPCT_CUDA(cudaGetDeviceProperties(&about, hpct_gpu.device));
    if (status == HPCT_OK)
        status = HPCT_CUDA(cudaDriverGetVersion(&driver));
    const char *tf32 = getenv("NVIDIA_TF32_OVERRIDE");
    bool without = tf32 != NULL && strcmp(tf32, "0") == 0;
    if (status == HPCT_OK)
        snprintf(identity, size,
                 "hpc-train choices 1: %s, sm_%d%d, %d multiprocessors, %zu MiB, driver %d, "
                 "cuDNN %zu, cuBLASLt %zu%s",
                 about.name, about.major, about.minor, about.multiProcessorCount,
                 about.totalGlobalMem >> 20, driver, cudnnGetVersion(), cublasLtGetVersion(),
                 without ? ", no TF32" : "");
    return status;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

void hpct_tune_lock(void)
{
    pthread_mutex_lock(&mutex);
}

void hpct_tune_unlock(void)
{
    pthread_mutex_unlock(&mutex);
}

hpct_status hpct_tune_choices(hpct_choices **out)
{
    char identity[512], path[PATH_MAX];
    hpct_status status = HPCT_OK;
    if (hpct_gpu.choices == NULL) {
        status = identify(identity, sizeof identity);
        if (status == HPCT_OK) {
            hpct_choices_path(path, sizeof path, identity);
            status = hpct_choices_open(&hpct_gpu.choices, path, identity);
        }
    }
    *out = hpct_gpu.choices;
    return status;
}

void hpct_tune_keep(void)
{
    hpct_tune_lock();
    if (hpct_gpu.choices != NULL)
        hpct_choices_write(hpct_gpu.choices);
    hpct_tune_unlock();
}

hpct_status hpct_tune_time(hpct_status (*run)(void *argument), void *argument, double *seconds)
{
    cudaEvent_t begin = NULL, end = NULL;
    float least = 0;
    hpct_status status = HPCT_CUDA(cudaEventCreate(&begin));
    if (status == HPCT_OK)
        status = HPCT_CUDA(cudaEventCreate(&end));
    if (status == HPCT_OK)
        status = run(argument);
    for (int i = 0; i < REPETITIONS && status == HPCT_OK; i++) {
        float taken = 0;
        status = HPCT_CUDA(cudaEventRecord(begin, hpct_gpu.stream));
        if (status == HPCT_OK)
            status = run(argument);
        if (status == HPCT_OK)
            status = HPCT_CUDA(cudaEventRecord(end, hpct_gpu.stream));
        if (status == HPCT_OK)
            status = HPCT_CUDA(cudaEventSynchronize(end));
        if (status == HPCT_OK)
            status = HPCT_CUDA(cudaEventElapsedTime(&taken, begin, end));
        least = i == 0 || taken < least ? taken : least;
    }
    if (end != NULL)
        cudaEventDestroy(end);
    if (begin != NULL)
        cudaEventDestroy(begin);
    *seconds = 1e-3 * (double) least;
    return status;
}

void *hpct_tune_memory(size_t bytes)
{
    void *memory = NULL;
    if (cudaMalloc(&memory, bytes > 0 ? bytes : 1) != cudaSuccess) {
        cudaGetLastError(); /* or the next check of a launch would find it */
        return NULL;
    }
    if (cudaMemset(memory, FILLING, bytes) == cudaSuccess && cudaDeviceSynchronize() == cudaSuccess)
        return memory;
    cudaFree(memory);
    cudaGetLastError();
    return NULL;
}

/* After trials, of which some may have failed. */
void hpct_tune_release(void *memory)
{
    cudaGetLastError();
    if (memory != NULL) {
        cudaStreamSynchronize(hpct_gpu.stream);
        cudaFree(memory);
    }
}

hpct_status hpct_tune_workspace_limit(size_t *bytes)
{
    const size_t least = (size_t) 64 << 20, most = (size_t) 1 << 30;
    size_t available = 0, total = 0;
    hpct_status status = HPCT_CUDA(cudaMemGetInfo(&available, &total));
    *bytes = total / 64 < least ? least : total / 64 > most ? most : total / 64;
    return status;
}
