/* LayerNormalization and GroupNormalization: statistics of the groups of each row. */
#include "nn/backend/ref/kernels.h"

#include <math.h>

/* One group of channels in one row. */
typedef struct group {
    size_t at;       /* of its first element */
    size_t channel;  /* its first channel */
    size_t channels; /* of it */
    size_t step;     /* between its cells */
    size_t cells;
} group;

static group group_of(const hpct_op_spec *spec, size_t index)
{
    size_t groups = (size_t) spec->group.groups, channels = (size_t) spec->group.channels;
    group g = {.channels = channels / groups, .step = channels};
    g.cells = (size_t) spec->group.cells;
    g.channel = index % groups * g.channels;
    g.at = index / groups * g.cells * channels + g.channel;
    return g;
}

static size_t num_groups(const hpct_op_spec *spec, int n)
{
    return (size_t) n * (size_t) spec->group.rows * (size_t) spec->group.groups;
}

static double value_or(const hpct_ref_real *values, size_t index, double fallback)
{
    return values != NULL ? (double) values[index] : fallback;
}

void HPCT_REF(group_norm_statistics)(const hpct_op_spec *spec, int n, const hpct_ref_real *src,
                                     hpct_ref_real *mean, hpct_ref_real *variance)
{
    for (size_t i = 0; i < num_groups(spec, n); i++) {
        group g = group_of(spec, i);
        double sum = 0, squares = 0, count = (double) (g.cells * g.channels);
        for (size_t k = 0; k < g.cells; k++)
            for (size_t c = 0; c < g.channels; c++)
                sum += (double) src[g.at + k * g.step + c];
        for (size_t k = 0; k < g.cells; k++) {
            for (size_t c = 0; c < g.channels; c++) {
                double distance = (double) src[g.at + k * g.step + c] - sum / count;
                squares += distance * distance;
            }
        }
        mean[i] = (hpct_ref_real) (sum / count);
        variance[i] = (hpct_ref_real) (squares / count);
    }
}

void HPCT_REF(group_norm_forward)(const hpct_op_spec *spec, int n, const hpct_ref_real *src,
                                  const hpct_ref_real *mean, const hpct_ref_real *variance,
                                  const hpct_ref_real *gamma, const hpct_ref_real *beta,
                                  hpct_ref_real *dst)
{
    for (size_t i = 0; i < num_groups(spec, n); i++) {
        group g = group_of(spec, i);
        double inverse = 1 / sqrt((double) variance[i] + (double) spec->group.epsilon);
        for (size_t k = 0; k < g.cells; k++) {
            for (size_t c = 0; c < g.channels; c++) {
                size_t at = g.at + k * g.step + c;
                double hat = ((double) src[at] - (double) mean[i]) * inverse;
                dst[at] = (hpct_ref_real) (hat * value_or(gamma, g.channel + c, 1) +
                                           value_or(beta, g.channel + c, 0));
            }
        }
    }
}

/* Sums over all rows and cells. */
static void sum_params(const hpct_op_spec *spec, int n, const hpct_ref_real *src,
                       const hpct_ref_real *mean, const hpct_ref_real *variance,
                       const hpct_ref_real *diff_dst, hpct_ref_real *diff_gamma,
                       hpct_ref_real *diff_beta)
{
    size_t groups = (size_t) spec->group.groups, width = (size_t) spec->group.channels / groups;
    for (size_t channel = 0; channel < groups * width; channel++) {
        double sum = 0, sum_hat = 0;
        for (size_t i = channel / width; i < num_groups(spec, n); i += groups) {
            group g = group_of(spec, i);
            double inverse = 1 / sqrt((double) variance[i] + (double) spec->group.epsilon);
            for (size_t k = 0; k < g.cells; k++) {
                size_t at = g.at + k * g.step + channel % width;
                sum += (double) diff_dst[at];
                sum_hat += (double) diff_dst[at] * ((double) src[at] - (double) mean[i]) * inverse;
            }
        }
        if (diff_gamma != NULL)
            diff_gamma[channel] = (hpct_ref_real) sum_hat;
        if (diff_beta != NULL)
            diff_beta[channel] = (hpct_ref_real) sum;
    }
}

void HPCT_REF(group_norm_backward)(const hpct_op_spec *spec, int n, const hpct_ref_real *src,
                                   const hpct_ref_real *mean, const hpct_ref_real *variance,
                                   const hpct_ref_real *gamma, const hpct_ref_real *diff_dst,
                                   bool add, hpct_ref_real *diff_src, hpct_ref_real *diff_gamma,
                                   hpct_ref_real *diff_beta)
{
    sum_params(spec, n, src, mean, variance, diff_dst, diff_gamma, diff_beta);
    for (size_t i = 0; diff_src != NULL && i < num_groups(spec, n); i++) {
        group g = group_of(spec, i);
        double inverse = 1 / sqrt((double) variance[i] + (double) spec->group.epsilon);
        double sum = 0, sum_hat = 0, count = (double) (g.cells * g.channels);
        for (size_t e = 0; e < g.cells * g.channels; e++) {
            size_t c = e % g.channels, at = g.at + e / g.channels * g.step + c;
            double d = (double) diff_dst[at] * value_or(gamma, g.channel + c, 1);
            sum += d;
            sum_hat += d * ((double) src[at] - (double) mean[i]) * inverse;
        }
        for (size_t e = 0; e < g.cells * g.channels; e++) {
            size_t c = e % g.channels, at = g.at + e / g.channels * g.step + c;
            double hat = ((double) src[at] - (double) mean[i]) * inverse;
            double d = (double) diff_dst[at] * value_or(gamma, g.channel + c, 1);
            double change = inverse * (d - (sum + hat * sum_hat) / count);
            diff_src[at] = (hpct_ref_real) (change + (add ? (double) diff_src[at] : 0));
        }
    }
}
