/* Dropout, element by element. Forward and backward are the same. */
#include "nn/backend/ref/kernels.h"

static bool keeps(const hpct_backend_dropout *dropout, uint32_t sample, size_t e)
{
    uint32_t words[4];
    size_t block = e / HPCT_BACKEND_DROPOUT_GROUP * HPCT_BACKEND_DROPOUT_LANES +
                   e % HPCT_BACKEND_DROPOUT_LANES;
    hpct_graph_draw_words(&dropout->draw, sample, (uint32_t) block, words);
    return words[e / HPCT_BACKEND_DROPOUT_LANES % 4] >= dropout->threshold;
}

void HPCT_REF(dropout)(const hpct_backend_dropout *dropout, int first_sample, int n, size_t rows,
                       size_t size, const hpct_ref_real *src, hpct_ref_real *dst)
{
    for (int s = 0; s < n; s++)
        for (size_t i = 0; i < rows * size; i++, src++, dst++)
            *dst = keeps(dropout, (uint32_t) (first_sample + s), i % size)
                       ? *src * (hpct_ref_real) dropout->scale
                       : 0;
}
