/* nn/cpu/loops_body.h - the loops of loops.h, included once for each instruction set by
 * base/variants.h. Vectors are the compiler's generic ones; functions must carry the attribute
 * themselves, since generic vectors are split by the function that they are written in. */

/* Loads and stores that need not be aligned. */
typedef float HPCT_VARIANT(vec) __attribute__((vector_size(4 * HPCT_LANES)));
typedef float HPCT_VARIANT(vecu)
    __attribute__((vector_size(4 * HPCT_LANES), aligned(4), may_alias));
typedef int HPCT_VARIANT(mask) __attribute__((vector_size(4 * HPCT_LANES)));
typedef uint32_t HPCT_VARIANT(words) __attribute__((vector_size(4 * HPCT_LANES)));
typedef uint64_t HPCT_VARIANT(pairs) __attribute__((vector_size(4 * HPCT_LANES)));
typedef double HPCT_VARIANT(wide) __attribute__((vector_size(8 * HPCT_LANES)));
#define vec HPCT_VARIANT(vec)
#define words HPCT_VARIANT(words)
#define pairs HPCT_VARIANT(pairs)
#define LOAD(p) (*(const HPCT_VARIANT(vecu) *) (p))
#define STORE(p, v) (*(HPCT_VARIANT(vecu) *) (p) = (v))
#define MASKED(v, m) ((vec) ((HPCT_VARIANT(mask))(v) & (m)))

typedef uint16_t HPCT_VARIANT(halves) __attribute__((vector_size(2 * HPCT_LANES)));
typedef uint16_t HPCT_VARIANT(halvesu)
    __attribute__((vector_size(2 * HPCT_LANES), aligned(2), may_alias));
#define STORE_HALVES(p, v)                                                                         \
    (*(HPCT_VARIANT(halvesu) *) (p) = __builtin_convertvector(v, HPCT_VARIANT(halves)))

/* hpct_bf16_of, in the lower half of each word. */
#define BF16(v)                                                                                    \
    ({                                                                                             \
        words bits_ = (words) (v);                                                                 \
        words none_ = (words) ((bits_ & 0x7fffffff) > 0x7f800000);                                 \
        words near_ = (bits_ + 0x7fff + (bits_ >> 16 & 1)) >> 16;                                  \
        (words)((((bits_ >> 16) | 0x40) & none_) | (near_ & ~none_));                              \
    })

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

HPCT_TARGET static void HPCT_VARIANT(to_bf16)(size_t count, const float *src, hpct_bf16 *dst)
{
    size_t i = 0;
    for (; i + HPCT_LANES <= count; i += HPCT_LANES)
        STORE_HALVES(dst + i, BF16(LOAD(src + i)));
    for (; i < count; i++)
        dst[i] = hpct_bf16_of(src[i]);
}

HPCT_TARGET static void HPCT_VARIANT(diff_to_bf16)(size_t rows, size_t out, const float *dst,
                                                   const float *diff, float factor, hpct_bf16 *low,
                                                   float *sums)
{
    for (size_t r = 0; r < rows; r++) {
        size_t o = 0, at = r * out;
        for (; o + HPCT_LANES <= out; o += HPCT_LANES) {
            vec g = factor * LOAD(diff + at + o);
            if (dst != NULL) {
                vec y = LOAD(dst + at + o);
                g = MASKED(g, y > 0);
            }
            words rounded = BF16(g);
            STORE_HALVES(low + at + o, rounded);
            if (sums != NULL)
                STORE(sums + o, LOAD(sums + o) + (vec) (rounded << 16));
        }
        for (; o < out; o++) {
            low[at + o] = hpct_bf16_of(dst == NULL || dst[at + o] > 0 ? factor * diff[at + o] : 0);
            if (sums != NULL)
                sums[o] += hpct_bf16_value(low[at + o]);
        }
    }
}

