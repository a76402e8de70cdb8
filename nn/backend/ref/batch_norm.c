/* Batch normalization. */
#include "nn/backend/ref/kernels.h"

#include <math.h>

static double value_or(const hpct_ref_real *values, size_t at, double otherwise)
{
    return values != NULL ? (double) values[at] : otherwise;
}

void HPCT_REF(batch_norm_statistics)(size_t rows, size_t channels, const hpct_ref_real *src,
                                     hpct_ref_real *mean, hpct_ref_real *variance)
{
    for (size_t c = 0; c < channels; c++) {
        double sum = 0, squares = 0;
        for (size_t r = 0; r < rows; r++)
            sum += (double) src[r * channels + c];
        double middle = sum / (double) rows;
        for (size_t r = 0; r < rows; r++) {
            double off = (double) src[r * channels + c] - middle;
            squares += off * off;
        }
        mean[c] = (hpct_ref_real) middle;
        variance[c] = (hpct_ref_real) (squares / (double) rows);
    }
}

void HPCT_REF(batch_norm_forward)(size_t rows, size_t channels, double epsilon,
                                  const hpct_ref_real *src, const hpct_ref_real *mean,
                                  const hpct_ref_real *variance, const hpct_ref_real *gamma,
                                  const hpct_ref_real *beta, hpct_ref_real *dst)
{
    for (size_t i = 0; i < rows * channels; i++) {
        size_t c = i % channels;
        double hat = ((double) src[i] - (double) mean[c]) / sqrt((double) variance[c] + epsilon);
        dst[i] = (hpct_ref_real) (value_or(gamma, c, 1) * hat + value_or(beta, c, 0));
    }
}

void HPCT_REF(batch_norm_backward)(size_t rows, size_t channels, double epsilon,
                                   const hpct_ref_real *src, const hpct_ref_real *mean,
                                   const hpct_ref_real *variance, const hpct_ref_real *gamma,
                                   const hpct_ref_real *diff_dst, bool add, hpct_ref_real *diff_src,
                                   hpct_ref_real *diff_gamma, hpct_ref_real *diff_beta)
{
    for (size_t c = 0; c < channels; c++) {
        double inverse = 1 / sqrt((double) variance[c] + epsilon), sum = 0, sum_hat = 0;
        for (size_t r = 0; r < rows; r++) {
            double g = (double) diff_dst[r * channels + c];
            sum += g;
            sum_hat += g * ((double) src[r * channels + c] - (double) mean[c]) * inverse;
        }
        if (diff_gamma != NULL)
            diff_gamma[c] = (hpct_ref_real) sum_hat;
        if (diff_beta != NULL)
            diff_beta[c] = (hpct_ref_real) sum;
        for (size_t r = 0; diff_src != NULL && r < rows; r++) {
            size_t at = r * channels + c;
            double hat = ((double) src[at] - (double) mean[c]) * inverse;
            double change = (double) diff_dst[at] - (sum + hat * sum_hat) / (double) rows;
            change *= value_or(gamma, c, 1) * inverse;
            diff_src[at] = (hpct_ref_real) (change + (add ? (double) diff_src[at] : 0));
        }
    }
}

void HPCT_REF(batch_norm_move)(size_t channels, double momentum, const hpct_ref_real *batch,
                               hpct_ref_real *moving)
{
    for (size_t c = 0; c < channels; c++)
        moving[c] =
            (hpct_ref_real) (momentum * (double) moving[c] + (1 - momentum) * (double) batch[c]);
}
