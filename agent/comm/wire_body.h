/* Loops of wire.c, once for each instruction set (base/variants.h). */

HPCT_TARGET static void HPCT_VARIANT(to_bf16)(size_t count, const float *src, float factor,
                                              uint16_t *dst)
{
    (void) factor;
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = bits_of(src[i]);
        uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
        uint32_t none = bits >> 16 | 0x40; /* not a number stays none */
        dst[i] = (uint16_t) ((bits & 0x7fffffff) > 0x7f800000 ? none : rounded);
    }
}

HPCT_TARGET static void HPCT_VARIANT(of_bf16)(size_t count, const uint16_t *src, float factor,
                                              float *dst)
{
    (void) factor;
    for (size_t i = 0; i < count; i++)
        dst[i] = float_of((uint32_t) src[i] << 16);
}

HPCT_TARGET static void HPCT_VARIANT(add_bf16)(size_t count, const uint16_t *src, float factor,
                                               float *dst)
{
    (void) factor;
    for (size_t i = 0; i < count; i++)
        dst[i] += float_of((uint32_t) src[i] << 16);
}

/* fp16 has 5 bits of exponent (bias 15) and 10 of fraction; fp32 8 (bias 127) and 23. */
HPCT_TARGET static void HPCT_VARIANT(to_fp16)(size_t count, const float *src, float factor,
                                              uint16_t *dst)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = bits_of(src[i] * factor), sign = bits >> 16 & 0x8000;
        uint32_t size = bits & 0x7fffffff;
        /* exponents that fp16 has: its bias instead, and the fraction rounded to 10 bits */
        uint32_t normal = (size - (112U << 23) + 0xfff + (size >> 13 & 1)) >> 13;
        /* below 2^-14 steps are of 2^-24, as those of fp32 are from 1/2 on: adding rounds */
        uint32_t small = bits_of(float_of(size) + 0.5f) - bits_of(0.5f);
        uint32_t special = size > 0x7f800000 ? 0x7e00 : 0x7c00;
        uint32_t value = size < 113U << 23 ? small : normal;
        dst[i] = (uint16_t) (sign | (size >= 143U << 23 ? special : value));
    }
}

HPCT_TARGET static inline float HPCT_VARIANT(fp16_value)(uint16_t half)
{
    uint32_t size = (uint32_t) (half & 0x7fff) << 13, sign = (uint32_t) (half & 0x8000) << 16;
    float normal = float_of(size + (112U << 23));
    float small = float_of(size + (113U << 23)) - float_of(113U << 23);
    float special = float_of(size + (224U << 23));
    float value = size < 1U << 23 ? small : normal;
    value = size >= 31U << 23 ? special : value;
    return float_of(bits_of(value) | sign);
}

HPCT_TARGET static void HPCT_VARIANT(of_fp16)(size_t count, const uint16_t *src, float factor,
                                              float *dst)
{
    for (size_t i = 0; i < count; i++)
        dst[i] = HPCT_VARIANT(fp16_value)(src[i]) * factor;
}

HPCT_TARGET static void HPCT_VARIANT(add_fp16)(size_t count, const uint16_t *src, float factor,
                                               float *dst)
{
    for (size_t i = 0; i < count; i++)
        dst[i] += HPCT_VARIANT(fp16_value)(src[i]) * factor;
}

/* The bits of a number's size grow with it; those of what is no number are above all. */
HPCT_TARGET static uint32_t HPCT_VARIANT(largest)(size_t count, const float *src)
{
    uint32_t largest = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t size = bits_of(src[i]) & 0x7fffffff;
        largest = size > largest ? size : largest;
    }
    return largest;
}

HPCT_TARGET static void HPCT_VARIANT(add)(size_t count, const float *src, float *dst)
{
    for (size_t i = 0; i < count; i++)
        dst[i] += src[i];
}

static const loops HPCT_VARIANT(all) = {
    .supported = HPCT_VARIANT(supported),
    .encode = {[HPCT_WIRE_BF16] = HPCT_VARIANT(to_bf16), [HPCT_WIRE_FP16] = HPCT_VARIANT(to_fp16)},
    .decode = {[HPCT_WIRE_BF16] = HPCT_VARIANT(of_bf16), [HPCT_WIRE_FP16] = HPCT_VARIANT(of_fp16)},
    .add = {[HPCT_WIRE_BF16] = HPCT_VARIANT(add_bf16), [HPCT_WIRE_FP16] = HPCT_VARIANT(add_fp16)},
    .largest = HPCT_VARIANT(largest),
    .sum = HPCT_VARIANT(add),
};
