/* tests/gpu_without/machine/numbers.h - numbers of the libraries' types, in memory of a device. */
#ifndef HPCT_TESTS_GPU_WITHOUT_MACHINE_NUMBERS_H
#define HPCT_TESTS_GPU_WITHOUT_MACHINE_NUMBERS_H

#include "tests/gpu_without/machine/machine.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <string.h>

namespace emulated
{

/* Of a function whose loops are long: compiled for wide vectors, too. */
#if defined __x86_64__ && defined __gnu_linux__
#define HPCT_FOR_EACH_CPU __attribute__((target_clones("avx2", "default")))
#else
#define HPCT_FOR_EACH_CPU
#endif

enum number { FP32, BF16, FP16 };

inline size_t bytes_of(number type)
{
    return type == FP32 ? 4 : 2;
}

/* The `count` numbers from number `at` on. */
inline void read(const void *from, number type, size_t at, size_t count, float *to)
{
    const __nv_bfloat16 *bf16 = (const __nv_bfloat16 *) from + at;
    const __half *fp16 = (const __half *) from + at;
    if (type == FP32)
        memcpy(to, (const float *) from + at, count * sizeof *to);
    for (size_t i = 0; i < count && type == BF16; i++)
        to[i] = __bfloat162float(bf16[i]);
    for (size_t i = 0; i < count && type == FP16; i++)
        to[i] = __half2float(fp16[i]);
}

inline float read(const void *from, number type, size_t at)
{
    switch (type) {
    case FP32:
        return ((const float *) from)[at];
    case BF16:
        return __bfloat162float(((const __nv_bfloat16 *) from)[at]);
    default:
        return __half2float(((const __half *) from)[at]);
    }
}

inline void write(void *to, number type, size_t at, float value)
{
    switch (type) {
    case FP32:
        ((float *) to)[at] = value;
        break;
    case BF16:
        ((__nv_bfloat16 *) to)[at] = __float2bfloat16_rn(value);
        break;
    default:
        ((__half *) to)[at] = __float2half_rn(value);
    }
}

inline void write(void *to, number type, size_t at, size_t count, const float *from)
{
    if (type == FP32)
        memcpy((float *) to + at, from, count * sizeof *from);
    for (size_t i = 0; i < count && type != FP32; i++)
        write(to, type, at + i, from[i]);
}

/* to += factor times from */
inline void add(size_t count, float factor, const float *__restrict from, float *__restrict to)
{
    for (size_t i = 0; i < count; i++)
        to[i] += factor * from[i];
}

} // namespace emulated

#endif
