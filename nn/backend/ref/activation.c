/* Activations. */
#include "nn/backend/ref/kernels.h"

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

void HPCT_REF(relu6_forward)(size_t count, const hpct_real *src, hpct_real *dst)
{
    for (size_t i = 0; i < count; i++)
        dst[i] = src[i] > 0 ? src[i] < 6 ? src[i] : 6 : 0;
}

void HPCT_REF(relu6_backward)(size_t count, const hpct_real *dst, const hpct_real *diff_dst,
                              hpct_real *diff_src)
{
    for (size_t i = 0; i < count; i++)
        diff_src[i] = dst[i] > 0 && dst[i] < 6 ? diff_dst[i] : 0;
}

void HPCT_REF(sigmoid_forward)(size_t count, const hpct_real *src, hpct_real *dst)
{
    for (size_t i = 0; i < count; i++)
        dst[i] = (hpct_real) (1 / (1 + exp(-(double) src[i])));
}

void HPCT_REF(sigmoid_backward)(size_t count, const hpct_real *dst, const hpct_real *diff_dst,
                                hpct_real *diff_src)
{
    for (size_t i = 0; i < count; i++)
        diff_src[i] = diff_dst[i] * dst[i] * (1 - dst[i]);
}

void HPCT_REF(tanh_forward)(size_t count, const hpct_real *src, hpct_real *dst)
{
    for (size_t i = 0; i < count; i++)
        dst[i] = (hpct_real) tanh((double) src[i]);
}

void HPCT_REF(tanh_backward)(size_t count, const hpct_real *dst, const hpct_real *diff_dst,
                             hpct_real *diff_src)
{
    for (size_t i = 0; i < count; i++)
        diff_src[i] = diff_dst[i] * (1 - dst[i] * dst[i]);
}

static double normal_distribution(double x)
{
    return 0.5 * erfc(-x * M_SQRT1_2);
}

void HPCT_REF(gelu_forward)(size_t count, const hpct_real *src, hpct_real *dst)
{
    for (size_t i = 0; i < count; i++)
        dst[i] = (hpct_real) ((double) src[i] * normal_distribution((double) src[i]));
}

void HPCT_REF(gelu_backward)(size_t count, const hpct_real *src, const hpct_real *diff_dst,
                             hpct_real *diff_src)
{
    for (size_t i = 0; i < count; i++) {
        double x = (double) src[i], density = exp(-x * x / 2) / sqrt(2 * M_PI);
        diff_src[i] = (hpct_real) ((double) diff_dst[i] * (normal_distribution(x) + x * density));
    }
}

static double logistic(double x)
{
    return 1 / (1 + exp(-x));
}

void HPCT_REF(silu_forward)(size_t count, const hpct_real *src, hpct_real *dst)
{
    for (size_t i = 0; i < count; i++)
        dst[i] = (hpct_real) ((double) src[i] * logistic((double) src[i]));
}

void HPCT_REF(silu_backward)(size_t count, const hpct_real *src, const hpct_real *diff_dst,
                             hpct_real *diff_src)
{
    for (size_t i = 0; i < count; i++) {
        double x = (double) src[i], y = logistic(x);
        diff_src[i] = (hpct_real) ((double) diff_dst[i] * y * (1 + x * (1 - y)));
    }
}

static hpct_real hard_sigmoid(hpct_real x)
{
    return x > -3 ? x < 3 ? (x + 3) / 6 : 1 : 0;
}

void HPCT_REF(hard_silu_forward)(size_t count, const hpct_real *src, hpct_real *dst)
{
    for (size_t i = 0; i < count; i++)
        dst[i] = src[i] * hard_sigmoid(src[i]);
}

void HPCT_REF(hard_silu_backward)(size_t count, const hpct_real *src, const hpct_real *diff_dst,
                                  hpct_real *diff_src)
{
    for (size_t i = 0; i < count; i++) {
        hpct_real x = src[i], slope = x > -3 && x < 3 ? (2 * x + 3) / 6 : hard_sigmoid(x);
        diff_src[i] = slope * diff_dst[i];
    }
}

void HPCT_REF(hard_sigmoid_forward)(size_t count, const hpct_real *src, hpct_real *dst)
{
    for (size_t i = 0; i < count; i++)
        dst[i] = hard_sigmoid(src[i]);
}

void HPCT_REF(hard_sigmoid_backward)(size_t count, const hpct_real *dst, const hpct_real *diff_dst,
                                     hpct_real *diff_src)
{
    for (size_t i = 0; i < count; i++)
        diff_src[i] = dst[i] > 0 && dst[i] < 1 ? diff_dst[i] / 6 : 0;
}

void HPCT_REF(leaky_relu_forward)(const hpct_op_spec *spec, size_t count, const hpct_real *src,
                                  hpct_real *dst)
{
    const hpct_real slope = spec->slope, threshold = spec->threshold, most = spec->most;
    for (size_t i = 0; i < count; i++)
        dst[i] = src[i] > threshold ? src[i] < most ? src[i] : most : slope * (src[i] - threshold);
}

void HPCT_REF(leaky_relu_backward)(const hpct_op_spec *spec, size_t count, const hpct_real *src,
                                   const hpct_real *diff_dst, hpct_real *diff_src)
{
    const hpct_real slope = spec->slope, threshold = spec->threshold, most = spec->most;
    for (size_t i = 0; i < count; i++)
        diff_src[i] = src[i] > threshold ? src[i] < most ? diff_dst[i] : 0 : slope * diff_dst[i];
}

void HPCT_REF(elu_forward)(const hpct_op_spec *spec, size_t count, const hpct_real *src,
                           hpct_real *dst)
{
    const double alpha = (double) spec->slope;
    for (size_t i = 0; i < count; i++)
        dst[i] = src[i] > 0 ? src[i] : (hpct_real) (alpha * expm1((double) src[i]));
}

void HPCT_REF(elu_backward)(const hpct_op_spec *spec, size_t count, const hpct_real *src,
                            const hpct_real *diff_dst, hpct_real *diff_src)
{
    const double alpha = (double) spec->slope;
    for (size_t i = 0; i < count; i++)
        diff_src[i] = src[i] > 0
                          ? diff_dst[i]
                          : (hpct_real) ((double) diff_dst[i] * alpha * exp((double) src[i]));
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
