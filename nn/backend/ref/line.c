/* Operations with numbers per channel: Normalization, PReLU. */
#include "nn/backend/ref/kernels.h"

void HPCT_REF(normalization_forward)(size_t rows, size_t channels, const hpct_ref_real *line,
                                     const hpct_ref_real *src, hpct_ref_real *dst)
{
    for (size_t i = 0; i < rows * channels; i++) {
        const hpct_ref_real *mean = line + i % channels, *scale = mean + channels;
        dst[i] = (src[i] - *mean) * *scale + scale[channels];
    }
}

void HPCT_REF(normalization_backward)(size_t rows, size_t channels, const hpct_ref_real *line,
                                      const hpct_ref_real *diff_dst, hpct_ref_real *diff_src)
{
    for (size_t i = 0; i < rows * channels; i++)
        diff_src[i] = diff_dst[i] * line[channels + i % channels];
}

void HPCT_REF(prelu_forward)(int n, size_t size, size_t period, const hpct_ref_real *src,
                             const hpct_ref_real *alpha, hpct_ref_real *dst)
{
    for (size_t i = 0; i < (size_t) n * size; i++)
        dst[i] = src[i] > 0 ? src[i] : alpha[i % size % period] * src[i];
}

void HPCT_REF(prelu_backward)(int n, size_t size, size_t period, const hpct_ref_real *src,
                              const hpct_ref_real *alpha, const hpct_ref_real *diff_dst,
                              hpct_ref_real *diff_src, hpct_ref_real *diff_alpha)
{
    for (size_t a = 0; a < period; a++) {
        double sum = 0;
        for (size_t i = a; i < (size_t) n * size; i += period)
            sum += src[i] > 0 ? 0 : (double) src[i] * (double) diff_dst[i];
        diff_alpha[a] = (hpct_ref_real) sum;
    }
    for (size_t i = 0; diff_src != NULL && i < (size_t) n * size; i++)
        diff_src[i] = src[i] > 0 ? diff_dst[i] : alpha[i % size % period] * diff_dst[i];
}
