/* The loops for each instruction set, the choice between them, and splitting work over threads. */
#include "nn/cpu/loops.h"

#include <math.h>
#include <omp.h>
#include <string.h>

_Static_assert(HPCT_DROPOUT_LANES == HPCT_LANES, "a group of draws is a vector");

#ifdef __clang__
#define HPCT_UNROLL _Pragma("unroll")
#else
#define HPCT_UNROLL _Pragma("GCC unroll 16")
#endif

#if defined(__x86_64__)

static bool supported_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma");
}
#define HPCT_TARGET __attribute__((target("avx512f,avx512dq,avx512vl,fma")))
#define HPCT_VARIANT(name) name##_avx512
#define HPCT_VARIANT_NAME "avx512"
#include "nn/cpu/loops_body.h"

static bool supported_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#define HPCT_TARGET __attribute__((target("avx2,fma")))
#define HPCT_VARIANT(name) name##_avx2
#define HPCT_VARIANT_NAME "avx2"
#include "nn/cpu/loops_body.h"

#endif

static bool supported_base(void)
{
    return true;
}
#define HPCT_TARGET
#define HPCT_VARIANT(name) name##_base
#define HPCT_VARIANT_NAME "base"
#include "nn/cpu/loops_body.h"

const hpct_loops *const hpct_loops_variants[] = {
#if defined(__x86_64__)
    &loops_avx512,
    &loops_avx2,
#endif
    &loops_base,
    NULL,
};

const hpct_loops *hpct_loops_best(void)
{
    int i = 0;
    while (!hpct_loops_variants[i]->supported())
        i++;
    return hpct_loops_variants[i];
}

void hpct_loops_split(size_t total, size_t least,
                      void (*body)(size_t first, size_t count, void *arg), void *arg)
{
    size_t parts = (size_t) omp_get_max_threads();
    if (total / least < parts)
        parts = total / least > 0 ? total / least : 1;
    if (parts == 1) {
        body(0, total, arg);
        return;
    }
#pragma omp parallel for schedule(static) num_threads((int) parts)
    for (size_t part = 0; part < parts; part++) {
        size_t first = total * part / parts, end = total * (part + 1) / parts;
        body(first, end - first, arg);
    }
}

void hpct_loops_each(size_t count, void (*body)(size_t index, void *arg), void *arg)
{
#pragma omp parallel for schedule(dynamic, 1)
    for (size_t i = 0; i < count; i++)
        body(i, arg);
}
