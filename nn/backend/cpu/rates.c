/* Peak rates of the cores: the product of two large matrices, and copying beyond the caches' size;
 * the best of some runs each, as other processes only slow them down. */
#include "nn/backend/cpu/cpu.h"

#include "base/process.h"
#include "base/status.h"
#include "nn/backend/cpu/bf16.h"
#include "nn/backend/cpu/loops.h"
#include "nn/backend/cpu/shim.h"

#include <string.h>

#define GEMM_SIZE 2048
#define COPY_BYTES ((size_t) 256 << 20)
#define RUNS 5

typedef struct copy {
    const char *src;
    char *dst;
} copy;

static void copy_part(size_t first, size_t count, void *arg)
{
    const copy *c = arg;
    memcpy(c->dst + first, c->src + first, count);
}

static void note(double began, double *rate)
{
    double one = 2.0 * GEMM_SIZE * GEMM_SIZE * GEMM_SIZE / (hpct_process_clock() - began);
    *rate = one > *rate ? one : *rate;
}

static hpct_status measure_gemm(float *memory, double *rate)
{
    size_t size = (size_t) GEMM_SIZE * GEMM_SIZE;
    hpct_cpu_gemm gemm = {
        .trans_a = 'N',
        .trans_b = 'N',
        .m = GEMM_SIZE,
        .n = GEMM_SIZE,
        .k = GEMM_SIZE,
        .alpha = 1,
        .a = memory,
        .b = memory + size,
        .c = memory + 2 * size,
        .lda = GEMM_SIZE,
        .ldb = GEMM_SIZE,
        .ldc = GEMM_SIZE,
    };
    for (size_t i = 0; i < 2 * size; i++)
        memory[i] = (float) (i % 17) * 0.01f;
    hpct_status status = HPCT_OK;
    *rate = 0;
    for (int i = 0; i < RUNS + 1 && status == HPCT_OK; i++) { /* the first run warms up oneDNN */
        double began = hpct_process_clock();
        status = hpct_cpu_shim_gemm(&gemm);
        note(began, rate);
    }
    return status;
}

static hpct_status measure_bf16(float *memory, double *rate)
{
    size_t size = (size_t) GEMM_SIZE * GEMM_SIZE;
    hpct_cpu_product product = {.type = HPCT_BF16, .m = GEMM_SIZE, .n = GEMM_SIZE, .k = GEMM_SIZE};
    hpct_cpu_prim *prim = NULL;
    void *a = memory, *b = memory + size, *c = memory + 2 * size, *scratch = memory + 3 * size;
    for (size_t i = 0; i < size; i++)
        memory[2 * size + i] = (float) (i % 17) * 0.01f;
    hpct_cpu_to_bf16(size, c, a);
    hpct_cpu_to_bf16(size, c, b);
    hpct_status status = hpct_cpu_shim_product(&prim, &product);
    if (status == HPCT_OK &&
        hpct_cpu_prim_scratch_bytes(prim) > COPY_BYTES - 3 * size * sizeof(float))
        status = hpct_fail_memory(hpct_cpu_prim_scratch_bytes(prim));
    *rate = 0;
    for (int i = 0; i < RUNS + 1 && status == HPCT_OK; i++) {
        double began = hpct_process_clock();
        status = hpct_cpu_prim_execute(prim, scratch, (void *[]){a, b, c});
        note(began, rate);
    }
    hpct_cpu_prim_free(prim);
    return status;
}

hpct_status hpct_cpu_measure(hpct_precision precision, hpct_backend_rates *rates)
{
    copy c = {.src = hpct_backend_host_allocate(COPY_BYTES),
              .dst = hpct_backend_host_allocate(COPY_BYTES)};
    hpct_status status = HPCT_OK;
    rates->bytes = 0;
    if (c.src == NULL || c.dst == NULL)
        status = hpct_fail_memory(2 * COPY_BYTES);
    for (int i = 0; i < RUNS && status == HPCT_OK; i++) {
        double began = hpct_process_clock();
        hpct_cpu_loops_split(COPY_BYTES, 4096, copy_part, &c);
        double one = 2.0 * (double) COPY_BYTES / (hpct_process_clock() - began);
        rates->bytes = one > rates->bytes ? one : rates->bytes;
    }
    if (status == HPCT_OK)
        status = (precision == HPCT_BF16 ? measure_bf16 : measure_gemm)((float *) (void *) c.dst,
                                                                        &rates->flops);
    hpct_backend_host_release((void *) (uintptr_t) c.src);
    hpct_backend_host_release(c.dst);
    return status;
}
