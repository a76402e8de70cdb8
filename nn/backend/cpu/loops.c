/* The loops for each instruction set, their choice, and distribution of work over threads. */
#include "nn/backend/cpu/loops.h"

#include "nn/backend/cpu/shim.h"

#include <math.h>
#include <omp.h>
#include <string.h>

_Static_assert(HPCT_BACKEND_DROPOUT_LANES % 16 == 0 && HPCT_CPU_LANES % 16 == 0,
               "whole vectors everywhere");

#ifdef __clang__
#define HPCT_UNROLL _Pragma("unroll")
#else
#define HPCT_UNROLL _Pragma("GCC unroll 16")
#endif

#define HPCT_BODY "nn/backend/cpu/loops_body.h"
#include "base/variants.h"

const hpct_cpu_loops *const hpct_cpu_loops_variants[] = {HPCT_VARIANTS(loops)};

const hpct_cpu_loops *hpct_cpu_loops_best(void)
{
    static const hpct_cpu_loops *chosen; /* a race is harmless: every thread chooses the same */
    const hpct_cpu_loops *found = __atomic_load_n(&chosen, __ATOMIC_RELAXED);
    if (found != NULL)
        return found;
    for (int i = 0; found == NULL; i++) {
        const hpct_cpu_loops *one = hpct_cpu_loops_variants[i];
        bool last = hpct_cpu_loops_variants[i + 1] == NULL;
        if (last || (one->supported() && one->lanes <= hpct_cpu_shim_lanes()))
            found = one;
    }
    __atomic_store_n(&chosen, found, __ATOMIC_RELAXED);
    return found;
}

void hpct_cpu_loops_split(size_t total, size_t least,
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

void hpct_cpu_loops_each(size_t count, void (*body)(size_t index, void *arg), void *arg)
{
#pragma omp parallel for schedule(dynamic, 1)
    for (size_t i = 0; i < count; i++)
        body(i, arg);
}