HPCT_TARGET static void HPCT_VARIANT(rescaling)(size_t count, float scale, float offset,
                                                const float *src, float *dst)
{
    size_t i = 0;
    for (; i + HPCT_LANES <= count; i += HPCT_LANES)
        STORE(dst + i, LOAD(src + i) * scale + offset);
    for (; i < count; i++)
        dst[i] = src[i] * scale + offset;
}

/* The upper and lower halves of the 64-bit products with a constant. */
#define MULTIPLY(factor, c, high, low)                                                             \
    do {                                                                                           \
        pairs even = ((pairs) (c) &0xffffffff) * (factor), odd = ((pairs) (c) >> 32) * (factor);   \
        high = (words) (even >> 32 | (odd & UINT64_C(0xffffffff00000000)));                        \
        low = (words) ((even & 0xffffffff) | odd << 32);                                           \
    } while (0)

/* hpct_draw_words for HPCT_LANES blocks at once; `out` has the first words of all, then the second
 * ones. */
HPCT_TARGET static void HPCT_VARIANT(draw_group)(const hpct_draw *draw, uint32_t sample,
                                                 uint32_t group, uint32_t *out)
{
    words c0 = {0}, c1 = {0}, c2 = {0}, c3 = {0}, high0, low0, high2, low2;
    uint32_t k0 = (uint32_t) draw->seed, k1 = (uint32_t) (draw->seed >> 32);
    EACH (i, HPCT_LANES)
        c0[i] = (uint32_t) i;
    c0 += group * HPCT_LANES;
    c1 += sample;
    c2 += draw->step;
    c3 += hpct_draw_tag(draw);
    for (int round = 0; round < 10; round++) {
        MULTIPLY(UINT64_C(0xD2511F53), c0, high0, low0);
        MULTIPLY(UINT64_C(0xCD9E8D57), c2, high2, low2);
        c0 = high2 ^ c1 ^ k0;
        c2 = high0 ^ c3 ^ k1;
        c1 = low2;
        c3 = low0;
        k0 += UINT32_C(0x9E3779B9);
        k1 += UINT32_C(0xBB67AE85);
    }
    words all[4] = {c0, c1, c2, c3};
    memcpy(out, all, sizeof all);
}

