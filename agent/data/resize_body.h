/* agent/data/resize_body.h - the loops of resize.c, included once for each instruction set by
 * base/variants.h. */

HPCT_TARGET static void HPCT_VARIANT(widen)(size_t count, const uint8_t *restrict src, float factor,
                                            float offset, float *restrict dst)
{
#pragma omp simd
    for (size_t i = 0; i < count; i++)
        dst[i] = (float) src[i] * factor + offset;
}

HPCT_TARGET static void HPCT_VARIANT(columns)(size_t count, const float *restrict src,
                                              const int32_t *restrict low,
                                              const int32_t *restrict high,
                                              const float *restrict weight, float *restrict dst)
{
#pragma omp simd
    for (size_t i = 0; i < count; i++)
        dst[i] = src[low[i]] + (src[high[i]] - src[low[i]]) * weight[i];
}

HPCT_TARGET static void HPCT_VARIANT(rows)(size_t count, const float *restrict a,
                                           const float *restrict b, float weight,
                                           float *restrict dst)
{
#pragma omp simd
    for (size_t i = 0; i < count; i++)
        dst[i] = a[i] + (b[i] - a[i]) * weight;
}

static const hpct_data_resize_loops HPCT_VARIANT(loops) = {
    HPCT_VARIANT_NAME,     HPCT_VARIANT(supported), HPCT_VARIANT(widen),
    HPCT_VARIANT(columns), HPCT_VARIANT(rows),
};
