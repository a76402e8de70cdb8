/* Sustained rates of this process's threads. Unlike rates.c, whose best of some runs is a peak,
 * the mean over a time: a throttled core reaches its peak between the pauses, too. */
#include "base/process.h"
#include "base/progress.h"
#include "base/status.h"
#include "nn/backend/cpu/backend.h"
#include "nn/backend/cpu/cpu.h"
#include "nn/backend/cpu/loops.h"
#include "nn/backend/cpu/shim.h"

#include <stdlib.h>

#define SIZE ((size_t) 1024) /* of the matrices */
#define LEAST_FLOATS ((size_t) 1 << 16)

struct hpct_cpu_meter {
    float *matrices; /* [3][SIZE * SIZE] */
    float *arrays;   /* [3][floats] */
    size_t floats;   /* of each array */
};

static hpct_status multiply(const hpct_cpu_meter *m)
{
    const size_t all = SIZE * SIZE;
    const hpct_cpu_gemm gemm = {
        .trans_a = 'N',
        .trans_b = 'N',
        .m = SIZE,
        .n = SIZE,
        .k = SIZE,
        .alpha = 1,
        .a = m->matrices,
        .b = m->matrices + all,
        .c = m->matrices + 2 * all,
        .lda = SIZE,
        .ldb = SIZE,
        .ldc = SIZE,
    };
    return hpct_cpu_shim_gemm(&gemm);
}

/* STREAM's triad (McCalpin, "Memory bandwidth and machine balance", 1995). */
static void triad_part(size_t first, size_t count, void *arg)
{
    const hpct_cpu_meter *m = arg;
    float *restrict a = m->arrays + first;
    const float *restrict b = m->arrays + m->floats + first, *restrict c =
                                                                 m->arrays + 2 * m->floats + first;
    for (size_t i = 0; i < count; i++)
        a[i] = b[i] + 3 * c[i];
}

static hpct_status triad(const hpct_cpu_meter *m)
{
    hpct_cpu_loops_split(m->floats, 4096, triad_part, (void *) (uintptr_t) m);
    return HPCT_OK;
}

/* Repeats it for that long, at least once: `work` each, per second. */
static hpct_status repeat(const hpct_cpu_meter *m, hpct_status (*once)(const hpct_cpu_meter *),
                          double work, double seconds, double *rate)
{
    double began = hpct_process_clock(), passed = 0, all = 0;
    while (passed < seconds) {
        HPCT_TRY(once(m));
        hpct_count_progress();
        all += work;
        passed = hpct_process_clock() - began;
    }
    *rate = all / passed;
    return HPCT_OK;
}

hpct_status hpct_cpu_meter_run(hpct_cpu_meter *m, double seconds, hpct_backend_rates *rates)
{
    HPCT_TRY(repeat(m, multiply, 2.0 * SIZE * SIZE * SIZE, seconds, &rates->flops));
    return repeat(m, triad, 3.0 * (double) (m->floats * sizeof *m->arrays), seconds / 2,
                  &rates->bytes);
}

static void fill_part(size_t first, size_t count, void *arg)
{
    float *data = arg;
    for (size_t i = first; i < first + count; i++)
        data[i] = (float) (i % 17) * 0.01f;
}

hpct_status hpct_cpu_meter_open(hpct_cpu_meter **out, size_t bytes)
{
    hpct_cpu_meter *m = calloc(1, sizeof *m);
    size_t matrices = 3 * SIZE * SIZE;
    if (m == NULL)
        return hpct_fail_memory(sizeof *m);
    m->floats = bytes / (3 * sizeof *m->arrays) / HPCT_CPU_LANES * HPCT_CPU_LANES;
    m->floats = m->floats > LEAST_FLOATS ? m->floats : LEAST_FLOATS;
    m->matrices = hpct_backend_host_allocate(matrices * sizeof *m->matrices);
    m->arrays = hpct_backend_host_allocate(3 * m->floats * sizeof *m->arrays);
    if (m->matrices == NULL || m->arrays == NULL) {
        hpct_cpu_meter_close(m);
        return hpct_fail_memory(bytes);
    }
    hpct_cpu_loops_split(matrices, 4096, fill_part, m->matrices);
    hpct_cpu_loops_split(3 * m->floats, 4096, fill_part, m->arrays);
    hpct_status status = multiply(m); /* creates oneDNN's kernel */
    if (status == HPCT_OK)
        *out = m;
    else
        hpct_cpu_meter_close(m);
    return status;
}

void hpct_cpu_meter_close(hpct_cpu_meter *m)
{
    if (m == NULL)
        return;
    if (m->matrices != NULL)
        hpct_backend_host_release(m->matrices);
    if (m->arrays != NULL)
        hpct_backend_host_release(m->arrays);
    free(m);
}
