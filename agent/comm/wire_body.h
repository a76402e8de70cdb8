/* Loops of wire.c, once for each instruction set (base/variants.h). */

HPCT_TARGET static void HPCT_VARIANT(to_bf16)(size_t count, const float *src, float factor,
                                              uint16_t *dst)
{
    (void) factor;
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = hpct_float_bits(src[i]);
        uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
        uint32_t none = bits >> 16 | 0x40; /* NaN stays NaN */
        dst[i] = (uint16_t) ((bits & 0x7fffffff) > 0x7f800000 ? none : rounded);
    }
}

HPCT_TARGET static void HPCT_VARIANT(of_bf16)(size_t count, const uint16_t *src, float factor,
                                              float *dst)
{
    (void) factor;
    for (size_t i = 0; i < count; i++)
        dst[i] = hpct_float_of_bits((uint32_t) src[i] << 16);
}

HPCT_TARGET static void HPCT_VARIANT(add_bf16)(size_t count, const uint16_t *src, float factor,
                                               float *dst)
{
    (void) factor;
    for (size_t i = 0; i < count; i++)
        dst[i] += hpct_float_of_bits((uint32_t) src[i] << 16);
}

HPCT_TARGET static void HPCT_VARIANT(to_fp16)(size_t count, const float *src, float factor,
                                              uint16_t *dst)
{
    for (size_t i = 0; i < count; i++)
        dst[i] = hpct_fp16_of(src[i] * factor);
}

HPCT_TARGET static void HPCT_VARIANT(of_fp16)(size_t count, const uint16_t *src, float factor,
                                              float *dst)
{
    for (size_t i = 0; i < count; i++)
        dst[i] = hpct_fp16_value(src[i]) * factor;
}

HPCT_TARGET static void HPCT_VARIANT(add_fp16)(size_t count, const uint16_t *src, float factor,
                                               float *dst)
{
    for (size_t i = 0; i < count; i++)
        dst[i] += hpct_fp16_value(src[i]) * factor;
}

/* Magnitudes order like their bits; NaN is above all. */
HPCT_TARGET static uint32_t HPCT_VARIANT(largest)(size_t count, const float *src)
{
    uint32_t largest = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t size = hpct_float_bits(src[i]) & 0x7fffffff;
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
