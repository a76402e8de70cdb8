/* Dropout, element by element. Forward and backward are the same. */
#include "nn/backend/ref/kernels.h"

void HPCT_REF(dropout)(const hpct_dropout *dropout, int first_sample, int n, size_t size,
                       const hpct_real *src, hpct_real *dst)
{
    for (int s = 0; s < n; s++) {
        for (size_t e = 0; e < size; e++, src++, dst++) {
            uint32_t words[4];
            size_t block = e / HPCT_DROPOUT_GROUP * HPCT_DROPOUT_LANES + e % HPCT_DROPOUT_LANES;
            hpct_draw_words(&dropout->draw, (uint32_t) (first_sample + s), (uint32_t) block, words);
            bool keep = words[e / HPCT_DROPOUT_LANES % 4] >= dropout->threshold;
            *dst = keep ? *src * (hpct_real) dropout->scale : 0;
        }
    }
}

void HPCT_REF(sample_dropout)(const hpct_dropout *dropout, int first_sample, int n, size_t size,
                              const hpct_real *src, hpct_real *dst)
{
    for (int s = 0; s < n; s++) {
        hpct_real factor = (hpct_real) hpct_dropout_factor(dropout, (uint32_t) (first_sample + s));
        for (size_t e = 0; e < size; e++)
            *dst++ = *src++ * factor;
    }
}
