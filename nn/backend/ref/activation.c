/* Activations. */
#include "nn/backend/ref/kernels.h"

#include <math.h>

/* ---- of single elements: the functions that nn/graph/elements.h uses beside those of C ---- */

static double normal_cdf(double x)
{
    return 0.5 * erfc(-x * M_SQRT1_2);
}

static double normal_density(double x)
{
    return exp(-x * x / 2) / sqrt(2 * M_PI);
}

static double logistic(double x)
{
    return 1 / (1 + exp(-x));
}

typedef hpct_ref_real REAL;
typedef double WIDE;
#define GRADIENT_OF_x(type) type
#define GRADIENT_OF_y(type) REAL

#define FORWARD(kind, name, reads, type, forward, ...)                                             \
    case HPCT_OP_##kind: {                                                                         \
        const type x = source;                                                                     \
        return (hpct_ref_real) (forward);                                                          \
    }
#define BACKWARD(kind, name, reads, type, forward, gradient, ...)                                  \
    case HPCT_OP_##kind: {                                                                         \
        const GRADIENT_OF_##reads(type) reads = data, g = diff;                                    \
        return (hpct_ref_real) (gradient);                                                         \
    }

static hpct_ref_real forward_one(const hpct_op_spec *spec, hpct_ref_real source)
{
    const float slope = spec->slope, threshold = spec->threshold, most = spec->most;
    switch (spec->kind) {
        HPCT_GRAPH_ELEMENTS(FORWARD)
    default:
        return source;
    }
}

static hpct_ref_real backward_one(const hpct_op_spec *spec, hpct_ref_real data, hpct_ref_real diff)
{
    const float slope = spec->slope, threshold = spec->threshold, most = spec->most;
    switch (spec->kind) {
        HPCT_GRAPH_ELEMENTS(BACKWARD)
    default:
        return diff;
    }
}

void HPCT_REF(element_forward)(const hpct_op_spec *spec, size_t count, const hpct_ref_real *src,
                               hpct_ref_real *dst)
{
    for (size_t i = 0; i < count; i++)
        dst[i] = forward_one(spec, src[i]);
}

void HPCT_REF(element_backward)(const hpct_op_spec *spec, size_t count, const hpct_ref_real *data,
                                const hpct_ref_real *diff_dst, hpct_ref_real *diff_src)
{
    for (size_t i = 0; i < count; i++)
        diff_src[i] = backward_one(spec, data[i], diff_dst[i]);
}

/* ---- of rows ---- */

void HPCT_REF(softmax_forward)(int rows, int size, const hpct_ref_real *src, hpct_ref_real *dst)
{
    for (int r = 0; r < rows; r++, src += size, dst += size) {
        double top = (double) src[0], sum = 0;
        for (int i = 1; i < size; i++)
            top = fmax(top, (double) src[i]);
        for (int i = 0; i < size; i++)
            sum += exp((double) src[i] - top);
        for (int i = 0; i < size; i++)
            dst[i] = (hpct_ref_real) (exp((double) src[i] - top) / sum);
    }
}

void HPCT_REF(softmax_backward)(int rows, int size, const hpct_ref_real *dst,
                                const hpct_ref_real *diff_dst, hpct_ref_real *diff_src)
{
    for (int r = 0; r < rows; r++, dst += size, diff_dst += size, diff_src += size) {
        double dot = 0;
        for (int i = 0; i < size; i++)
            dot += (double) diff_dst[i] * (double) dst[i];
        for (int i = 0; i < size; i++)
            diff_src[i] = (hpct_ref_real) ((double) dst[i] * ((double) diff_dst[i] - dot));
    }
}
