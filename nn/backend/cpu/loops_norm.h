/* nn/backend/cpu/loops_norm.h - batch normalization: columns in tiles of V vectors, rows in blocks
 * that fit the cache. Part of nn/backend/cpu/loops_body.h. */

#define NORM_BLOCK 32

/* Mean and squares of a block's columns from c on, merged with those of the rows before (see
 * join_moments in batch_norm.c). */
#define MOMENTS_TILE(V)                                                                            \
    do {                                                                                           \
        vec sum[V], squares_[V];                                                                   \
        EACH (v, V)                                                                                \
            sum[v] = squares_[v] = (vec){0};                                                       \
        for (size_t r = 0; r < count; r++)                                                         \
            EACH (v, V)                                                                            \
                sum[v] += LOAD(block + r * step + c + (size_t) v * LANES);                         \
        EACH (v, V)                                                                                \
            sum[v] *= 1 / (float) count;                                                           \
        for (size_t r = 0; r < count; r++)                                                         \
            EACH (v, V) {                                                                          \
                vec off = LOAD(block + r * step + c + (size_t) v * LANES) - sum[v];                \
                squares_[v] += off * off;                                                          \
            }                                                                                      \
        EACH (v, V) {                                                                              \
            size_t at = c + (size_t) v * LANES;                                                    \
            vec old = LOAD(mean + at), delta = sum[v] - old;                                       \
            STORE(mean + at, old + delta * part);                                                  \
            STORE(squares + at, LOAD(squares + at) + squares_[v] + delta * delta * other);         \
        }                                                                                          \
    } while (0)

HPCT_TARGET static void HPCT_VARIANT(column_moments)(const hpct_cpu_norm_rows *p, size_t before,
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
        for (; c + 4 * LANES <= channels; c += 4 * LANES)
            MOMENTS_TILE(4);
        for (; c + LANES <= channels; c += LANES)
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

HPCT_TARGET static void HPCT_VARIANT(normalize)(const hpct_cpu_norm_rows *p, float *dst)
{
    const float *src = p->src, *scale = p->scale, *shift = p->shift;
    for (size_t r = 0; r < p->rows; r++, src += p->src_step, dst += p->dst_step) {
        size_t c = 0;
        for (; c + LANES <= p->channels; c += LANES) {
            vec x = LOAD(src + c) * LOAD(scale + c) + LOAD(shift + c);
            STORE(dst + c, p->relu ? MASKED(x, x > 0) : x);
        }
        for (; c < p->channels; c++) {
            float x = src[c] * scale[c] + shift[c];
            dst[c] = p->relu && !(x > 0) ? 0 : x;
        }
    }
}

/* The gradient masked by the ReLU. */
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
                size_t at = c + (size_t) v * LANES;                                                \
                vec x = LOAD(p->src + r * p->src_step + at),                                       \
                    g = LOAD(p->diff + r * p->dst_step + at);                                      \
                g = NORM_GRADIENT(p, x, g, at);                                                    \
                a[v] += g;                                                                         \
                b[v] += g * (x - LOAD(p->mean + at));                                              \
            }                                                                                      \
        EACH (v, V) {                                                                              \
            size_t at = c + (size_t) v * LANES;                                                    \
            STORE(sum + at, LOAD(sum + at) + a[v]);                                                \
            STORE(sum_x + at, LOAD(sum_x + at) + b[v]);                                            \
        }                                                                                          \
    } while (0)

HPCT_TARGET static void HPCT_VARIANT(norm_sums)(const hpct_cpu_norm_rows *p, float *sum,
                                                float *sum_x)
{
    size_t channels = p->channels;
    for (size_t first = 0; first < p->rows; first += NORM_BLOCK) {
        size_t count = p->rows - first < NORM_BLOCK ? p->rows - first : NORM_BLOCK, c = 0;
        for (; c + 4 * LANES <= channels; c += 4 * LANES)
            NORM_SUMS_TILE(4);
        for (; c + LANES <= channels; c += LANES)
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

HPCT_TARGET static void HPCT_VARIANT(norm_backward)(const hpct_cpu_norm_rows *p, const float *slope,
                                                    const float *offset, bool add, float *diff_src)
{
    size_t channels = p->channels;
    for (size_t r = 0; r < p->rows; r++) {
        const float *src = p->src + r * p->src_step, *diff = p->diff + r * p->dst_step;
        float *out = diff_src + r * p->src_step;
        size_t c = 0;
        for (; c + LANES <= channels; c += LANES) {
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

#undef NORM_BLOCK
#undef MOMENTS_TILE
#undef NORM_GRADIENT
#undef NORM_GRADIENT_ONE
#undef NORM_SUMS_TILE
