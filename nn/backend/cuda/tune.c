/* Timing on the device's stream with events, and the kept choices. */
#include "nn/backend/cuda/tune.h"

#include "base/status.h"
#include "nn/backend/cuda/cuda.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define REPETITIONS 4
#define TIMED_SECONDS 1e-4 /* minimum total time of repeated calls, unless one takes longer, */
#define MOST_RUNS 20       /* or this many take less */
#define HOPELESS 2         /* times the best: stop */
#define HELD_NANOSECONDS 5000000L
#define MOST_KINDS 8    /* of GPUs per process */
#define KEEP_SECONDS 10 /* tuning time that may be lost */
#define FILLING 0x3c    /* byte pattern: a small number in fp32 and bf16, 1 in fp16 */

/* Everything that a choice may depend on. */
static hpct_status identify(char *identity, size_t size)
{
    struct cudaDeviceProp about;
    int driver = 0;
    hpct_status status = HPCT_CUDA(cudaGetDeviceProperties(&about, hpct_cuda_gpu.device));
    if (status == HPCT_OK)
        status = HPCT_CUDA(cudaDriverGetVersion(&driver));
    const char *tf32 = getenv("NVIDIA_TF32_OVERRIDE");
    bool without = tf32 != NULL && strcmp(tf32, "0") == 0;
    if (status == HPCT_OK)
        snprintf(identity, size,
                 "hpc-train choices 4: %s, sm_%d%d, %d multiprocessors, %zu MiB, driver %d, "
                 "cuDNN %zu, cuBLASLt %zu%s",
                 about.name, about.major, about.minor, about.multiProcessorCount,
                 about.totalGlobalMem >> 20, driver, cudnnGetVersion(), cublasLtGetVersion(),
                 without ? ", no TF32" : "");
    return status;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

void hpct_cuda_tune_lock(void)
{
    pthread_mutex_lock(&mutex);
}

void hpct_cuda_tune_unlock(void)
{
    pthread_mutex_unlock(&mutex);
}

/* Writes choices every KEEP_SECONDS, as a build of minutes may be aborted. Times with
 * CUDA_LAUNCH_BLOCKING are not kept. */
static void keep_some(void)
{
    static time_t kept;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (kept == 0)
        kept = now.tv_sec;
    if (hpct_cuda_gpu.choices == NULL || hpct_cuda_is_blocking() ||
        now.tv_sec - kept < KEEP_SECONDS)
        return;
    hpct_cuda_choices_write(hpct_cuda_gpu.choices);
    kept = now.tv_sec;
}

/* Replicas on equal GPUs share choices. */
static hpct_status open_choices(hpct_cuda_choices **out)
{
    static struct shared {
        char identity[512];
        hpct_cuda_choices *choices;
    } all[MOST_KINDS]; /* protected by the lock */
    char identity[sizeof all->identity], path[PATH_MAX];
    hpct_status status = identify(identity, sizeof identity);
    int kind = 0;
    while (kind < MOST_KINDS - 1 && all[kind].choices != NULL &&
           strcmp(all[kind].identity, identity) != 0)
        kind++;
    struct shared *s = &all[kind]; /* the last entry may be taken over from another kind of GPU,
                                      which keeps using its own choices */
    if (status == HPCT_OK && (s->choices == NULL || strcmp(s->identity, identity) != 0)) {
        hpct_cuda_choices_path(path, sizeof path, identity);
        memcpy(s->identity, identity, sizeof identity);
        status = hpct_cuda_choices_open(&s->choices, path, identity);
    }
    *out = status == HPCT_OK ? s->choices : NULL;
    return status;
}

hpct_status hpct_cuda_tune_choices(hpct_cuda_choices **out)
{
    hpct_status status =
        hpct_cuda_gpu.choices == NULL ? open_choices(&hpct_cuda_gpu.choices) : HPCT_OK;
    *out = hpct_cuda_gpu.choices;
    keep_some();
    return status;
}

void hpct_cuda_tune_keep(void)
{
    hpct_cuda_tune_lock();
    if (hpct_cuda_gpu.choices != NULL && !hpct_cuda_is_blocking())
        hpct_cuda_choices_write(hpct_cuda_gpu.choices);
    hpct_cuda_tune_unlock();
}

/* ---- time ---- */

typedef struct stopwatch {
    cudaEvent_t begin, end;
    sem_t called; /* posted when all calls to be timed are made */
} stopwatch;

/* Blocks the stream until the host has made all calls: calls shorter than their launch overhead
 * would otherwise wait for the next one. With a timeout, in case a call waits for the stream. */
static void CUDART_CB hold_stream(void *argument)
{
    stopwatch *w = argument;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += HELD_NANOSECONDS;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    while (sem_timedwait(&w->called, &until) != 0 && errno == EINTR)
        ;
}

static hpct_status time_runs(stopwatch *w, hpct_status (*run)(void *argument), void *argument,
                             int runs, double *seconds)
{
    float milliseconds = 0;
    hpct_status status = HPCT_CUDA(cudaLaunchHostFunc(hpct_cuda_gpu.stream, hold_stream, w));
    bool holds = status == HPCT_OK;
    if (status == HPCT_OK)
        status = HPCT_CUDA(cudaEventRecord(w->begin, hpct_cuda_gpu.stream));
    for (int i = 0; i < runs && status == HPCT_OK; i++)
        status = run(argument);
    if (status == HPCT_OK)
        status = HPCT_CUDA(cudaEventRecord(w->end, hpct_cuda_gpu.stream));
    if (holds)
        sem_post(&w->called);
    hpct_status ended = hpct_cuda_wait(); /* the stream is not blocked any more */
    while (sem_trywait(&w->called) == 0)  /* the timeout came first */
        ;
    status = status == HPCT_OK ? ended : status;
    if (status == HPCT_OK)
        status = HPCT_CUDA(cudaEventElapsedTime(&milliseconds, w->begin, w->end));
    *seconds = 1e-3 * (double) milliseconds / runs;
    return status;
}

hpct_status hpct_cuda_tune_time(hpct_status (*run)(void *argument), void *argument, double best,
                                double *seconds)
{
    stopwatch w = {0};
    double taken = 0;
    *seconds = 0;
    sem_init(&w.called, 0, 0);
    hpct_status status = HPCT_CUDA(cudaEventCreate(&w.begin));
    if (status == HPCT_OK)
        status = HPCT_CUDA(cudaEventCreate(&w.end));
    if (status == HPCT_OK)
        status = run(argument); /* warm-up: may load modules */
    if (status == HPCT_OK)
        status = time_runs(&w, run, argument, 1, seconds);
    /* a short run takes longer alone than among many */
    bool hopeless = best > 0 && *seconds > HOPELESS * best && *seconds > TIMED_SECONDS;
    int runs = (int) fmin(MOST_RUNS, ceil(TIMED_SECONDS / fmax(*seconds, 1e-7)));
    for (int i = 0; i < REPETITIONS && status == HPCT_OK && !hopeless; i++) {
        status = time_runs(&w, run, argument, runs, &taken);
        *seconds = i == 0 || taken < *seconds ? taken : *seconds;
        hopeless = best > 0 && *seconds > HOPELESS * best;
    }
    if (w.end != NULL)
        cudaEventDestroy(w.end);
    if (w.begin != NULL)
        cudaEventDestroy(w.begin);
    sem_destroy(&w.called);
    return status;
}

void *hpct_cuda_tune_memory(size_t bytes)
{
    void *memory = NULL;
    if (cudaMalloc(&memory, bytes > 0 ? bytes : 1) != cudaSuccess) {
        cudaGetLastError(); /* clears it: the next check of a launch would report it */
        return NULL;
    }
    if (cudaMemset(memory, FILLING, bytes) == cudaSuccess && cudaDeviceSynchronize() == cudaSuccess)
        return memory;
    cudaFree(memory);
    cudaGetLastError();
    return NULL;
}

/* Clears errors of failed trials, too. */
void hpct_cuda_tune_release(void *memory)
{
    cudaGetLastError();
    if (memory != NULL) {
        cudaStreamSynchronize(hpct_cuda_gpu.stream);
        cudaFree(memory);
    }
}

hpct_status hpct_cuda_tune_workspace_limit(size_t *bytes)
{
    const size_t least = (size_t) 64 << 20, most = (size_t) 1 << 30;
    size_t available = 0, total = 0;
    hpct_status status = HPCT_CUDA(cudaMemGetInfo(&available, &total));
    *bytes = total / 64 < least ? least : total / 64 > most ? most : total / 64;
    return status;
}
