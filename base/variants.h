/* base/variants.h - loops compiled once per instruction set, with run-time dispatch. A file of
 * loops defines HPCT_BODY, the header with the loops, and includes this; the body is included once
 * per set with
 *   HPCT_TARGET         function attribute that enables the instructions
 *   HPCT_VARIANT(name)  a name of its own
 *   HPCT_VARIANT_NAME   "avx512", "avx2", "base"
 *   HPCT_VARIANT_LANES  floats per register; GCC 12 keeps longer vectors in memory
 * and HPCT_VARIANT(supported)() tells whether this processor has it. HPCT_VARIANTS(name) lists the
 * variants of a name from the fastest to the generic one, then NULL. No include guard: included
 * once per file of loops. */
#include <stdbool.h>
#include <stddef.h>

#if defined(__x86_64__)

#define HPCT_VARIANTS(name) &name##_avx512, &name##_avx2, &name##_base, NULL

static bool supported_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("fma");
}
#ifdef __clang__ /* does not know the option, and would ignore the whole attribute */
#define HPCT_WIDE ""
#else
#define HPCT_WIDE ",prefer-vector-width=512"
#endif
#define HPCT_TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma" HPCT_WIDE)))
#define HPCT_VARIANT(name) name##_avx512
#define HPCT_VARIANT_NAME "avx512"
#define HPCT_VARIANT_LANES 16
#include HPCT_BODY
#undef HPCT_WIDE
#undef HPCT_TARGET
#undef HPCT_VARIANT
#undef HPCT_VARIANT_NAME
#undef HPCT_VARIANT_LANES

static bool supported_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#define HPCT_TARGET __attribute__((target("avx2,fma")))
#define HPCT_VARIANT(name) name##_avx2
#define HPCT_VARIANT_NAME "avx2"
#define HPCT_VARIANT_LANES 8
#include HPCT_BODY
#undef HPCT_TARGET
#undef HPCT_VARIANT
#undef HPCT_VARIANT_NAME
#undef HPCT_VARIANT_LANES

#else
#define HPCT_VARIANTS(name) &name##_base, NULL
#endif

static bool supported_base(void)
{
    return true;
}
#define HPCT_TARGET
#define HPCT_VARIANT(name) name##_base
#define HPCT_VARIANT_NAME "base"
#define HPCT_VARIANT_LANES 4
#include HPCT_BODY
#undef HPCT_TARGET
#undef HPCT_VARIANT
#undef HPCT_VARIANT_NAME
#undef HPCT_VARIANT_LANES
