/* Peak rates of this GPU: the product of two large matrices, and copying beyond the caches' size;
 * the best of some runs each. */
#include "nn/backend/cuda/ops.h"

#include "base/status.h"

#define RUNS 8
#define GEMM_SIZE 8192
#define COPY_BYTES ((size_t) 1 << 30)
#define LEAST_BYTES ((size_t) 64 << 20) /* below, caches would be measured */

typedef struct bench {
    char *memory;
    size_t bytes;
    cudaEvent_t before, after;
    hpct_precision precision;
} bench;

/* Allocates the buffer, halving its size until it fits. */
static hpct_status open_bench(bench *b)
{
    size_t left = 0, all = 0, wanted = 2 * COPY_BYTES;
    HPCT_TRY(HPCT_CUDA(cudaMemGetInfo(&left, &all)));
    for (b->bytes = wanted; b->bytes >= LEAST_BYTES; b->bytes /= 2) {
        if (b->bytes > left / 2)
            continue;
        if (cudaMalloc((void **) &b->memory, b->bytes) == cudaSuccess)
            break;
        cudaGetLastError();
        b->memory = NULL;
    }
    if (b->memory == NULL)
        return hpct_fail_memory(LEAST_BYTES);
    HPCT_TRY(HPCT_CUDA(cudaEventCreate(&b->before)));
    HPCT_TRY(HPCT_CUDA(cudaEventCreate(&b->after)));
    /* products of zeros would be faster */
    return hpct_cuda_check(
        hpct_cuda_launch_uniform(
            b->precision, b->bytes / hpct_backend_precision_bytes(b->precision), 1, b->memory),
        "uniform");
}

static void close_bench(bench *b)
{
    if (b->before != NULL)
        cudaEventDestroy(b->before);
    if (b->after != NULL)
        cudaEventDestroy(b->after);
    cudaFree(b->memory);
}

static hpct_status copy(const bench *b, double *work)
{
    size_t half = b->bytes / 2;
    *work = 2.0 * (double) half;
    return HPCT_CUDA(cudaMemcpyAsync(b->memory, b->memory + half, half, cudaMemcpyDeviceToDevice,
                                     hpct_cuda_gpu.stream));
}

/* The largest power of two for which three matrices fit. */
static hpct_status multiply(const bench *b, double *work)
{
    size_t number = hpct_backend_precision_bytes(b->precision), size = GEMM_SIZE;
    while (3 * size * size * number > b->bytes)
        size /= 2;
    const float one = 1, zero = 0;
    const char *x = b->memory, *y = x + size * size * number;
    char *z = b->memory + 2 * size * size * number;
    cudaDataType_t type = hpct_cuda_data_type(b->precision);
    int n = (int) size;
    *work = 2.0 * (double) size * (double) size * (double) size;
    return HPCT_CUDA_BLAS(cublasGemmEx(hpct_cuda_gpu.blas, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one,
                                       x, type, n, y, type, n, &zero, z, type, n,
                                       CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
}

/* Maximum rate, without the first run, which loads kernels. */
static hpct_status best_of(const bench *b, hpct_status (*run)(const bench *, double *),
                           double *rate)
{
    *rate = 0;
    for (int i = 0; i < RUNS + 1; i++) {
        double work = 0;
        float milliseconds = 0;
        HPCT_TRY(HPCT_CUDA(cudaEventRecord(b->before, hpct_cuda_gpu.stream)));
        HPCT_TRY(run(b, &work));
        HPCT_TRY(HPCT_CUDA(cudaEventRecord(b->after, hpct_cuda_gpu.stream)));
        HPCT_TRY(HPCT_CUDA(cudaEventSynchronize(b->after)));
        HPCT_TRY(HPCT_CUDA(cudaEventElapsedTime(&milliseconds, b->before, b->after)));
        double one = milliseconds > 0 ? work / (1e-3 * (double) milliseconds) : 0;
        if (i > 0 && one > *rate)
            *rate = one;
    }
    return HPCT_OK;
}

hpct_status hpct_cuda_measure(hpct_precision precision, hpct_backend_rates *rates)
{
    bench b = {.precision = precision};
    hpct_status status = open_bench(&b);
    if (status == HPCT_OK) /* before the copies: both halves contain values */
        status = best_of(&b, multiply, &rates->flops);
    if (status == HPCT_OK)
        status = best_of(&b, copy, &rates->bytes);
    close_bench(&b);
    return status;
}