HPCT_TARGET static void HPCT_VARIANT(dropout)(const hpct_dropout *dropout, uint32_t sample,
                                              uint32_t group, size_t count, const float *src,
                                              float *dst)
{
    uint32_t drawn[HPCT_DROPOUT_GROUP];
    for (; count >= HPCT_DROPOUT_GROUP; count -= HPCT_DROPOUT_GROUP, group++) {
        HPCT_VARIANT(draw_group)(&dropout->draw, sample, group, drawn);
        EACH (w, 4) {
            words word;
            memcpy(&word, drawn + w * HPCT_LANES, sizeof word);
            STORE(dst + w * HPCT_LANES,
                  MASKED(LOAD(src + w * HPCT_LANES) * dropout->scale, word >= dropout->threshold));
        }
        src += HPCT_DROPOUT_GROUP;
        dst += HPCT_DROPOUT_GROUP;
    }
    if (count > 0)
        HPCT_VARIANT(draw_group)(&dropout->draw, sample, group, drawn);
    for (size_t i = 0; i < count; i++)
        dst[i] = drawn[i] >= dropout->threshold ? src[i] * dropout->scale : 0;
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

/* ---- batch normalization: columns in tiles of V vectors, rows in blocks that stay in cache ----
 */

#define NORM_BLOCK 32

/* Mean and squares of a block's columns from c on, joined to those of the rows before (see
 * join_moments in batch_norm.c). */
#define MOMENTS_TILE(V)                                                                            \
    do {                                                                                           \
        vec sum[V], squares_[V];                                                                   \
        EACH (v, V)                                                                                \
            sum[v] = squares_[v] = (vec){0};                                                       \
        for (size_t r = 0; r < count; r++)                                                         \
            EACH (v, V)                                                                            \
                sum[v] += LOAD(block + r * step + c + (size_t) v * HPCT_LANES);                    \
        EACH (v, V)                                                                                \
            sum[v] *= 1 / (float) count;                                                           \
        for (size_t r = 0; r < count; r++)                                                         \
            EACH (v, V) {                                                                          \
                vec off = LOAD(block + r * step + c + (size_t) v * HPCT_LANES) - sum[v];           \
                squares_[v] += off * off;                                                          \
            }                                                                                      \
        EACH (v, V) {                                                                              \
            size_t at = c + (size_t) v * HPCT_LANES;                                               \
            vec old = LOAD(mean + at), delta = sum[v] - old;                                       \
            STORE(mean + at, old + delta * part);                                                  \
            STORE(squares + at, LOAD(squares + at) + squares_[v] + delta * delta * other);         \
        }                                                                                          \
    } while (0)

HPCT_TARGET static void HPCT_VARIANT(column_moments)(const hpct_norm_rows *p, size_t before,
                                                     float *mean, float *squares)
{
    size_t rows = p->rows, channels = p->channels, step = p->src_step;
    for (size_t c = 0; c < channels && before == 0; c++)
        mean[c] = squares[c] = 0;
    for (size_t first = 0; first < rows; first += NORM_BLOCK) {
        size_t count = rows - first < NORM_BLOCK ? rows - first : NORM_BLOCK, c = 0;
        const float *block = p->src + first * step;
        float part = (float) count / (float) (before + first + count);
        float other = part * (float) (before + first);
        for (; c + 4 * HPCT_LANES <= channels; c += 4 * HPCT_LANES)
            MOMENTS_TILE(4);
        for (; c + HPCT_LANES <= channels; c += HPCT_LANES)
            MOMENTS_TILE(1);
        for (; c < channels; c++) {
            float sum = 0, off = 0;
            for (size_t r = 0; r < count; r++)
                sum += block[r * step + c];
            sum /= (float) count;
            for (size_t r = 0; r < count; r++)
                off += (block[r * step + c] - sum) * (block[r * step + c] - sum);
            float delta = sum - mean[c];
            mean[c] += delta * part;
            squares[c] += off + delta * delta * other;
        }
    }
}

HPCT_TARGET static void HPCT_VARIANT(normalize)(const hpct_norm_rows *p, float *dst)
{
    const float *src = p->src, *scale = p->scale, *shift = p->shift;
    for (size_t r = 0; r < p->rows; r++, src += p->src_step, dst += p->dst_step) {
        size_t c = 0;
        for (; c + HPCT_LANES <= p->channels; c += HPCT_LANES) {
            vec x = LOAD(src + c) * LOAD(scale + c) + LOAD(shift + c);
            STORE(dst + c, p->relu ? MASKED(x, x > 0) : x);
        }
        for (; c < p->channels; c++) {
            float x = src[c] * scale[c] + shift[c];
            dst[c] = p->relu && !(x > 0) ? 0 : x;
        }
    }
}

/* The gradient that gets through the ReLU. */
#define NORM_GRADIENT(p, x, g, c)                                                                  \
    ((p)->relu ? MASKED(g, (x) *LOAD((p)->scale + (c)) + LOAD((p)->shift + (c)) > 0) : (g))
#define NORM_GRADIENT_ONE(p, x, g, c)                                                              \
    ((p)->relu && !((x) * (p)->scale[c] + (p)->shift[c] > 0) ? 0 : (g))

#define NORM_SUMS_TILE(V)                                                                          \
    do {                                                                                           \
        vec a[V], b[V];                                                                            \
        EACH (v, V)                                                                                \
            a[v] = b[v] = (vec){0};                                                                \
        for (size_t r = first; r < first + count; r++)                                             \
            EACH (v, V) {                                                                          \
                size_t at = c + (size_t) v * HPCT_LANES;                                           \
                vec x = LOAD(p->src + r * p->src_step + at),                                       \
                    g = LOAD(p->diff + r * p->dst_step + at);                                      \
                g = NORM_GRADIENT(p, x, g, at);                                                    \
                a[v] += g;                                                                         \
                b[v] += g * (x - LOAD(p->mean + at));                                              \
            }                                                                                      \
        EACH (v, V) {                                                                              \
            size_t at = c + (size_t) v * HPCT_LANES;                                               \
            STORE(sum + at, LOAD(sum + at) + a[v]);                                                \
            STORE(sum_x + at, LOAD(sum_x + at) + b[v]);                                            \
        }                                                                                          \
    } while (0)

HPCT_TARGET static void HPCT_VARIANT(norm_sums)(const hpct_norm_rows *p, float *sum, float *sum_x)
{
    size_t channels = p->channels;
    for (size_t first = 0; first < p->rows; first += NORM_BLOCK) {
        size_t count = p->rows - first < NORM_BLOCK ? p->rows - first : NORM_BLOCK, c = 0;
        for (; c + 4 * HPCT_LANES <= channels; c += 4 * HPCT_LANES)
            NORM_SUMS_TILE(4);
        for (; c + HPCT_LANES <= channels; c += HPCT_LANES)
            NORM_SUMS_TILE(1);
        for (; c < channels; c++) {
            for (size_t r = first; r < first + count; r++) {
                float x = p->src[r * p->src_step + c], g = p->diff[r * p->dst_step + c];
                g = NORM_GRADIENT_ONE(p, x, g, c);
                sum[c] += g;
                sum_x[c] += g * (x - p->mean[c]);
            }
        }
    }
}

HPCT_TARGET static void HPCT_VARIANT(norm_backward)(const hpct_norm_rows *p, const float *slope,
                                                    const float *offset, bool add, float *diff_src)
{
    size_t channels = p->channels;
    for (size_t r = 0; r < p->rows; r++) {
        const float *src = p->src + r * p->src_step, *diff = p->diff + r * p->dst_step;
        float *out = diff_src + r * p->src_step;
        size_t c = 0;
        for (; c + HPCT_LANES <= channels; c += HPCT_LANES) {
            vec x = LOAD(src + c), g = LOAD(diff + c);
            g = NORM_GRADIENT(p, x, g, c);
            vec d = g * LOAD(p->scale + c) + (x - LOAD(p->mean + c)) * LOAD(slope + c) +
                    LOAD(offset + c);
            STORE(out + c, add ? (vec) (LOAD(out + c) + d) : d);
        }
        for (; c < channels; c++) {
            float g = NORM_GRADIENT_ONE(p, src[c], diff[c], c);
            float d = g * p->scale[c] + (src[c] - p->mean[c]) * slope[c] + offset[c];
            out[c] = add ? out[c] + d : d;
        }
    }
}

#define SELECT(m, a, b) ((vec) (((HPCT_VARIANT(mask))(a) & (m)) | ((HPCT_VARIANT(mask))(b) & ~(m))))

/* ---- max pooling ---- */

#define STORE_INTS(p, v) STORE((float *) (void *) (p), (vec) (v))
#define LOAD_INTS(p) ((HPCT_VARIANT(mask)) LOAD((const float *) (const void *) (p)))

/* Calls BODY for the cells of a window in order: `cell`, which one, and `at`, where it lies in the
 * picture, in floats; `outside` for those around it, which are left out unless they are zeros. */
#define EACH_CELL(BODY)                                                                            \
    for (int u = 0, cell = 0; u < w->kernel_h; u++)                                                \
        for (int v = 0; v < w->kernel_w; v++, cell++) {                                            \
            int y = i * w->stride_h + u - w->pad_top, x = j * w->stride_w + v - w->pad_left;       \
            bool outside = y < 0 || y >= w->in_h || x < 0 || x >= w->in_w;                         \
            size_t at = outside ? 0 : ((size_t) y * (size_t) w->in_w + (size_t) x) * src_step;     \
            BODY;                                                                                  \
        }

#define MAX_VECTOR                                                                                 \
    if (outside && !w->pad_zeros)                                                                  \
        continue;                                                                                  \
    vec value = {0};                                                                               \
    if (!outside)                                                                                  \
        value = LOAD(src + at + c);                                                                \
    HPCT_VARIANT(mask) larger = (value > best) | (first ? ~none : none);                           \
    best = SELECT(larger, value, best);                                                            \
    which = ((outside ? ~none : none + cell) & larger) | (which & ~larger);                        \
    first = false

#define MAX_ONE                                                                                    \
    if (outside && !w->pad_zeros)                                                                  \
        continue;                                                                                  \
    float value = outside ? 0 : src[at + c];                                                       \
    if (first || value > best) {                                                                   \
        best = value;                                                                              \
        which = outside ? -1 : cell;                                                               \
    }                                                                                              \
    first = false

HPCT_TARGET static void HPCT_VARIANT(max_pool)(const hpct_window *w, const float *src,
                                               size_t src_step, float *dst, size_t dst_step,
                                               int32_t *where)
{
    const HPCT_VARIANT(mask) none = {0};
    size_t channels = (size_t) w->in_c;
    for (int i = 0; i < w->out_h; i++)
        for (int j = 0; j < w->out_w; j++, dst += dst_step, where += channels) {
            size_t c = 0;
            for (; c + HPCT_LANES <= channels; c += HPCT_LANES) {
                vec best = {0};
                HPCT_VARIANT(mask) which = none;
                bool first = true;
                EACH_CELL(MAX_VECTOR)
                STORE(dst + c, best);
                STORE_INTS(where + c, which);
            }
            for (; c < channels; c++) {
                float best = 0;
                int32_t which = 0;
                bool first = true;
                EACH_CELL(MAX_ONE)
                dst[c] = best;
                where[c] = which;
            }
        }
}

#define ADD_VECTOR                                                                                 \
    if (outside)                                                                                   \
        continue;                                                                                  \
    float *to = diff_src + at + c;                                                                 \
    STORE(to, LOAD(to) + MASKED(diff, which == cell))

HPCT_TARGET static void HPCT_VARIANT(max_pool_backward)(const hpct_window *w, const int32_t *where,
                                                        const float *diff_dst, size_t dst_step,
                                                        float *diff_src, size_t src_step)
{
    size_t channels = (size_t) w->in_c;
    for (int i = 0; i < w->out_h; i++)
        for (int j = 0; j < w->out_w; j++, diff_dst += dst_step, where += channels) {
            size_t c = 0;
            for (; c + HPCT_LANES <= channels; c += HPCT_LANES) {
                vec diff = LOAD(diff_dst + c);
                HPCT_VARIANT(mask) which = LOAD_INTS(where + c);
                EACH_CELL(ADD_VECTOR)
            }
            for (; c < channels; c++) {
                int y = i * w->stride_h + where[c] / w->kernel_w - w->pad_top,
                    x = j * w->stride_w + where[c] % w->kernel_w - w->pad_left;
                if (where[c] >= 0)
                    diff_src[((size_t) y * (size_t) w->in_w + (size_t) x) * src_step + c] +=
                        diff_dst[c];
            }
        }
}

/* ---- optimizers ---- */

#define SPREAD(x) ((vec){0} + (x))

#define SQRT(v)                                                                                    \
    ({                                                                                             \
        vec root_;                                                                                 \
        EACH (k_, HPCT_LANES)                                                                      \
            root_[k_] = sqrtf((v)[k_]);                                                            \
        root_;                                                                                     \
    })

/* What the loops over a span read again and again, out of the way of their stores. */
#define LOCALS(c, span)                                                                            \
    float *const param = (c)->param, *const moment = (c)->slot[0], *const square = (c)->slot[1];   \
    const float *const grad = (c)->grad;                                                           \
    const float scale = (span)->scale, rate = (span)->rate, decay = (span)->decay,                 \
                limit = (c)->clipvalue;                                                            \
    const size_t first = (span)->first, end = first + (span)->count;                               \
    (void) param, (void) moment, (void) square, (void) grad, (void) scale, (void) rate,            \
        (void) decay, (void) limit

/* The gradient at i, scaled and clipped by value. Not a number stays not a number. */
#define GRADIENT(i)                                                                                \
    ({                                                                                             \
        vec g_ = scale * LOAD(grad + (i));                                                         \
        if (limit > 0) {                                                                           \
            g_ = SELECT(g_ > limit, SPREAD(limit), g_);                                            \
            g_ = SELECT(g_ < -limit, SPREAD(-limit), g_);                                          \
        }                                                                                          \
        g_;                                                                                        \
    })

#define EACH_VECTOR(i) for (size_t i = first; i < end; i += HPCT_LANES)

/* In double, so that the sum hardly depends on how it is shared among threads. */
#define ADD_SQUARES(sum, v)                                                                        \
    do {                                                                                           \
        HPCT_VARIANT(wide) wide_ = __builtin_convertvector(v, HPCT_VARIANT(wide));                 \
        (sum) += wide_ * wide_;                                                                    \
    } while (0)

#define TOTAL(sum)                                                                                 \
    ({                                                                                             \
        double total_ = 0;                                                                         \
        EACH (k_, HPCT_LANES)                                                                      \
            total_ += (sum)[k_];                                                                   \
        total_;                                                                                    \
    })

HPCT_TARGET static void HPCT_VARIANT(sgd)(const hpct_update_call *c, const hpct_update_span *span,
                                          double sums[2])
{
    (void) sums;
    LOCALS(c, span);
    const float momentum = c->momentum;
    const bool nesterov = c->nesterov;
    EACH_VECTOR (i) {
        vec w = LOAD(param + i), step = -rate * GRADIENT(i), change = step;
        if (moment != NULL) {
            change += momentum * LOAD(moment + i);
            STORE(moment + i, change);
            if (nesterov)
                change = momentum * change + step;
        }
        STORE(param + i, w - decay * w + change);
    }
}

/* Moves both moments towards the gradient and its square. */
#define MOMENTS(i, m, v)                                                                           \
    do {                                                                                           \
        vec g = GRADIENT(i);                                                                       \
        m = LOAD(moment + (i));                                                                    \
        v = LOAD(square + (i));                                                                    \
        m += (g - m) * mix_1;                                                                      \
        v += (g * g - v) * mix_2;                                                                  \
        STORE(moment + (i), m);                                                                    \
        STORE(square + (i), v);                                                                    \
    } while (0)

HPCT_TARGET static void HPCT_VARIANT(adam)(const hpct_update_call *c, const hpct_update_span *span,
                                           double sums[2])
{
    (void) sums;
    LOCALS(c, span);
    const float mix_1 = c->mix_1, mix_2 = c->mix_2, epsilon = c->epsilon;
    const float alpha = rate * sqrtf(c->bias_2) / c->bias_1;
    EACH_VECTOR (i) {
        vec w = LOAD(param + i), m, v;
        MOMENTS(i, m, v);
        STORE(param + i, w - decay * w - alpha * m / (SQRT(v) + epsilon));
    }
}

#define LAMB_STEP(m, v) ((m) / bias_1 / (SQRT((v) / bias_2) + epsilon))

HPCT_TARGET static void HPCT_VARIANT(moments)(const hpct_update_call *c,
                                              const hpct_update_span *span, double sums[2])
{
    LOCALS(c, span);
    const float mix_1 = c->mix_1, mix_2 = c->mix_2;
    const float bias_1 = c->bias_1, bias_2 = c->bias_2, epsilon = c->epsilon;
    HPCT_VARIANT(wide) weights = {0}, steps = {0};
    EACH_VECTOR (i) {
        vec w = LOAD(param + i), m, v;
        MOMENTS(i, m, v);
        w -= decay * w;
        STORE(param + i, w);
        vec u = LAMB_STEP(m, v);
        ADD_SQUARES(weights, w);
        ADD_SQUARES(steps, u);
    }
    sums[0] = TOTAL(weights);
    sums[1] = TOTAL(steps);
}

HPCT_TARGET static void HPCT_VARIANT(lamb)(const hpct_update_call *c, const hpct_update_span *span,
                                           double sums[2])
{
    (void) sums;
    LOCALS(c, span);
    const float bias_1 = c->bias_1, bias_2 = c->bias_2, epsilon = c->epsilon;
    EACH_VECTOR (i) {
        vec m = LOAD(moment + i), v = LOAD(square + i);
        STORE(param + i, LOAD(param + i) - rate * LAMB_STEP(m, v));
    }
}

HPCT_TARGET static void HPCT_VARIANT(norms)(const hpct_update_call *c, const hpct_update_span *span,
                                            double sums[2])
{
    LOCALS(c, span);
    HPCT_VARIANT(wide) weights = {0}, gradients = {0};
    EACH_VECTOR (i) {
        vec w = LOAD(param + i), g = GRADIENT(i);
        ADD_SQUARES(weights, w);
        ADD_SQUARES(gradients, g);
    }
    sums[0] = TOTAL(weights);
    sums[1] = TOTAL(gradients);
}

HPCT_TARGET static void HPCT_VARIANT(lars)(const hpct_update_call *c, const hpct_update_span *span,
                                           double sums[2])
{
    (void) sums;
    LOCALS(c, span);
    const float momentum = c->momentum;
    EACH_VECTOR (i) {
        vec w = LOAD(param + i), g = GRADIENT(i);
        vec m = momentum * LOAD(moment + i) - rate * (g + decay * w);
        STORE(moment + i, m);
        STORE(param + i, w + m);
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
    .rescaling = HPCT_VARIANT(rescaling),
    .to_bf16 = HPCT_VARIANT(to_bf16),
    .diff_to_bf16 = HPCT_VARIANT(diff_to_bf16),
    .dropout = HPCT_VARIANT(dropout),
    .add = HPCT_VARIANT(add),
    .scale = HPCT_VARIANT(scale),
    .sum = HPCT_VARIANT(sum),
    .column_moments = HPCT_VARIANT(column_moments),
    .normalize = HPCT_VARIANT(normalize),
    .norm_sums = HPCT_VARIANT(norm_sums),
    .norm_backward = HPCT_VARIANT(norm_backward),
    .max_pool = HPCT_VARIANT(max_pool),
    .max_pool_backward = HPCT_VARIANT(max_pool_backward),
    .sgd = HPCT_VARIANT(sgd),
    .adam = HPCT_VARIANT(adam),
    .lars = HPCT_VARIANT(lars),
    .lamb = HPCT_VARIANT(lamb),
    .norms = HPCT_VARIANT(norms),
    .moments = HPCT_VARIANT(moments),
};

#undef SELECT
#undef SPREAD
#undef SQRT
#undef LOCALS
#undef GRADIENT
#undef EACH_VECTOR
#undef ADD_SQUARES
#undef TOTAL
#undef MOMENTS
#undef LAMB_STEP
#undef vec
#undef words
#undef pairs
#undef MULTIPLY
#undef LOAD
#undef STORE
#undef MASKED
#undef STORE_HALVES
#undef BF16
#undef EACH
#undef DIRECT_TILE
#undef DIRECT_DIFF_TILE
#undef DIRECT_DIFF_TAPS
#undef NORM_BLOCK
#undef MOMENTS_TILE
#undef NORM_GRADIENT
#undef NORM_GRADIENT_ONE
#undef NORM_SUMS_TILE
