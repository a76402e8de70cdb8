/* base/fp16.h - IEEE half precision in 16 bits, to and from fp32: in integers, so that loops of it
 * become vectors on any processor. */
#ifndef HPCT_BASE_FP16_H
#define HPCT_BASE_FP16_H

#include <stdint.h>
#include <string.h>

static inline uint32_t hpct_float_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float hpct_float_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* fp16 has 5 bits of exponent (bias 15) and 10 of fraction; fp32 8 (bias 127) and 23. Rounds to the
 * nearest, ties to even; infinity from 65520 on; what is not a number stays none. */
__attribute__((always_inline)) static inline uint16_t hpct_fp16_of(float x)
{
    uint32_t bits = hpct_float_bits(x), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    /* exponents that fp16 has: its bias instead, and the fraction rounded to 10 bits */
    uint32_t normal = (size - (112U << 23) + 0xfff + (size >> 13 & 1)) >> 13;
    /* below 2^-14 steps are of 2^-24, as those of fp32 are from 1/2 on: adding rounds */
    uint32_t small = hpct_float_bits(hpct_float_of_bits(size) + 0.5f) - hpct_float_bits(0.5f);
    uint32_t special = size > 0x7f800000 ? 0x7e00 : 0x7c00;
    uint32_t value = size < 113U << 23 ? small : normal;
    return (uint16_t) (sign | (size >= 143U << 23 ? special : value));
}

__attribute__((always_inline)) static inline float hpct_fp16_value(uint16_t half)
{
    uint32_t size = (uint32_t) (half & 0x7fff) << 13, sign = (uint32_t) (half & 0x8000) << 16;
    float normal = hpct_float_of_bits(size + (112U << 23));
    float small = hpct_float_of_bits(size + (113U << 23)) - hpct_float_of_bits(113U << 23);
    float special = hpct_float_of_bits(size + (224U << 23));
    float value = size < 1U << 23 ? small : normal;
    value = size >= 31U << 23 ? special : value;
    return hpct_float_of_bits(hpct_float_bits(value) | sign);
}

#endif
