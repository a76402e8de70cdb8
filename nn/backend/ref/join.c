/* Sums and concatenations. */
#include "nn/backend/ref/kernels.h"

#include <string.h>

void HPCT_REF(add_forward)(size_t count, int num, const hpct_real *const *src, hpct_real *dst)
{
    for (size_t i = 0; i < count; i++) {
        double sum = 0;
        for (int k = 0; k < num; k++)
            sum += (double) src[k][i];
        dst[i] = (hpct_real) sum;
    }
}

void HPCT_REF(add_to)(size_t count, const hpct_real *src, hpct_real *dst)
{
    for (size_t i = 0; i < count; i++)
        dst[i] += src[i];
}

void HPCT_REF(scale)(size_t count, hpct_real factor, hpct_real *dst)
{
    for (size_t i = 0; i < count; i++)
        dst[i] *= factor;
}

void HPCT_REF(concatenate_forward)(size_t rows, int num, const int *size,
                                   const hpct_real *const *src, hpct_real *dst)
{
    for (size_t r = 0; r < rows; r++) {
        for (int k = 0; k < num; k++) {
            size_t count = (size_t) size[k];
            memcpy(dst, src[k] + r * count, count * sizeof *dst);
            dst += count;
        }
    }
}

void HPCT_REF(concatenate_backward)(size_t rows, int num, const int *size, int which,
                                    const hpct_real *diff_dst, bool add, hpct_real *diff_src)
{
    size_t whole = 0, before = 0, count = (size_t) size[which];
    for (int k = 0; k < num; k++) {
        before += k < which ? (size_t) size[k] : 0;
        whole += (size_t) size[k];
    }
    for (size_t r = 0; r < rows; r++) {
        for (size_t i = 0; i < count; i++) {
            hpct_real part = diff_dst[r * whole + before + i];
            diff_src[r * count + i] = add ? diff_src[r * count + i] + part : part;
        }
    }
}
