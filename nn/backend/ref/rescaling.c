/* Rescaling. */
#include "nn/backend/ref/kernels.h"

void HPCT_REF(rescaling)(size_t count, hpct_ref_real scale, hpct_ref_real offset,
                         const hpct_ref_real *src, hpct_ref_real *dst)
{
    for (size_t i = 0; i < count; i++)
        dst[i] = src[i] * scale + offset;
}
