/* nn/cpu/loops_body.h - the loops of loops.h, included once for each instruction set with
 *   HPCT_TARGET    the function attribute that allows its instructions
 *   HPCT_VARIANT(name)  a name of its own
 * Vectors are the compiler's generic ones; functions must carry the attribute themselves, since
 * generic vectors are split by the function that they are written in. */

/* Loads and stores that need not be aligned. */
typedef float HPCT_VARIANT(vec) __attribute__((vector_size(4 * HPCT_LANES)));
typedef float HPCT_VARIANT(vecu)
    __attribute__((vector_size(4 * HPCT_LANES), aligned(4), may_alias));
typedef int HPCT_VARIANT(mask) __attribute__((vector_size(4 * HPCT_LANES)));
#define vec HPCT_VARIANT(vec)
#define LOAD(p) (*(const HPCT_VARIANT(vecu) *) (p))
#define STORE(p, v) (*(HPCT_VARIANT(vecu) *) (p) = (v))
#define MASKED(v, m) ((vec) ((HPCT_VARIANT(mask))(v) & (m)))

/* An inner loop whose count is known: unrolled, so that arrays become registers. */
#define EACH(i, n) HPCT_UNROLL for (int i = 0; i < (n); i++)

/* P output cells by V vectors of output channels: sums stay in registers. */
#define DIRECT_TILE(P, V)                                                                          \
    do {                                                                                           \
        vec sum[P][V];                                                                             \
        EACH (p, P)                                                                                \
            EACH (v, V)                                                                            \
                sum[p][v] = LOAD(bias + o + v * HPCT_LANES);                                       \
        for (int t = 0; t < d->taps; t++) {                                                        \
            const float *at = cell + d->offsets[t];                                                \
            const float *k = kernel + (size_t) t * out + o;                                        \
            vec weight[V];                                                                         \
            EACH (v, V)                                                                            \
                weight[v] = LOAD(k + v * HPCT_LANES);                                              \
            EACH (p, P)                                                                            \
                EACH (v, V)                                                                        \
                    sum[p][v] += at[(size_t) p * d->cell_step] * weight[v];                        \
        }                                                                                          \
        EACH (p, P)                                                                                \
            EACH (v, V) {                                                                          \
                vec value = sum[p][v];                                                             \
                if (d->relu)                                                                       \
                    value = MASKED(value, value > 0);                                              \
                STORE(dst + ((size_t) (j + p)) * out + o + v * HPCT_LANES, value);                 \
            }                                                                                      \
    } while (0)

HPCT_TARGET static void HPCT_VARIANT(direct_forward)(const hpct_direct *d, const float *src,
                                                     const float *kernel, const float *bias,
                                                     float *dst)
{
    size_t out = (size_t) d->out;
    int j = 0;
    for (; j + 6 <= d->out_w; j += 6) {
        const float *cell = src + (size_t) j * d->cell_step;
        size_t o = 0;
        for (; o + 2 * HPCT_LANES <= out; o += 2 * HPCT_LANES)
            DIRECT_TILE(6, 2);
        for (; o < out; o += HPCT_LANES)
            DIRECT_TILE(6, 1);
    }
    for (; j < d->out_w; j++) {
        const float *cell = src + (size_t) j * d->cell_step;
        for (size_t o = 0; o < out; o += HPCT_LANES)
            DIRECT_TILE(1, 1);
    }
}

/* T taps by V vectors of output channels, over all cells of the row. */
#define DIRECT_DIFF_TILE(T, V)                                                                     \
    do {                                                                                           \
        vec sum[T][V];                                                                             \
        EACH (t, T)                                                                                \
            EACH (v, V)                                                                            \
                sum[t][v] = LOAD(diff + (size_t) (tap + t) * out + o + v * HPCT_LANES);            \
        const int *offsets = d->offsets + tap;                                                     \
        const float *cell = src, *g = masked + o;                                                  \
        for (int j = 0; j < d->out_w; j++, cell += d->cell_step, g += out) {                       \
            vec value[V];                                                                          \
            EACH (v, V)                                                                            \
                value[v] = LOAD(g + v * HPCT_LANES);                                               \
            EACH (t, T)                                                                            \
                EACH (v, V)                                                                        \
                    sum[t][v] += cell[offsets[t]] * value[v];                                      \
        }                                                                                          \
        EACH (t, T)                                                                                \
            EACH (v, V)                                                                            \
                STORE(diff + (size_t) (tap + t) * out + o + v * HPCT_LANES, sum[t][v]);            \
    } while (0)

#define DIRECT_DIFF_TAPS(T)                                                                        \
    do {                                                                                           \
        size_t o = 0;                                                                              \
        for (; o + 2 * HPCT_LANES <= out; o += 2 * HPCT_LANES)                                     \
            DIRECT_DIFF_TILE(T, 2);                                                                \
        for (; o < out; o += HPCT_LANES)                                                           \
            DIRECT_DIFF_TILE(T, 1);                                                                \
    } while (0)

