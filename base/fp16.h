/* base/fp16.h - conversion between IEEE half precision and fp32 with integer operations, which
 * vectorize on any processor. */
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

/* fp16 has 5 exponent bits (bias 15) and 10 fraction bits; fp32 8 (bias 127) and 23. Rounds to
 * nearest even; infinity from 65520; NaN stays NaN. */
__attribute__((always_inline)) static inline uint16_t hpct_fp16_of(float x)
{
    uint32_t bits = hpct_float_bits(x), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    /* normal numbers: adjust the bias and round the fraction to 10 bits */
    uint32_t normal = (size - (112U << 23) + 0xfff + (size >> 13 & 1)) >> 13;
    /* subnormals, below 2^-14, are multiples of 2^-24, as fp32's from 1/2 on: the addition rounds
     */
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
