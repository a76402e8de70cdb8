/* ReLU and softmax. */
#include "nn/ref/kernels.h"

#include <math.h>

void HPCT_REF(relu_forward)(size_t count, const hpct_real *src, hpct_real *dst)
{
    for (size_t i = 0; i < count; i++)
        dst[i] = src[i] > 0 ? src[i] : 0;
}

void HPCT_REF(relu_backward)(size_t count, const hpct_real *dst, const hpct_real *diff_dst,
                             hpct_real *diff_src)
{
    for (size_t i = 0; i < count; i++)
        diff_src[i] = dst[i] > 0 ? diff_dst[i] : 0;
}

void HPCT_REF(softmax_forward)(int rows, int size, const hpct_real *src, hpct_real *dst)
{
    for (int r = 0; r < rows; r++, src += size, dst += size) {
        double top = (double) src[0], sum = 0;
        for (int i = 1; i < size; i++)
            top = fmax(top, (double) src[i]);
        for (int i = 0; i < size; i++)
            sum += exp((double) src[i] - top);
        for (int i = 0; i < size; i++)
            dst[i] = (hpct_real) (exp((double) src[i] - top) / sum);
    }
}

void HPCT_REF(softmax_backward)(int rows, int size, const hpct_real *dst, const hpct_real *diff_dst,
                                hpct_real *diff_src)
{
    for (int r = 0; r < rows; r++, dst += size, diff_dst += size, diff_src += size) {
        double dot = 0;
        for (int i = 0; i < size; i++)
            dot += (double) diff_dst[i] * (double) dst[i];
        for (int i = 0; i < size; i++)
            diff_src[i] = (hpct_real) ((double) dst[i] * ((double) diff_dst[i] - dot));
    }
}
