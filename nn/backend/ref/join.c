/* Sums, products and concatenations. */
#include "nn/backend/ref/kernels.h"

#include <string.h>

void HPCT_REF(add_forward)(size_t count, int num, const hpct_ref_real *const *src,
                           hpct_ref_real *dst)
{
    for (size_t i = 0; i < count; i++) {
        double sum = 0;
        for (int k = 0; k < num; k++)
            sum += (double) src[k][i];
        dst[i] = (hpct_ref_real) sum;
    }
}

void HPCT_REF(add_to)(size_t count, const hpct_ref_real *src, hpct_ref_real *dst)
{
    for (size_t i = 0; i < count; i++)
        dst[i] += src[i];
}

void HPCT_REF(scale)(size_t count, hpct_ref_real factor, hpct_ref_real *dst)
{
    for (size_t i = 0; i < count; i++)
        dst[i] *= factor;
}

/* Index in the second input of element i of the result. */
static size_t second_at(const hpct_op_spec *spec, size_t i)
{
    size_t channels = (size_t) spec->join.size[0], sample = (size_t) spec->join.rows * channels;
    return spec->join.broadcasts ? i / sample * channels + i % channels : i;
}

void HPCT_REF(multiply_forward)(const hpct_op_spec *spec, int n, const hpct_ref_real *a,
                                const hpct_ref_real *b, hpct_ref_real *dst)
{
    size_t count = (size_t) n * hpct_op_dst_floats(spec);
    for (size_t i = 0; i < count; i++)
        dst[i] = a[i] * b[second_at(spec, i)];
}

static void sum_rows(const hpct_op_spec *spec, int n, const hpct_ref_real *other,
                     const hpct_ref_real *diff_dst, bool add, hpct_ref_real *diff_src)
{
    size_t rows = (size_t) spec->join.rows, channels = (size_t) spec->join.size[0];
    for (size_t i = 0; i < (size_t) n * channels; i++) {
        size_t first = i / channels * rows * channels + i % channels;
        double sum = add ? (double) diff_src[i] : 0;
        for (size_t r = 0; r < rows; r++)
            sum += (double) other[first + r * channels] * (double) diff_dst[first + r * channels];
        diff_src[i] = (hpct_ref_real) sum;
    }
}

void HPCT_REF(multiply_backward)(const hpct_op_spec *spec, int n, int which,
                                 const hpct_ref_real *other, const hpct_ref_real *diff_dst,
                                 bool add, hpct_ref_real *diff_src)
{
    size_t count = (size_t) n * hpct_op_dst_floats(spec);
    if (which == 1 && spec->join.broadcasts) {
        sum_rows(spec, n, other, diff_dst, add, diff_src);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        hpct_ref_real part = diff_dst[i] * other[which == 0 ? second_at(spec, i) : i];
        diff_src[i] = add ? diff_src[i] + part : part;
    }
}

void HPCT_REF(concatenate_forward)(size_t rows, int num, const int *size,
                                   const hpct_ref_real *const *src, hpct_ref_real *dst)
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
                                    const hpct_ref_real *diff_dst, bool add,
                                    hpct_ref_real *diff_src)
{
    size_t whole = 0, before = 0, count = (size_t) size[which];
    for (int k = 0; k < num; k++) {
        before += k < which ? (size_t) size[k] : 0;
        whole += (size_t) size[k];
    }
    for (size_t r = 0; r < rows; r++) {
        for (size_t i = 0; i < count; i++) {
            hpct_ref_real part = diff_dst[r * whole + before + i];
            diff_src[r * count + i] = add ? diff_src[r * count + i] + part : part;
        }
    }
}
