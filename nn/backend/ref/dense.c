/* Dense, directly from its definition. */
#include "nn/backend/ref/kernels.h"

void HPCT_REF(dense_forward)(int rows, int in, int out, const hpct_ref_real *src,
                             const hpct_ref_real *kernel, const hpct_ref_real *bias,
                             hpct_ref_real *dst)
{
    size_t ins = (size_t) in, outs = (size_t) out;
    for (size_t r = 0; r < (size_t) rows; r++) {
        for (size_t o = 0; o < outs; o++) {
            double sum = bias != NULL ? (double) bias[o] : 0;
            for (size_t i = 0; i < ins; i++)
                sum += (double) src[r * ins + i] * (double) kernel[i * outs + o];
            dst[r * outs + o] = (hpct_ref_real) sum;
        }
    }
}

void HPCT_REF(dense_backward_data)(int rows, int in, int out, const hpct_ref_real *diff_dst,
                                   const hpct_ref_real *kernel, hpct_ref_real *diff_src)
{
    size_t ins = (size_t) in, outs = (size_t) out;
    for (size_t r = 0; r < (size_t) rows; r++) {
        for (size_t i = 0; i < ins; i++) {
            double sum = 0;
            for (size_t o = 0; o < outs; o++)
                sum += (double) diff_dst[r * outs + o] * (double) kernel[i * outs + o];
            diff_src[r * ins + i] = (hpct_ref_real) sum;
        }
    }
}

void HPCT_REF(dense_backward_weights)(int rows, int in, int out, const hpct_ref_real *src,
                                      const hpct_ref_real *diff_dst, hpct_ref_real *diff_kernel,
                                      hpct_ref_real *diff_bias)
{
    size_t ins = (size_t) in, outs = (size_t) out;
    for (size_t o = 0; o < outs; o++) {
        double bias = 0;
        for (size_t r = 0; r < (size_t) rows; r++)
            bias += (double) diff_dst[r * outs + o];
        if (diff_bias != NULL)
            diff_bias[o] = (hpct_ref_real) bias;
        for (size_t i = 0; i < ins; i++) {
            double sum = 0;
            for (size_t r = 0; r < (size_t) rows; r++)
                sum += (double) src[r * ins + i] * (double) diff_dst[r * outs + o];
            diff_kernel[i * outs + o] = (hpct_ref_real) sum;
        }
    }
}
