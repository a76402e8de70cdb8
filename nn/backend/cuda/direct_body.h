/* nn/backend/cuda/direct_body.h - computes one element of a direct convolution or its gradients.
 * The includer defines HPCT_VALUE, the type of values; HPCT_LOAD(x), conversion to fp32;
 * HPCT_NAME(name), the function's name; HPCT_ELEMENT, function specifiers; included once per type.
 * Kernels and host tests thus share the arithmetic. */

/* Input row that output row `out` reads with kernel row u: out stride + u dilation - pad; likewise
 * for columns. -1: padding. */
#ifndef HPCT_CUDA_DIRECT_INDICES
#define HPCT_CUDA_DIRECT_INDICES
HPCT_ELEMENT int hpct_cuda_direct_in_at(int out, int u, int stride, int dilation, int pad, int size)
{
    int in = out * stride + u * dilation - pad;
    return in < 0 || in >= size ? -1 : in;
}

/* Output row that reads input row `in` with kernel row u; -1: none. */
HPCT_ELEMENT int hpct_cuda_direct_out_at(int in, int u, int stride, int dilation, int pad, int size)
{
    int out = in + pad - u * dilation;
    if (out < 0 || out % stride != 0)
        return -1;
    out /= stride;
    return out >= size ? -1 : out;
}

/* Offsets of channel 0, and of a kernel element; c is the channel within its group. */
HPCT_ELEMENT size_t hpct_cuda_direct_src_offset(const hpct_cuda_direct *d, int s, int y, int x)
{
    return (((size_t) s * (size_t) d->in_h + (size_t) y) * (size_t) d->in_w + (size_t) x) *
           (size_t) d->in_c;
}

HPCT_ELEMENT size_t hpct_cuda_direct_dst_offset(const hpct_cuda_direct *d, int s, int cell)
{
    return ((size_t) s * (size_t) d->cells + (size_t) cell) * (size_t) d->out_c;
}

HPCT_ELEMENT size_t hpct_cuda_direct_kernel_offset(const hpct_cuda_direct *d, int o, int u, int v,
                                                   int c)
{
    return (((size_t) o * (size_t) d->kernel_h + (size_t) u) * (size_t) d->kernel_w + (size_t) v) *
               (size_t) (d->in_c / d->groups) +
           (size_t) c;
}
#endif

/* dst[s][cell][o] without its bias. */
HPCT_ELEMENT float HPCT_NAME(forward_at)(const hpct_cuda_direct *d, const HPCT_VALUE *src,
                                         const float *kernel, int s, int cell, int o)
{
    const int i = (d->first_cell + cell) / d->out_w, j = (d->first_cell + cell) % d->out_w;
    const int ins = d->in_c / d->groups, first = o / (d->out_c / d->groups) * ins;
    float sum = 0;
    for (int u = 0; u < d->kernel_h; u++) {
        const int y = hpct_cuda_direct_in_at(i, u, d->stride_h, d->dilation_h, d->pad_top, d->in_h);
        for (int v = 0; y >= 0 && v < d->kernel_w; v++) {
            const int x =
                hpct_cuda_direct_in_at(j, v, d->stride_w, d->dilation_w, d->pad_left, d->in_w);
            if (x < 0)
                continue;
            const HPCT_VALUE *from = src + hpct_cuda_direct_src_offset(d, s, y, x) + first;
            const float *weights = kernel + hpct_cuda_direct_kernel_offset(d, o, u, v, 0);
            for (int c = 0; c < ins; c++)
                sum += HPCT_LOAD(from[c]) * weights[c];
        }
    }
    return sum;
}

/* diff_src[s][y][x][c], c among all channels. */
HPCT_ELEMENT float HPCT_NAME(data_at)(const hpct_cuda_direct *d, const HPCT_VALUE *diff_dst,
                                      const float *kernel, int s, int y, int x, int c)
{
    const int ins = d->in_c / d->groups, outs = d->out_c / d->groups, group = c / ins;
    float sum = 0;
    for (int u = 0; u < d->kernel_h; u++) {
        const int i =
            hpct_cuda_direct_out_at(y, u, d->stride_h, d->dilation_h, d->pad_top, d->out_h);
        for (int v = 0; i >= 0 && v < d->kernel_w; v++) {
            const int j =
                hpct_cuda_direct_out_at(x, v, d->stride_w, d->dilation_w, d->pad_left, d->out_w);
            const int cell = i * d->out_w + j - d->first_cell;
            if (j < 0 || cell < 0 || cell >= d->cells)
                continue;
            const HPCT_VALUE *from = diff_dst + hpct_cuda_direct_dst_offset(d, s, cell);
            for (int o = group * outs; o < (group + 1) * outs; o++)
                sum += HPCT_LOAD(from[o]) *
                       kernel[hpct_cuda_direct_kernel_offset(d, o, u, v, c - group * ins)];
        }
    }
    return sum;
}

/* Part of diff_kernel[o][u][v][c] from every `step`th of the cells [begin, end) of all samples,
 * numbered sample by sample; c is the channel within its group. */
HPCT_ELEMENT float HPCT_NAME(weights_at)(const hpct_cuda_direct *d, const HPCT_VALUE *src,
                                         const HPCT_VALUE *diff_dst, int o, int u, int v, int c,
                                         size_t begin, size_t end, size_t step)
{
    const int channel = o / (d->out_c / d->groups) * (d->in_c / d->groups) + c;
    float sum = 0;
    for (size_t at = begin; at < end; at += step) {
        const int s = (int) (at / (size_t) d->cells), cell = (int) (at % (size_t) d->cells);
        const int i = (d->first_cell + cell) / d->out_w, j = (d->first_cell + cell) % d->out_w;
        const int y = hpct_cuda_direct_in_at(i, u, d->stride_h, d->dilation_h, d->pad_top, d->in_h);
        const int x =
            hpct_cuda_direct_in_at(j, v, d->stride_w, d->dilation_w, d->pad_left, d->in_w);
        if (y >= 0 && x >= 0)
            sum += HPCT_LOAD(src[hpct_cuda_direct_src_offset(d, s, y, x) + (size_t) channel]) *
                   HPCT_LOAD(diff_dst[at * (size_t) d->out_c + (size_t) o]);
    }
    return sum;
}