HPCT_TARGET static void HPCT_VARIANT(direct_backward)(const hpct_direct *d, const float *src,
                                                      const float *dst, const float *diff_dst,
                                                      float *masked, float *diff)
{
    size_t out = (size_t) d->out, cells = (size_t) d->out_w;
    float *diff_bias = diff + (size_t) d->taps * out;
    for (size_t o = 0; o < out; o += HPCT_LANES) {
        vec sum = LOAD(diff_bias + o);
        for (size_t j = 0; j < cells; j++) {
            vec g = LOAD(diff_dst + j * out + o);
            if (d->relu) {
                vec y = LOAD(dst + j * out + o);
                g = MASKED(g, y > 0);
            }
            STORE(masked + j * out + o, g);
            sum += g;
        }
        STORE(diff_bias + o, sum);
    }
    int tap = 0;
    for (; tap + 9 <= d->taps; tap += 9)
        DIRECT_DIFF_TAPS(9);
    for (; tap + 7 <= d->taps; tap += 7)
        DIRECT_DIFF_TAPS(7);
    for (; tap + 4 <= d->taps; tap += 4)
        DIRECT_DIFF_TAPS(4);
    for (; tap + 2 <= d->taps; tap += 2)
        DIRECT_DIFF_TAPS(2);
    for (; tap < d->taps; tap++)
        DIRECT_DIFF_TAPS(1);
}

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
    for (; o + HPCT_LANES <= out; o += HPCT_LANES) {
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
    for (; i + HPCT_LANES <= count; i += HPCT_LANES) {
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
    for (; i + HPCT_LANES <= count; i += HPCT_LANES) {
        vec y = LOAD(dst + i), g = LOAD(diff_dst + i);
        STORE(diff_src + i, MASKED(g, y > 0));
    }
    for (; i < count; i++)
        diff_src[i] = dst[i] > 0 ? diff_dst[i] : 0;
}

HPCT_TARGET static void HPCT_VARIANT(add)(size_t count, const float *src, float *dst)
{
    size_t i = 0;
    for (; i + HPCT_LANES <= count; i += HPCT_LANES)
        STORE(dst + i, LOAD(dst + i) + LOAD(src + i));
    for (; i < count; i++)
        dst[i] += src[i];
}

HPCT_TARGET static void HPCT_VARIANT(scale)(size_t count, float factor, float *dst)
{
    size_t i = 0;
    for (; i + HPCT_LANES <= count; i += HPCT_LANES)
        STORE(dst + i, factor * LOAD(dst + i));
    for (; i < count; i++)
        dst[i] *= factor;
}

HPCT_TARGET static void HPCT_VARIANT(sum)(size_t count, const float *a, const float *b, bool relu,
                                          float *dst)
{
    size_t i = 0;
    for (; i + HPCT_LANES <= count; i += HPCT_LANES) {
        vec x = LOAD(a + i) + LOAD(b + i);
        STORE(dst + i, relu ? MASKED(x, x > 0) : x);
    }
    for (; i < count; i++) {
        float x = a[i] + b[i];
        dst[i] = relu && !(x > 0) ? 0 : x;
    }
}

HPCT_TARGET static void HPCT_VARIANT(sgd)(size_t count, float rate, float momentum,
                                          const float *grad, float *velocity, float *param)
{
    size_t i = 0;
    for (; i + HPCT_LANES <= count; i += HPCT_LANES) {
        vec change = -rate * LOAD(grad + i);
        if (velocity != NULL) {
            change += momentum * LOAD(velocity + i);
            STORE(velocity + i, change);
        }
        STORE(param + i, LOAD(param + i) + change);
    }
    for (; i < count; i++) {
        float change = -rate * grad[i];
        if (velocity != NULL)
            change = velocity[i] = momentum * velocity[i] + change;
        param[i] += change;
    }
}

static const hpct_loops HPCT_VARIANT(loops) = {
    .name = HPCT_VARIANT_NAME,
    .supported = HPCT_VARIANT(supported),
    .direct_forward = HPCT_VARIANT(direct_forward),
    .direct_backward = HPCT_VARIANT(direct_backward),
    .bias_transposed = HPCT_VARIANT(bias_transposed),
    .mask_and_sum = HPCT_VARIANT(mask_and_sum),
    .relu_forward = HPCT_VARIANT(relu_forward),
    .relu_backward = HPCT_VARIANT(relu_backward),
    .add = HPCT_VARIANT(add),
    .scale = HPCT_VARIANT(scale),
    .sum = HPCT_VARIANT(sum),
    .sgd = HPCT_VARIANT(sgd),
};

#undef vec
#undef LOAD
#undef STORE
#undef MASKED
#undef EACH
#undef DIRECT_TILE
#undef DIRECT_DIFF_TILE
#undef DIRECT_DIFF_TAPS
#undef HPCT_TARGET
#undef HPCT_VARIANT
#undef HPCT_VARIANT_NAME
