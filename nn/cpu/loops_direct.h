/* nn/cpu/loops_direct.h - convolutions of few input channels as dot products. Part of
 * nn/cpu/loops_body.h. */

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

#undef DIRECT_TILE
#undef DIRECT_DIFF_TILE
#undef DIRECT_DIFF_TAPS
