/* nn/backend/cpu/loops_elements.h - elementwise loops: ReLU and others in pieces, sums, products,
 * rescaling; bias and its
 * gradient. Part of nn/backend/cpu/loops_body.h. */

HPCT_TARGET static void HPCT_VARIANT(bias_transposed)(size_t rows, size_t out, const float *src,
                                                      const float *bias, bool relu, float *dst)
{
    for (size_t r = 0; r < rows; r++) {
        for (size_t o = 0; o < out; o++) {
            float value = src[o * rows + r] + bias[o];
            dst[r * out + o] = relu && !(value > 0) ? 0 : value;
        }
    }
}

HPCT_TARGET static void HPCT_VARIANT(mask_and_sum)(size_t rows, size_t out, const float *dst,
                                                   float *diff, float *diff_bias)
{
    size_t o = 0;
    for (; o + LANES <= out; o += LANES) {
        vec sum = {0};
        for (size_t r = 0; r < rows; r++) {
            vec g = LOAD(diff + r * out + o);
            if (dst != NULL) {
                vec y = LOAD(dst + r * out + o);
                g = MASKED(g, y > 0);
                STORE(diff + r * out + o, g);
            }
            sum += g;
        }
        STORE(diff_bias + o, sum);
    }
    for (; o < out; o++) {
        float sum = 0;
        for (size_t r = 0; r < rows; r++) {
            if (dst != NULL && !(dst[r * out + o] > 0))
                diff[r * out + o] = 0;
            sum += diff[r * out + o];
        }
        diff_bias[o] = sum;
    }
}

HPCT_TARGET static void HPCT_VARIANT(relu_forward)(size_t count, const float *src, float *dst)
{
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        vec x = LOAD(src + i);
        STORE(dst + i, MASKED(x, x > 0));
    }
    for (; i < count; i++)
        dst[i] = src[i] > 0 ? src[i] : 0;
}

HPCT_TARGET static void HPCT_VARIANT(relu_backward)(size_t count, const float *dst,
                                                    const float *diff_dst, float *diff_src)
{
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        vec y = LOAD(dst + i), g = LOAD(diff_dst + i);
        STORE(diff_src + i, MASKED(g, y > 0));
    }
    for (; i < count; i++)
        diff_src[i] = dst[i] > 0 ? diff_dst[i] : 0;
}

HPCT_TARGET static void HPCT_VARIANT(leaky_forward)(size_t count, const hpct_op_spec *spec,
                                                    const float *src, float *dst)
{
    const float slope = spec->slope, threshold = spec->threshold, most = spec->most;
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        vec x = LOAD(src + i), top = most + (vec){0}, low = (x - threshold) * slope;
        STORE(dst + i, SELECT(x > threshold, SELECT(x < top, x, top), low));
    }
    for (; i < count; i++)
        dst[i] = src[i] > threshold ? src[i] < most ? src[i] : most : (src[i] - threshold) * slope;
}

HPCT_TARGET static void HPCT_VARIANT(leaky_backward)(size_t count, const hpct_op_spec *spec,
                                                     const float *src, const float *diff_dst,
                                                     float *diff_src)
{
    const float slope = spec->slope, threshold = spec->threshold, most = spec->most;
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        vec x = LOAD(src + i), g = LOAD(diff_dst + i);
        STORE(diff_src + i, SELECT(x > threshold, MASKED(g, x < most), g * slope));
    }
    for (; i < count; i++)
        diff_src[i] = src[i] > threshold ? src[i] < most ? diff_dst[i] : 0 : slope * diff_dst[i];
}

HPCT_TARGET static void HPCT_VARIANT(hard_sigmoid_forward)(size_t count, const float *src,
                                                           float *dst)
{
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        vec x = LOAD(src + i) + 3, six = 6 + (vec){0};
        STORE(dst + i, MASKED(SELECT(x < 6, x, six), x > 0) / 6);
    }
    for (; i < count; i++) {
        float x = src[i] + 3;
        dst[i] = x > 0 ? (x < 6 ? x : 6) / 6 : 0;
    }
}

HPCT_TARGET static void HPCT_VARIANT(hard_sigmoid_backward)(size_t count, const float *dst,
                                                            const float *diff_dst, float *diff_src)
{
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        vec y = LOAD(dst + i), g = LOAD(diff_dst + i) / 6;
        STORE(diff_src + i, MASKED(g, (y > 0) & (y < 1)));
    }
    for (; i < count; i++)
        diff_src[i] = dst[i] > 0 && dst[i] < 1 ? diff_dst[i] / 6 : 0;
}

HPCT_TARGET static void HPCT_VARIANT(product)(size_t count, const float *a, const float *b,
                                              bool add, float *dst)
{
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        vec x = LOAD(a + i) * LOAD(b + i);
        if (add)
            x += LOAD(dst + i);
        STORE(dst + i, x);
    }
    for (; i < count; i++) {
        float x = a[i] * b[i];
        dst[i] = add ? dst[i] + x : x;
    }
}

HPCT_TARGET static void HPCT_VARIANT(rescaling)(size_t count, float scale, float offset,
                                                const float *src, float *dst)
{
    size_t i = 0;
    for (; i + LANES <= count; i += LANES)
        STORE(dst + i, LOAD(src + i) * scale + offset);
    for (; i < count; i++)
        dst[i] = src[i] * scale + offset;
}

HPCT_TARGET static void HPCT_VARIANT(add)(size_t count, const float *src, float *dst)
{
    size_t i = 0;
    for (; i + LANES <= count; i += LANES)
        STORE(dst + i, LOAD(dst + i) + LOAD(src + i));
    for (; i < count; i++)
        dst[i] += src[i];
}

HPCT_TARGET static void HPCT_VARIANT(scale)(size_t count, float factor, float *dst)
{
    size_t i = 0;
    for (; i + LANES <= count; i += LANES)
        STORE(dst + i, factor * LOAD(dst + i));
    for (; i < count; i++)
        dst[i] *= factor;
}

HPCT_TARGET static void HPCT_VARIANT(sum)(size_t count, const float *a, const float *b, bool relu,
                                          float *dst)
{
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        vec x = LOAD(a + i) + LOAD(b + i);
        STORE(dst + i, relu ? MASKED(x, x > 0) : x);
    }
    for (; i < count; i++) {
        float x = a[i] + b[i];
        dst[i] = relu && !(x > 0) ? 0 : x;
    }
}
